// Draws what is on the stage into a file: matrices, captions, operators, and the legend as text.

function paintEquations(view, canvas, caption) {
  const { stage, theme, header, tables } = view;
  const titles = { title: header.title, range: rangesInWords(view), caption };
  const { pen, size, top } = startPicture(canvas, [stage.scrollWidth, stage.scrollHeight], theme, titles);
  const origin = stage.getBoundingClientRect();
  const place = (node) => {
    const box = node.getBoundingClientRect();
    return [box.left - origin.left + stage.scrollLeft + EDGE, box.top - origin.top + stage.scrollTop + top, box];
  };
  for (const matrix of view.matrices()) {
    const [x, y, box] = place(matrix.cells);
    const area = [x, y, box.width, box.height];
    drawLayer(pen, canvas, (layer) => drawMatrix(layer, matrix.shown, tables, theme), ...area);
    drawLayer(pen, canvas, (layer) => drawMarks(layer, matrix, view.chosen, {}, theme), ...area);
  }
  writeBetween(pen, stage, place, theme);
  return size;
}

// Symbols, shapes and operators: HTML text, drawn where it stands on the page.
function writeBetween(pen, stage, place, theme) {
  pen.fillStyle = theme.text;
  pen.textBaseline = "middle";
  for (const symbol of stage.querySelectorAll(".symbol")) drawSymbol(pen, symbol, ...place(symbol), theme);
  pen.font = `12px ${theme.font}`;
  for (const shape of stage.querySelectorAll(".shape")) {
    const [x, y, box] = place(shape);
    pen.fillText(shape.textContent, x, y + box.height / 2);
  }
  pen.font = `20px ${theme.font}`;
  pen.textAlign = "center";
  for (const operator of stage.querySelectorAll(".operator")) {
    const [x, y, box] = place(operator);
    const top = Number.parseFloat(operator.style.paddingTop) || 0;
    pen.fillText(operator.textContent, x + box.width / 2, y + (box.height + top) / 2);
  }
}

function drawSymbol(pen, node, x, y, box, theme) {
  let place = x + 2;
  for (const { mark, text } of symbolParts(node.dataset.symbol)) {
    pen.font = `600 ${mark ? 10 : 15}px ${theme.font}`;
    pen.fillText(text, place, y + box.height / 2 + ({ _: 4, "^": -5 }[mark] || 0));
    place += pen.measureText(text).width + 1;
  }
  const line = node.style.borderColor;
  if (!line) return;
  pen.save();
  pen.fillStyle = line;
  pen.fillRect(x, y + box.height - 3, box.width, 3);
  pen.restore();
}

function rangesInWords(view) {
  const ranges = [...view.legend.querySelectorAll(".range")].map((entry) => {
    const [low, high] = [...entry.querySelectorAll(".end")].map((end) => end.textContent);
    const symbols = [...entry.childNodes].filter((node) => !node.className && node.tagName !== "CANVAS");
    return tr("{names}: colours from {low} to {high}", { names: symbols.map((node) => node.textContent).join(""), low, high });
  });
  const hatched = view.legend.querySelector(".hatched") ? [tr("hatched: masked")] : [];
  return [...ranges, ...hatched, ...view.redraw.inWords()].join("; ");
}
