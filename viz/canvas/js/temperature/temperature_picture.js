// The temperature component as a file: the map, and beside it the chosen row's bars.

const BAR = [22, 90, 150]; // height of a bar's line, width of its label, of its track

function paintTemperature(view, canvas, caption) {
  const { shown, theme, header, weights } = view;
  const { width, height } = weights.cells.getBoundingClientRect();
  const [line, label, track] = BAR;
  const size = [width + 40 + label + track + 70, Math.max(height, 50 + line * shown.columns.size)];
  const masked = shown.allowed.includes(0) ? "; hatched: masked" : "";
  const range = `attention weight: colours from 0 to 1${masked}; τ = ${view.written}, ${view.badge.textContent}`;
  const says = { title: `${header.title}, row ${nameOf(shown.rows, view.row.chosen)}`, range, caption };
  const { pen, whole, top } = startPicture(canvas, size, theme, says);
  for (const draw of [
    (layer) => drawMatrix(layer, shown, view.tables, theme),
    (layer) => drawMarks(layer, shown, { query: view.row.chosen }, {}, theme),
  ]) {
    const layer = canvasLike(canvas);
    draw(layer);
    pen.drawImage(layer, EDGE, top, width, height);
  }
  paintRow(pen, view, [EDGE + width + 40, top]);
  return whole;
}

function paintRow(pen, { shown, theme, row }, [x, y]) {
  const [line, label, track] = BAR;
  const size = shown.columns.size;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  pen.font = `12px ${theme.font}`;
  pen.fillStyle = theme.text;
  pen.fillText(`Row ${row.chosen}`, x, y + 8);
  pen.fillText(row.entropy.textContent.split(";")[0], x, y + 26);
  for (let key = 0; key < size; key += 1) {
    const cell = row.chosen * size + key;
    const middle = y + 46 + (key + 0.5) * line;
    pen.fillStyle = theme.panel;
    pen.fillRect(x + label, middle - 7, track, 14);
    pen.fillStyle = theme.primary;
    pen.fillRect(x + label, middle - 7, track * shown.values[cell], 14);
    pen.fillStyle = theme.text;
    pen.fillText(shortened(pen, shown.columns.labels[key], label - 8), x, middle);
    pen.fillText(shown.allowed[cell] ? shown.values[cell].toFixed(4) : "masked", x + label + track + 8, middle);
  }
}
