// needs: shared/grid.js shared/payload.js mosaic/mosaic_draw.js
// The long_map component: one head on a long text. The whole (query, key) plane is there from the start, coarse; what is
// zoomed into comes from Python in more detail a moment later, and so do the exact weights of a chosen query.

const TALLEST = 620; // pixels of the plane
const MARGIN = { left: 112, top: 92 }; // pixels for the names of queries and keys
const NARROW = { left: 64, top: 70 };
const CLOSEST = 16; // tokens along a side at the closest
const PAUSE = 180; // milliseconds of rest before more detail is asked for
const MOST_CELLS = 256; // along a side of what Python sends
const NAMES = 15; // pixels that a name needs

class View extends Picture {
  constructor(root) {
    super(root);
    this.plane = element("canvas");
    this.grid = new Grid(this, this);
    this.marks = this.grid.marks;
    this.legend = element("div", "legend");
    const toolbar = element(
      "div",
      "toolbar",
      this.legend,
      button(tr("Zoom in"), tr("Twice as close"), () => this.zoom(0.5)),
      button(tr("Zoom out"), tr("Half as close"), () => this.zoom(2)),
      button(tr("Whole text"), tr("Show all queries and keys"), () => this.look({ top: 0, left: 0, span: this.n })),
      this.brightenButton(tr("Colours up to the largest 1% of the weights drawn")),
      this.pngButton(),
    );
    root.append(toolbar, element("div", "layers", this.plane, this.marks), this.spoken, this.tip);
    this.listen();
  }

  listen() {
    const { marks } = this;
    marks.addEventListener("pointerdown", (event) => this.grab(event));
    marks.addEventListener("pointermove", (event) => this.drag(event));
    marks.addEventListener("pointerup", () => this.release());
    marks.addEventListener("dblclick", (event) => this.zoom(0.5, this.grid.cellAt(event)));
    // A plain wheel scrolls the page; pinching on a touchpad is a wheel with Ctrl.
    marks.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoom(Math.exp(event.deltaY / 200), this.grid.cellAt(event));
      },
      { passive: false },
    );
  }

  close() {
    super.close();
    clearTimeout(this.timer);
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const { header, arrays } = unpack(data);
    const same = this.header?.title === header.title && this.n === header.tokens.length;
    [this.header, this.n, this.table] = [header, header.tokens.length, lookupTable(header.scale)];
    const looked = header.looks.map((look) => arrayAt(arrays, look.array));
    const { unit, codes } = encode(looked.map((array) => ({ array })));
    this.looks = header.looks.map((look, at) => ({ ...look, shape: looked[at].shape, codes: codes[at] }));
    this.unit = unit;
    this.largest = unit * (largestCode(codes[0]) - 1) || 1;
    this.exact = header.weights && arrayAt(arrays, header.weights).values;
    if (!same) this.window = { top: 0, left: 0, span: this.n };
    const keys = tr("The arrow keys move, plus and minus zoom, 0 shows the whole text, Enter chooses the query in the middle.");
    this.marks.setAttribute("aria-label", `${tr("{title}, {count} queries by {count} keys.", { title: header.title, count: this.n })} ${keys}`);
    this.root.dataset.looks = this.looks.length;
    this.root.dataset.row = header.row ?? "";
    this.root.exact = this.exact;
    this.draw();
    if (this.exact) this.readOut();
  }

  draw() {
    super.draw();
    this.margin = this.width < 600 ? NARROW : MARGIN;
    const tallest = this.room === null ? TALLEST : this.roomFrom(this.plane) - this.margin.top - 1;
    this.side = Math.max(Math.min(this.width - this.margin.left - 2, tallest), 120);
    this.high = (this.brightened && highOfMost(this.looks.slice(-1), this.unit)) || this.largest;
    const pixels = pixelTable({ table: this.table, high: this.high, unit: this.unit });
    for (const look of this.looks) {
      const { codes, shape: [rows, columns] } = look;
      look.image = imageOf(columns, rows, (cell) => pixels[codes[cell]]);
    }
    const masked = this.looks.some(({ codes }) => codes.includes(0));
    const coarse = this.looks[0].size > 1 ? [tr("a cell shows the largest weight inside it")] : [];
    this.showLegend(weightRange(this), masked, ...coarse);
    this.redraw();
  }

  // What a frame of panning or zooming takes: nothing is coloured again.
  redraw() {
    drawLongMap(this.plane, this);
    this.drawMarks();
  }

  drawMarks() {
    const pen = sizedCanvas(this.marks, ...this.size);
    const { row } = this.header;
    if (row !== null) outlineRow(pen, this, row);
  }

  get size() {
    return [this.margin.left + this.side + 1, this.margin.top + this.side + 1];
  }

  // The look with the smallest cells among those that contain this query and key.
  finest([query, key]) {
    const within = ({ top, left, size, shape }) =>
      query >= top && query < top + size * shape[0] && key >= left && key < left + size * shape[1];
    return this.looks.filter(within).reduce((best, each) => (!best || each.size < best.size ? each : best), null);
  }

  // Of all cells, also those outside what is looked at.
  get layout() {
    const { margin, side, window: seen, n } = this;
    const scale = side / seen.span;
    const [left, top] = [margin.left - seen.left * scale, margin.top - seen.top * scale];
    return { left, top, width: scale, height: scale, rows: n, columns: n };
  }

  cellAt([x, y]) {
    const { margin, side, held } = this;
    const inside = x >= margin.left && y >= margin.top && x < margin.left + side && y < margin.top + side;
    return inside && !held ? cellIn(this.layout, [x, y]) : null;
  }

  point() {}

  grab(event) {
    if (event.button || !this.grid.cellAt(event)) return;
    this.marks.setPointerCapture(event.pointerId);
    this.held = { at: pointIn(this.marks, event), from: this.window, moved: false };
    this.tip.hidden = true;
  }

  drag(event) {
    if (!this.held) return;
    const { at, from } = this.held;
    const [right, down] = pointIn(this.marks, event).map((side, axis) => side - at[axis]);
    if (!this.held.moved && Math.hypot(right, down) < 4) return;
    this.held.moved = true;
    this.marks.classList.add("dragging");
    const scale = from.span / this.side;
    this.look({ top: from.top - down * scale, left: from.left - right * scale, span: from.span });
  }

  release() {
    this.dragged = this.held?.moved;
    this.held = null;
    this.marks.classList.remove("dragging");
  }

  choose(cell) {
    if (cell && !this.dragged) this.askFor(cell[0]);
  }

  askFor(row) {
    this.asked = row;
    this.ask();
  }

  // Zoom about a cell, or about the middle.
  zoom(factor, cell = null) {
    const { top, left, span } = this.window;
    const next = clamp(span * factor, Math.min(CLOSEST, this.n), this.n);
    const [query, key] = cell || [top + span / 2, left + span / 2];
    const share = next / span;
    this.look({ top: query - (query - top) * share, left: key - (key - left) * share, span: next });
  }

  look({ top, left, span }) {
    const inside = (start) => clamp(start, 0, this.n - span);
    this.window = { top: inside(top), left: inside(left), span };
    this.redraw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.askForDetail(), PAUSE);
  }

  askForDetail() {
    const { top, left, span } = this.window;
    const corners = [
      [top, left],
      [top + span - 1, left + span - 1],
    ].map((cell) => this.finest(cell.map(Math.floor)));
    const wanted = Math.ceil(span / MOST_CELLS);
    if (corners.some((look) => look.size > wanted)) this.ask();
  }

  ask() {
    const { top, left, span } = this.window;
    const whole = [top, left, span].map(Math.round);
    this.send("look", { top: whole[0], left: whole[1], span: whole[2], row: this.asked ?? this.header.row });
  }

  onKey({ key }) {
    const { top, left, span } = this.window;
    const [move, factor] = [MOVES[key], { "+": 0.5, "=": 0.5, "-": 2 }[key]];
    if (move) this.look({ top: top + (move[0] * span) / 8, left: left + (move[1] * span) / 8, span });
    else if (factor) this.zoom(factor);
    else if (key === "0") this.look({ top: 0, left: 0, span: this.n });
    else if (key === "Enter") this.askFor(Math.floor(top + span / 2));
    else return false;
    this.spoken.textContent = this.whereText();
    return true;
  }

  whereText() {
    const { top, left, span } = this.window;
    const ends = (start) => [Math.round(start), Math.round(start + span) - 1];
    const [[first, last], [from, to]] = [ends(top), ends(left)];
    return tr("queries {first} to {last}, keys {from} to {to}", { first, last, from, to });
  }

  describe([query, key]) {
    const { header, exact } = this;
    const look = this.finest([query, key]);
    const [row, column] = [Math.floor((query - look.top) / look.size), Math.floor((key - look.left) / look.size)];
    const code = look.codes[row * look.shape[1] + column];
    let value = code ? `${header.measure} ${weightText(code, this.unit)}` : tr("masked: may not attend");
    const lines = [];
    if (query === header.row && code) value = `${header.measure} ${exactText(exact[key])}`;
    else if (look.size > 1) lines.push(tr("the largest of {size} × {size} cells: zoom in for each", { size: look.size }));
    const names = [`${tr("query")} ${query}: ${header.tokens[query]}`, `${tr("key")} ${key}: ${header.tokens[key]}`];
    return [value, ...names, ...lines.map((line) => element("div", "dim", line))];
  }

  readOut() {
    const { row, tokens } = this.header;
    let best = 0;
    for (let key = 1; key < this.n; key += 1) if (this.exact[key] > this.exact[best]) best = key;
    const facts = { row, token: tokens[row], weight: threeDigits(this.exact[best]), key: best, name: tokens[best] };
    this.spoken.textContent = tr("Query {row}: {token}; largest weight {weight} on key {key}: {name}", facts);
  }

  paint(canvas, caption) {
    const { header, theme, size } = this;
    const range = `${tr("{measure}: colours from 0 to {high}", { measure: header.measure, high: threeDigits(this.high) })}; ${this.whereText()}`;
    const { pen, size: all, top } = startPicture(canvas, size, theme, { title: header.title, range, caption });
    drawLayer(pen, canvas, (layer) => drawLongMap(layer, this), EDGE, top, ...size);
    return all;
  }
}

function drawLongMap(canvas, view) {
  const { margin, side, theme, looks, layout } = view;
  const pen = sizedCanvas(canvas, ...view.size);
  pen.save();
  pen.beginPath();
  pen.rect(margin.left, margin.top, side, side);
  pen.clip();
  pen.fillStyle = hatching(pen, theme);
  pen.fillRect(margin.left, margin.top, side, side);
  pen.imageSmoothingEnabled = false;
  for (const { image, top, left, size, shape } of looks) {
    const [x, y, scale] = boxOf(layout, [top, left]);
    const [width, height] = [shape[1] * size * scale, shape[0] * size * scale];
    // Closer looks replace what is below them, masked cells included.
    if (top || left || size < looks[0].size) {
      pen.fillStyle = theme.background;
      pen.fillRect(x, y, width, height);
      pen.fillStyle = hatching(pen, theme);
      pen.fillRect(x, y, width, height);
    }
    pen.drawImage(image, x, y, width, height);
  }
  pen.restore();
  drawAxes(pen, view);
  return pen;
}

// Names of tokens where there is room for them, at even distances.
function drawAxes(pen, { margin, side, window: seen, theme, header, layout, n }) {
  pen.fillStyle = theme.text;
  pen.strokeStyle = theme.text;
  pen.font = `11px ${theme.font}`;
  pen.textBaseline = "middle";
  const step = niceStep(NAMES / layout.width);
  const most = margin.left - 12;
  for (let i = Math.ceil(seen.top / step) * step; i < Math.min(seen.top + seen.span, n); i += step) {
    const y = layout.top + (i + 0.5) * layout.height;
    if (y > margin.top + side) break;
    pen.textAlign = "right";
    writeIn(pen, `${i} ${header.tokens[i]}`, most, margin.left - 6, y);
  }
  for (let j = Math.ceil(seen.left / step) * step; j < Math.min(seen.left + seen.span, n); j += step) {
    const x = layout.left + (j + 0.5) * layout.width;
    if (x > margin.left + side) break;
    pen.textAlign = "left";
    writeSlanted(pen, `${j} ${header.tokens[j]}`, margin.top - 24, [x, margin.top - 6], Math.PI / 2);
  }
  pen.font = `600 12px ${theme.font}`;
  pen.textAlign = "left";
  pen.fillText(`${tr("query")} ↓  ${tr("key")} →`, 2, 8);
}

// 1, 2 or 5 times a power of ten, at least `least`.
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return Math.max([1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least), 1);
}

function outlineRow(pen, { margin, side, layout, theme }, row) {
  const [, y, , cell] = boxOf(layout, [row, 0]);
  const height = Math.max(cell, 2);
  if (y + height < margin.top || y > margin.top + side) return;
  outline(pen, [margin.left - 0.5, y - 0.5, side + 1, height + 1], 2, theme, theme.primary);
}
