// needs: shared/row_bars.css
// The chosen row of the temperature component: a bar and a number for each key, and the entropy. All bars are on one canvas
// and all numbers in one text: an element for each key would take most of the time of a move.

const BAR_HEIGHT = 13; // pixels
const LINES = [15, 20]; // pixels of a key's line at least and at most
const ROW_HEAD = 70; // pixels of what stands above the bars
const MOST_ROW = 620; // pixels to which many keys may make the panel grow; more of them scroll

class RowBars {
  constructor(spoken) {
    this.spoken = spoken;
    this.title = element("div", "title");
    this.entropy = element("div", "entropy");
    this.head = element("div", "entropy");
    [this.labels, this.numbers] = ["labels", "numbers"].map((name) => element("div", name));
    this.labels.setAttribute("role", "presentation");
    this.tracks = element("canvas", "tracks");
    for (const seen of [this.tracks, this.numbers]) seen.setAttribute("aria-hidden", "true");
    this.bars = element("div", "bars", this.labels, this.tracks, this.numbers);
    this.bars.setAttribute("role", "list");
    this.bars.tabIndex = 0;
    this.bars.setAttribute("aria-label", tr("Weights of the chosen row"));
    this.panel = element("div", "row", this.title, this.entropy, this.head, this.bars, spoken);
    this.asked = null;
    this.chosen = 0;
  }

  draw(matrix, theme) {
    const size = matrix.columns.size;
    const weights = matrix.values.subarray(this.chosen * size, (this.chosen + 1) * size);
    const allowed = matrix.allowed.subarray(this.chosen * size, (this.chosen + 1) * size);
    this.title.textContent = `${tr("Row")} ${nameOf(matrix.rows, this.chosen)}`;
    const visible = allowed.reduce((sum, seen) => sum + seen, 0);
    const bits = entropyOf(weights);
    const most = visible ? Math.log2(visible) : 0;
    this.entropy.textContent = `${tr("Entropy {bits} bits", { bits: fixed(bits, 3) })}; ${tr("at most")} log₂ ${visible} = ${fixed(most, 3)}`;
    this.entropy.dataset.bits = bits;
    const rows = Array.from({ length: matrix.rows.size }, (_, row) => entropyOf(matrix.values, row * size, size));
    const mean = rows.reduce((sum, row) => sum + row, 0) / rows.length;
    this.head.textContent = tr("Mean of the head's rows: {bits} bits", { bits: fixed(mean, 3) });
    this.head.dataset.bits = mean;
    const numbers = Array.from(weights, (weight, key) => (allowed[key] ? fixed(weight, 4) : tr("masked")));
    this.numbers.textContent = numbers.join("\n");
    this.name(matrix.columns.labels, numbers);
    this.paint(weights, allowed, theme);
  }

  // For screen readers a key's label contains its weight.
  name(labels, numbers) {
    const { children } = this.labels;
    if (children.length !== labels.length) {
      this.labels.replaceChildren(...labels.map(() => element("div", "label")));
      for (const child of children) child.setAttribute("role", "listitem");
    }
    labels.forEach((label, key) => {
      if (children[key].textContent !== label) children[key].textContent = label;
      children[key].setAttribute("aria-label", `${label}: ${numbers[key]}`);
    });
  }

  // Call this when the panel's size or the number of keys has changed. All keys are in sight if they find room.
  measure(keys) {
    this.line = clamp(Math.floor(this.bars.clientHeight / keys), ...LINES);
    this.bars.style.lineHeight = `${this.line}px`;
    this.tracks.style.height = `${this.line * keys}px`;
    this.width = this.tracks.clientWidth;
    sharpPen(this.tracks, this.width, this.line * keys);
  }

  paint(weights, allowed, theme) {
    const pen = this.tracks.getContext("2d");
    const rest = this.width - 1;
    const top = (key) => key * this.line + (this.line - BAR_HEIGHT) / 2;
    pen.clearRect(0, 0, this.width, this.line * weights.length);
    pen.fillStyle = theme.primary;
    weights.forEach((weight, key) => pen.fillRect(1, top(key), allowed[key] ? rest * weight : 0, BAR_HEIGHT));
    if (allowed.includes(0)) {
      pen.fillStyle = hatching(pen, theme);
      allowed.forEach((seen, key) => pen.fillRect(1, top(key), seen ? 0 : rest, BAR_HEIGHT));
    }
    pen.fillStyle = theme.text;
    pen.globalAlpha = 0.45;
    for (let key = 0; key < weights.length; key += 1) pen.fillRect(0, top(key), 1, BAR_HEIGHT);
    pen.globalAlpha = 1;
  }

  // Reads out the chosen row.
  readOut({ values, columns, rows }) {
    const weights = values.subarray(this.chosen * columns.size, (this.chosen + 1) * columns.size);
    const most = Math.max(...weights);
    const where = columns.labels[weights.indexOf(most)];
    this.spoken.textContent = tr("Row {row}: most, {weight}, on {key}", { row: nameOf(rows, this.chosen), weight: fixed(most, 3), key: where });
  }
}

// The height of the panel: that of what stands beside it, or as much as the keys need.
function heightOfRow(beside, keys) {
  return Math.max(beside, Math.min(ROW_HEAD + LINES[0] * keys, MOST_ROW));
}

// In bits; 0 log 0 = 0.
function entropyOf(weights, start = 0, size = weights.length) {
  let sum = 0;
  for (let place = start; place < start + size; place += 1) {
    if (weights[place] > 0) sum -= weights[place] * Math.log2(weights[place]);
  }
  return Math.max(sum, 0);
}

function nameOf(axis, position) {
  const note = axis.notes[position] ? ` (${axis.notes[position]})` : "";
  return `${axis.labels[position]}${note}`;
}

// The saved picture: the map, and beside it the bars of the chosen row.
const BAR = [22, 90, 150]; // height of a bar's line, width of its label, of its track

function paintTemperature(view, canvas, caption) {
  const { shown, theme, header } = view;
  const { width, height } = view.cells.getBoundingClientRect();
  const [line, label, track] = BAR;
  const inner = [width + 40 + label + track + 70, Math.max(height, 50 + line * shown.columns.size)];
  const masked = shown.allowed.includes(0) ? `; ${tr("hatched: masked")}` : "";
  const range = `${tr("{measure}: colours from 0 to {high}", { measure: tr("attention weight"), high: 1 })}${masked}; τ = ${view.tauText}, ${view.badge.textContent}`;
  const titles = { title: `${header.title}, ${tr("Row")} ${nameOf(shown.rows, view.row.chosen)}`, range, caption };
  const { pen, size, top } = startPicture(canvas, inner, theme, titles);
  const area = [EDGE, top, width, height];
  drawLayer(pen, canvas, (layer) => drawMatrix(layer, shown, view.tables, theme), ...area);
  drawLayer(pen, canvas, (layer) => drawMarks(layer, shown, { query: view.row.chosen }, {}, theme), ...area);
  paintRow(pen, view, [EDGE + width + 40, top]);
  return size;
}

function paintRow(pen, { shown, theme, row }, [x, y]) {
  const [line, label, track] = BAR;
  const size = shown.columns.size;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  pen.font = `12px ${theme.font}`;
  pen.fillStyle = theme.text;
  writeIn(pen, row.title.textContent, label + track + 60, x, y + 8);
  pen.fillText(row.entropy.textContent.split(";")[0], x, y + 26);
  for (let key = 0; key < size; key += 1) {
    const cell = row.chosen * size + key;
    const middle = y + 46 + (key + 0.5) * line;
    pen.fillStyle = theme.panel;
    pen.fillRect(x + label, middle - 7, track, 14);
    pen.fillStyle = theme.primary;
    pen.fillRect(x + label, middle - 7, track * shown.values[cell], 14);
    pen.fillStyle = theme.text;
    writeIn(pen, shown.columns.labels[key], label - 8, x, middle);
    pen.fillText(shown.allowed[cell] ? fixed(shown.values[cell], 4) : tr("masked"), x + label + track + 8, middle);
  }
}
