// needs: shared/grid.js shared/colours.js
// The chosen word in all heads: a thin row for each head over the keys, in the order of the layers or of one key's weight.

const NAMES = 40; // pixels for the heads' names
const NUMBERS = 34; // and for the weights on the chosen key
const SLOPE = Math.PI / 3;
const LABELS = 46; // pixels of the keys' labels above
const [LOWEST_ROW, HIGHEST_ROW] = [9.75, 22];
const LOWEST_ON_SCREEN = 6; // in Present, where every second row has a name
const LEAST_CELL = 3;

class HeadRows {
  constructor(view) {
    this.view = view;
    const title = element("strong", "", tr("This word in all heads"));
    this.buttons = [false, true].map((sorted) => {
      const node = element("button");
      node.addEventListener("click", () => this.sort(sorted));
      return node;
    });
    const order = strip("order", tr("Order of the heads"), ...this.buttons);
    this.top = element("canvas", "keys");
    this.top.setAttribute("aria-hidden", "true");
    this.cells = element("canvas");
    this.grid = new Grid(view, this);
    this.marks = this.grid.marks;
    this.box = this.scroller = element("div", "box", element("div", "layers", this.cells, this.marks));
    this.node = element("section", "all", element("div", "head", title, order), this.top, this.box);
    this.box.addEventListener("scroll", () => this.grid.scrolled());
    this.top.addEventListener("click", (event) => this.chooseKey(event));
  }

  sort(sorted) {
    this.view.sorted = sorted;
    this.draw();
  }

  draw() {
    const { view } = this;
    const { header, rows, keys, theme } = view;
    const weightOf = (row) => rows.values[row * keys.size + header.key];
    const all = [...header.places.keys()];
    this.sequence = view.sorted ? all.sort((one, other) => weightOf(other) - weightOf(one) || one - other) : all;
    [tr("by layer"), tr("by “{token}”", { token: header.names.key })].forEach((text, index) => {
      this.buttons[index].textContent = text;
      this.buttons[index].setAttribute("aria-pressed", String(view.sorted === (index === 1)));
    });
    const title = tr("Query {query} in all {heads} heads, weights on {keys} keys", { query: header.names.query, heads: all.length, keys: keys.size });
    const moves = tr("Arrow up and down choose a head, left and right a key, Enter opens the head.");
    this.marks.setAttribute("aria-label", `${title}. ${moves}`);
    this.top.style.height = `${LABELS}px`; // before the room below it is measured
    this.width = this.box.clientWidth;
    const room = view.narrow ? 14 * all.length : this.box.clientHeight;
    const least = view.room === null ? LOWEST_ROW : LOWEST_ON_SCREEN;
    this.step = clamp(room / all.length, least, HIGHEST_ROW);
    // A pixel cannot show more than one key: of several, the largest weight.
    this.columns = Math.min(keys.size, Math.floor((this.width - NAMES - NUMBERS) / LEAST_CELL));
    this.cell = (this.width - NAMES - NUMBERS) / this.columns;
    this.height = Math.ceil(this.step * all.length);
    this.hovered = this.grid.cell = null;
    this.drawTop(sizedCanvas(this.top, this.width, LABELS), theme);
    this.drawCells(sizedCanvas(this.cells, this.width, this.height), theme);
    this.mark();
  }

  span(column) {
    const { size } = this.view.keys;
    return [Math.floor((column * size) / this.columns), Math.floor(((column + 1) * size) / this.columns)];
  }

  columnOf(key) {
    return Math.floor(((key + 0.5) * this.columns) / this.view.keys.size);
  }

  drawTop(pen, theme) {
    const { keys, header } = this.view;
    pen.textBaseline = "middle";
    const chosenColumn = this.columnOf(header.key);
    for (const [column, chosen] of labelledPositions(this.columns, Math.ceil(11 / this.cell), [chosenColumn])) {
      pen.font = `${chosen ? "600 " : ""}11px ${theme.font}`;
      pen.fillStyle = theme.text;
      pen.globalAlpha = chosen ? 1 : 0.8;
      const name = keys.labels[chosen ? header.key : this.span(column)[0]];
      writeSlanted(pen, name, LABELS / Math.sin(SLOPE) - 8, [NAMES + (column + 0.5) * this.cell, LABELS - 4], SLOPE);
    }
  }

  drawCells(pen, theme) {
    const { view } = this;
    const { rows, header, keys } = view;
    const colours = Array.from({ length: 256 }, (_, step) => `rgb(${colourOf(view.tables.viridis, step, 0, 255).join()})`);
    const hatch = hatching(pen, theme);
    this.sequence.forEach((row, line) => {
      const y = line * this.step;
      for (let column = 0; column < this.columns; column += 1) {
        const [start, end] = this.span(column).map((key) => row * keys.size + key);
        const seen = rows.allowed.subarray(start, end).includes(1);
        const most = rows.values.subarray(start, end).reduce((one, other) => Math.max(one, other), 0);
        pen.fillStyle = seen ? colours[colourStep(most, 0, 1)] : hatch;
        pen.fillRect(NAMES + column * this.cell, y + 0.5, this.cell - (this.cell > 6 ? 0.5 : 0), this.step - 1);
      }
      if (this.step >= LOWEST_ROW || line % 2 === 0) this.name(pen, row, y + this.step / 2, theme);
    });
    pen.globalAlpha = 1;
  }

  name(pen, row, y, theme) {
    const { rows, header, keys } = this.view;
    const chosen = this.isChosen(row);
    pen.fillStyle = theme.text;
    pen.textBaseline = "middle";
    pen.font = `${chosen ? "700 " : ""}11px ${theme.font}`;
    pen.globalAlpha = chosen ? 1 : 0.85;
    pen.textAlign = "right";
    pen.fillText(rows.rows.labels[row], NAMES - 4, y + 0.5);
    pen.textAlign = "left";
    const place = row * keys.size + header.key;
    pen.fillText(rows.allowed[place] ? fixed(rows.values[place], 2) : "–", NAMES + this.columns * this.cell + 6, y + 0.5);
    pen.globalAlpha = 1;
  }

  // The chosen head, the row under the pointer, and the column of the chosen key.
  mark() {
    const { header, theme } = this.view;
    const pen = sizedCanvas(this.marks, this.width, this.height);
    const wide = this.columns * this.cell;
    const key = getComputedStyle(this.top).borderTopColor; // a canvas cannot read light-dark()
    frame(pen, [NAMES + this.columnOf(header.key) * this.cell - 0.75, 0.75, this.cell + 1, this.height - 1.5], key, 1.5);
    this.sequence.forEach((row, line) => {
      const chosen = this.isChosen(row);
      if (chosen || line === this.hovered?.[0]) {
        outline(pen, [NAMES, line * this.step, wide, this.step - 0.5], chosen ? 1.5 : 1, theme);
      }
    });
  }

  isChosen(row) {
    const { places, place } = this.view.header;
    return String(places[row]) === String(place);
  }

  // A row for each head, a column for each key; a drawn one may stand for several.
  get layout() {
    const { size } = this.view.keys;
    const [width, height] = [(this.cell * this.columns) / size, this.step];
    return { left: NAMES, top: 0, width, height, rows: this.sequence.length, columns: size };
  }

  cellAt([x, y]) {
    const [line, column] = [Math.floor(y / this.step), Math.floor((x - NAMES) / this.cell)];
    if (!(line in this.sequence)) return null;
    const inside = column >= 0 && column < this.columns;
    return [line, inside ? this.largest(this.sequence[line], this.span(column)) : null];
  }

  start() {
    return [Math.max(this.sequence.findIndex((row) => this.isChosen(row)), 0), this.view.header.key];
  }

  largest(row, [start, end]) {
    const { values, columns } = this.view.rows;
    let best = start;
    for (let key = start; key < end; key += 1) {
      if (values[row * columns.size + key] > values[row * columns.size + best]) best = key;
    }
    return best;
  }

  point(cell) {
    const { chips, weights } = this.view;
    this.hovered = cell;
    this.mark();
    chips.shade(cell ? this.weightsOf(this.sequence[cell[0]]) : weights);
    chips.point(cell && cell[1]);
  }

  weightsOf(row) {
    const { values, columns } = this.view.rows;
    return values.subarray(row * columns.size, (row + 1) * columns.size);
  }

  describe([line, key]) {
    const { header, keys, rows } = this.view;
    const row = this.sequence[line];
    const [layer, head] = header.places[row];
    const weights = this.weightsOf(row);
    const place = key ?? this.largest(row, [0, keys.size]);
    const seen = rows.allowed[row * keys.size + place];
    return [
      seen ? `${tr("weight")} ${exactText(weights[place])}` : tr("masked"),
      tr("layer {layer}, head {head}", { layer, head }),
      key === null
        ? tr("{query} looks at {key}, the most", { query: header.names.query, key: keys.labels[place] })
        : tr("{query} looks at {key}", { query: header.names.query, key: keys.labels[place] }),
      tr("click: open this head"),
    ];
  }

  say(cell) {
    return this.describe(cell).slice(0, 3).reverse().join(", ");
  }

  leftward() {
    return true;
  }

  choose(cell) {
    if (cell) this.view.openHead(this.view.header.places[this.sequence[cell[0]]]);
  }

  chooseKey(event) {
    const column = Math.floor((pointIn(this.top, event)[0] - NAMES) / this.cell);
    if (column >= 0 && column < this.columns) this.view.chooseKey(this.span(column)[0]);
  }

  paint(canvas, caption) {
    const { theme, header } = this.view;
    const range = tr("attention weight: colours from 0 to 1; at the right: the weight on {key}", { key: header.names.key });
    const title = tr("{query} in all heads", { query: header.names.query });
    const { pen, size, top } = startPicture(canvas, [this.width, LABELS + this.height], theme, { title, range, caption });
    const names = (layer) => this.drawTop(sizedCanvas(layer, this.width, LABELS), theme);
    drawLayer(pen, canvas, names, EDGE, top, this.width, LABELS);
    const draw = (layer) => this.drawCells(sizedCanvas(layer, this.width, this.height), theme);
    drawLayer(pen, canvas, draw, EDGE, top + LABELS, this.width, this.height);
    return size;
  }
}
