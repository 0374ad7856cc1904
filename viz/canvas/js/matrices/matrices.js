// needs: shared/picture.js matrices/matrices_draw.js matrices/matrices_redraw.js matrices/matrices_picture.js
// The matrices component: equations of real numbers on canvases.

class View extends Picture {
  constructor(root) {
    super(root);
    this.stage = element("div", "stage");
    this.legend = element("div", "legend");
    this.redraw = new Redraw(() => this.draw());
    const toolbar = element(
      "div",
      "toolbar",
      this.legend,
      this.redraw.brighten,
      button("−", tr("Smaller cells"), () => this.zoomTo(this.zoom / 1.4)),
      button(tr("Fit"), tr("Fit the width"), () => this.zoomTo(1)),
      button("+", tr("Larger cells"), () => this.zoomTo(this.zoom * 1.4)),
      this.pngButton(),
    );
    root.append(toolbar, this.redraw.bar, this.stage, this.tip, this.spoken);
    [this.zoom, this.hovered, this.pending] = [1, {}, new Pending()];
    this.onKey = (event) => this.stepByKey(event);
    document.addEventListener("keydown", this.onKey);
    this.stage.addEventListener("scroll", () => this.grids.some(({ cell }) => cell) || this.grids[0].show(null));
  }

  close() {
    super.close();
    document.removeEventListener("keydown", this.onKey);
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const { header, arrays } = unpack(data);
    const whole = equationsOf(header, arrays);
    this.header = { ...header, equations: header.rows ? ofChosenTokens(whole, header.rows) : whole };
    this.step = this.pending.afterAnswer(this.header.step);
    const { chosen } = this.header;
    // Another theme, or a run that chose nothing else, leaves whoever moves by keys where they are.
    const same = JSON.stringify(chosen) === JSON.stringify(this.chosen);
    this.chosen = chosen;
    this.redraw.show(this.header);
    const held = this.grids?.find(({ focused }) => focused);
    const cell = same ? held?.cell : null;
    this.build();
    this.draw();
    if (!same) this.showChosen();
    if (held) focusGrid(this.grids, cell);
  }

  zoomTo(zoom) {
    this.zoom = clamp(zoom, 0.5, 12);
    if (Math.abs(this.zoom - 1) < 0.05) this.zoom = 1;
    this.draw();
  }

  // On a narrow screen each matrix has a line of its own, after the operator before it.
  build() {
    this.narrow = this.measure() < NARROW;
    const { equations: whole } = this.header;
    this.equations = this.narrow ? whole.flatMap(oneMatrixALine) : whole;
    const equations = this.equations.map((parts) => {
      const nodes = parts.map((part) => (part.rows ? this.figure(part) : element("div", "operator", part)));
      return element("div", "equation", ...nodes);
    });
    this.stage.replaceChildren(...equations);
    this.grids = joinGrids(this.matrices().map(({ grid }) => grid), this.grids);
  }

  figure(matrix) {
    const symbol = symbolNode(matrix.symbol);
    symbol.className = "symbol";
    symbol.dataset.symbol = matrix.symbol;
    if (matrix.colour) symbol.style.borderColor = matrix.colour;
    const note = matrix.note ? ` ${matrix.note}` : "";
    matrix.shape = element("span", "shape", `${matrix.rows.size} × ${matrix.columns.size}${note}`);
    matrix.caption = element("figcaption", "", symbol, matrix.shape);
    const layers = matrixLayers(matrix, this, {
      scroller: this.stage,
      start: () => [matrix.rows, matrix.columns].map(({ name }) => this.chosen[name] ?? 0),
      point: (cell) => this.point(matrix, cell),
      describe: (cell) => this.describe(matrix, cell),
      say: (cell) => [plainSymbol(matrix.symbol), ...this.inWords(matrix, cell)].join(", "),
      choose: (cell, point) => this.pick(matrix, cell, point),
    });
    matrix.marks.dataset.symbol = matrix.symbol;
    matrix.marks.setAttribute("aria-label", `${plainSymbol(matrix.symbol)}: ${sizesOf(matrix)}. ${this.header.title}. ${HOW}`);
    return element("figure", "", matrix.caption, layers);
  }

  matrices() {
    return this.header.equations.flat().filter((part) => part.rows);
  }

  // The same for all steps, so that nothing below the stage moves; in the present view the rest of the window.
  stageHeight() {
    if (this.narrow) return LINE_OF_ONE * this.equations.length;
    if (this.room === null) return roomBelow(ABOVE_STAGE, LOWEST, TALLEST) - this.redraw.height;
    return Math.max(this.roomFrom(this.stage), 200);
  }

  draw() {
    if (this.narrow !== this.measure() < NARROW) this.build();
    super.draw();
    this.tables = lookupTables(this.header.scales, this.theme.background);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `600 ${FONT_SIZE}px ${this.theme.font}`;
    const height = this.stageHeight();
    this.stage.style.height = this.narrow ? "auto" : `${height}px`;
    const whole = Math.max(height, this.room === null ? this.readableHeight() : 0);
    this.drawMatrices(pen, whole);
    // How wide captions are is known only now.
    if (this.zoom === 1 && this.stage.scrollWidth > this.stage.clientWidth) this.drawMatrices(pen, whole, true);
    this.drawLegend();
    this.mark();
  }

  // At which each token has a line for its label, as far as a screen and a half has room; the stage scrolls over them.
  readableHeight() {
    const tokens = (parts) => Math.max(...parts.map(({ rows }) => rows?.labels.length ?? 0));
    const heights = this.equations.map((parts) => AROUND + LABEL_HEIGHT * tokens(parts));
    return Math.min(heights.reduce((sum, height) => sum + height), MOST_SCROLLED);
  }

  // Scrolls to the chosen row of the first equation, if it is not in view.
  showChosen() {
    const matrix = this.equations[0].findLast((part) => part.rows);
    const row = this.chosen[matrix.rows.name];
    if (this.narrow || row === undefined) return;
    const middle = matrix.marks.offsetTop + matrix.margins.top + (row + 0.5) * matrix.cellHeight;
    const seen = middle > this.stage.scrollTop && middle < this.stage.scrollTop + this.stage.clientHeight;
    if (!seen) this.stage.scrollTop = middle - this.stage.clientHeight / 2;
  }

  drawMatrices(pen, height, compact = false) {
    layOut(this.equations, this.width - 22, height - 16, this.zoom, pen, compact, this.room !== null);
    this.stage.classList.toggle("compact", compact);
    for (const matrix of this.matrices()) {
      matrix.font = this.theme.font;
      matrix.caption.style.paddingLeft = `${matrix.margins.left}px`;
      matrix.marks.dataset.cells = cellArea(matrix).join(" ");
      matrix.shown = this.redraw.applied(matrix);
      drawMatrix(matrix.cells, matrix.shown, this.tables, this.theme);
    }
    for (const [row, parts] of this.equations.entries()) {
      const { top, bottom } = parts.find((part) => part.rows).margins;
      for (const operator of this.stage.children[row].querySelectorAll(".operator")) {
        operator.style.paddingTop = `${Math.max(CAPTION + top - bottom, 0)}px`;
      }
    }
  }

  mark() {
    // A new matrix has no layout yet.
    const laidOut = this.matrices().filter(({ margins }) => margins);
    for (const matrix of laidOut) drawMarks(matrix.marks, matrix, this.chosen, this.hovered, this.theme);
  }

  positions(matrix, [row, column]) {
    const named = [[matrix.rows.name, row], [matrix.columns.name, column]].filter(([name]) => name);
    return Object.fromEntries(named);
  }

  // Marks the cell's positions in every matrix; null: none.
  point(matrix, cell) {
    const before = this.hovered;
    this.hovered = cell ? this.positions(matrix, cell) : {};
    if (JSON.stringify(before) !== JSON.stringify(this.hovered)) this.mark();
  }

  describe(matrix, cell) {
    const [value, ...lines] = this.inWords(matrix, cell);
    return [`${plainSymbol(matrix.symbol)}[${cell.join(", ")}] = ${value}`, ...lines];
  }

  // The cell's number, its row and its column.
  inWords(matrix, [row, column]) {
    const cell = row * matrix.columns.size + column;
    const masked = matrix.masked && !matrix.allowed[cell];
    let value = exactText(matrix.shown.values[cell]);
    if (matrix.scale === "mask") value = masked ? tr("may not attend") : tr("may attend");
    else if (masked) value = tr("{value} (masked)", { value });
    return [value, placeOf(matrix.rows, row), placeOf(matrix.columns, column)].filter(Boolean);
  }

  pick(matrix, cell, point) {
    const picked = cell ? this.positions(matrix, cell) : labelAt(matrix, point);
    if (!picked) return;
    this.chosen = { ...this.chosen, ...picked };
    this.mark();
    const projection = matrix.symbol.match(/[QKV]$/)?.[0];
    this.send("pick", projection ? { ...picked, projection } : picked);
  }

  stepByKey(event) {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    // On a whole screen the row above has these keys.
    if (this.room !== null) return;
    if (!move || hasModifier(event) || event.defaultPrevented || happensIn(event, USE_ARROWS)) return;
    event.preventDefault();
    const step = clamp(this.step + move, 0, this.header.steps - 1);
    if (step === this.step) return;
    this.step = step;
    this.pending.sent.push(step);
    this.send("step", step + 1);
  }

  paint(canvas, caption) {
    return paintEquations(this, canvas, caption);
  }

  drawLegend() {
    const ranges = new Map();
    for (const matrix of this.matrices().map(({ shown }) => shown).filter(({ scale }) => scale !== "mask")) {
      const key = `${matrix.scale} ${matrix.low} ${matrix.high}`;
      ranges.set(key, [...(ranges.get(key) || []), matrix]);
    }
    const entries = [...ranges.values()].map((matrices) => legendEntry(matrices, this.tables));
    if (this.matrices().some(({ scale }) => scale === "mask")) entries.push(element("span", "seen", tr("✓ may attend")));
    if (this.matrices().some(({ allowed }) => allowed?.includes(0))) entries.push(element("span", "hatched", tr("masked")));
    this.legend.replaceChildren(...entries);
  }
}

const NARROW = 600; // pixels
const ABOVE_STAGE = 366; // pixels of page: heading, step, tabs, what the step does, the toolbar
const [LOWEST, TALLEST] = [310, 900]; // pixels of the stage
const [AROUND, MOST_SCROLLED] = [110, 900]; // pixels around the cells of an equation, and of all that a stage scrolls over
const LINE_OF_ONE = 360; // pixels, height of a matrix on a line of its own

// The equation's parts, with an operator before the matrix that follows it.
function oneMatrixALine(parts) {
  const lines = [[]];
  for (const part of parts) {
    lines.at(-1).push(part);
    if (part.rows) lines.push([]);
  }
  return lines.filter((line) => line.length);
}

function legendEntry(matrices, tables) {
  const [{ scale, low, high }] = matrices;
  const symbols = [...new Set(matrices.map(({ family }) => family))];
  const names = symbols.flatMap((symbol, index) => [index ? ", " : "", symbolNode(symbol)]);
  const outside = (value) => Number.isFinite(value) && Math.abs(value) > high * 1.0001;
  const beyond = matrices.some(({ values }) => values.some(outside));
  const [least, most] = [beyond && low < 0 ? "≤ " : "", beyond ? "≥ " : ""];
  return colourRange(names, least + threeDigits(low), tables[scale], most + threeDigits(high));
}

function placeOf(axis, position) {
  if (!axis.title) return "";
  const singular = { query: tr("query"), key: tr("key") }[axis.name] ?? tr("dimension");
  const group = axis.groups.length ? `, ${axis.groups[Math.floor((position * axis.groups.length) / axis.size)]}` : "";
  const label = axis.labels.length ? `: ${axis.labels[position]}` : "";
  const note = axis.notes.length ? ` (${axis.notes[position]})` : "";
  return axis.labels.length ? `${singular} ${position}${label}${note}` : `${singular} ${position}${group}`;
}

const USE_ARROWS = `${FIELDS}, input[type=radio], [role=option], [role=radio], [role=tab], [role=menuitem], [role=grid]`;
