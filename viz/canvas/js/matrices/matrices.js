// needs: shared/toolbar.css shared/layers.css shared/header.js shared/colours.js shared/payload.js matrices/matrices_layout.js matrices/matrices_draw.js matrices/matrices_redraw.js matrices/matrices_keys.js shared/svg_pen.js shared/save_picture.js matrices/matrices_picture.js
// The matrices component: equations of real numbers on canvases, kept and redrawn as steps and choices change.
// It is one module with the other matrices_*.js files, header.js, colours.js and payload.js, which come before it.

const views = new WeakMap();

export default function mount(component) {
  const { parentElement } = component;
  if (!views.has(parentElement)) views.set(parentElement, new MatricesView(parentElement));
  const view = views.get(parentElement);
  view.update(component);
  return () => {
    view.close();
    views.delete(parentElement);
  };
}

class MatricesView {
  constructor(root) {
    this.root = root.querySelector(".matrices");
    this.stage = element("div", "stage");
    this.legend = element("div", "legend");
    this.tip = element("div", "tip");
    this.tip.hidden = true;
    this.redraw = new Redraw(() => this.draw());
    this.cursor = new Cursor(this);
    this.paint = (canvas, caption) => paintEquations(this, canvas, caption);
    offerPicture(this.root, this.paint);
    this.root.append(this.toolbar(), this.redraw.bar, this.stage, this.tip, this.cursor.said);
    this.zoom = 1;
    this.hovered = {};
    this.asked = [];
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
    this.watcher = new ResizeObserver(() => this.resized());
    this.watcher.observe(this.root);
    this.stage.addEventListener("scroll", () => this.cursor.active || this.hover(null));
    // Text drawn before the page's font has arrived is drawn again.
    document.fonts.ready.then(() => this.draw());
  }

  close() {
    document.removeEventListener("keydown", this.onKey);
    this.watcher.disconnect();
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const header = decode(data);
    // Of several key presses the earlier answers arrive while the later ones are still under way.
    this.asked = this.asked.slice(this.asked.indexOf(header.step) + 1 || this.asked.length);
    this.step = this.asked.at(-1) ?? header.step;
    this.header = header;
    this.chosen = header.chosen;
    this.tables = lookupTables(header.scales);
    this.redraw.show(header);
    const { focused } = this.cursor;
    this.build();
    this.draw();
    if (focused) this.cursor.matrix.marks.focus({ preventScroll: true });
  }

  toolbar() {
    const bar = element("div", "toolbar");
    bar.append(this.legend, this.redraw.stretch);
    const buttons = [
      ["−", "Smaller cells", () => this.zoomTo(this.zoom / 1.4)],
      ["Fit", "Fit the width", () => this.zoomTo(1)],
      ["+", "Larger cells", () => this.zoomTo(this.zoom * 1.4)],
      ["PNG", "Download the picture", () => this.savePng()],
    ];
    for (const [text, title, act] of buttons) {
      const button = element("button", "", text);
      button.title = title;
      // What is written on it comes first: who speaks to the computer says that.
      button.setAttribute("aria-label", /^\w/.test(text) ? `${text}: ${title}` : title);
      button.addEventListener("click", act);
      bar.append(button);
    }
    return bar;
  }

  savePng() {
    savePicture(this.paint, { format: "png", file: fileNameOf(this.header.title), caption: [] });
  }

  zoomTo(zoom) {
    this.zoom = Math.min(Math.max(zoom, 0.5), 12);
    if (Math.abs(this.zoom - 1) < 0.05) this.zoom = 1;
    this.draw();
  }

  resized() {
    const width = this.root.clientWidth;
    if (!this.header || width === this.width) return;
    this.draw();
  }

  build() {
    const drawn = this.header.equations.map((parts) => {
      const equation = element("div", "equation");
      equation.append(...parts.map((part) => (part.rows ? this.figure(part) : element("div", "operator", part))));
      return equation;
    });
    this.stage.replaceChildren(...drawn);
    this.stage.style.height = `${this.header.height - this.redraw.height}px`;
    this.cursor.attach(this.matrices(), this.header.title);
  }

  figure(matrix) {
    const figure = element("figure");
    const caption = element("figcaption");
    matrix.caption = caption;
    const symbol = symbolNode(matrix.symbol);
    symbol.className = "symbol";
    symbol.dataset.symbol = matrix.symbol;
    if (matrix.colour) symbol.style.borderColor = matrix.colour;
    const note = matrix.note ? ` ${matrix.note}` : "";
    matrix.shape = element("span", "shape", `${matrix.rows.size} × ${matrix.columns.size}${note}`);
    caption.append(symbol, matrix.shape);
    const layers = element("div", "layers");
    matrix.cells = element("canvas");
    matrix.marks = element("canvas");
    matrix.cells.setAttribute("aria-hidden", "true");
    matrix.marks.dataset.symbol = matrix.symbol;
    matrix.marks.addEventListener("pointermove", (event) => this.hover(matrix, event));
    matrix.marks.addEventListener("pointerleave", () => this.hover(null));
    matrix.marks.addEventListener("click", (event) => this.pick(matrix, event));
    layers.append(matrix.cells, matrix.marks);
    figure.append(caption, layers);
    return figure;
  }

  matrices() {
    return this.header.equations.flat().filter((part) => part.rows);
  }

  draw() {
    if (!this.header) return;
    this.width = this.root.clientWidth;
    this.theme = themeOf(this.root);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `600 ${FONT_SIZE}px ${this.theme.font}`;
    const height = this.header.height - this.redraw.height - 16;
    layOut(this.header.equations, this.width - 22, height, this.zoom, pen);
    for (const matrix of this.matrices()) {
      matrix.font = this.theme.font;
      matrix.caption.style.paddingLeft = `${matrix.margins.left}px`;
      matrix.marks.dataset.cells = cellArea(matrix).join(" ");
      matrix.shown = this.redraw.applied(matrix);
      drawMatrix(matrix.cells, matrix.shown, this.tables, this.theme);
    }
    for (const [row, parts] of this.header.equations.entries()) {
      const { top, bottom } = parts.find((part) => part.rows).margins;
      for (const operator of this.stage.children[row].querySelectorAll(".operator")) {
        operator.style.paddingTop = `${Math.max(CAPTION + top - bottom, 0)}px`;
      }
    }
    this.drawLegend();
    this.mark();
  }

  mark() {
    // A matrix that is new has no place yet.
    const placed = this.matrices().filter(({ margins }) => margins);
    for (const matrix of placed) drawMarks(matrix.marks, matrix, this.chosen, this.hovered, this.theme);
  }

  cellAt(matrix, event) {
    const box = matrix.marks.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - matrix.margins.top) / matrix.cellHeight);
    const column = Math.floor((event.clientX - box.left - matrix.margins.left) / matrix.cellWidth);
    const inside = row >= 0 && column >= 0 && row < matrix.rows.size && column < matrix.columns.size;
    return inside ? [row, column] : null;
  }

  positions(matrix, [row, column]) {
    const named = [[matrix.rows.name, row], [matrix.columns.name, column]].filter(([name]) => name);
    return Object.fromEntries(named);
  }

  hover(matrix, event) {
    this.point(matrix, matrix && this.cellAt(matrix, event), event);
  }

  // Emphasise a cell, the same positions in every matrix, and say beside it what stands there; no cell: none.
  point(matrix, cell, event) {
    const before = this.hovered;
    this.hovered = cell ? this.positions(matrix, cell) : {};
    this.tip.hidden = !cell;
    if (cell) this.explain(matrix, cell, event);
    if (JSON.stringify(before) !== JSON.stringify(this.hovered)) this.mark();
  }

  explain(matrix, cell, event) {
    const [value, ...lines] = this.inWords(matrix, cell);
    const first = element("strong", "", `${plain(matrix.symbol)}[${cell.join(", ")}] = ${value}`);
    this.tip.replaceChildren(first, ...lines.map((line) => element("div", "", line)));
    const box = this.root.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    this.tip.style.left = `${Math.max(Math.min(x + 14, box.width - this.tip.offsetWidth - 4), 0)}px`;
    this.tip.style.top = `${y - this.tip.offsetHeight - 12}px`;
  }

  // The cell's number, its row and its column.
  inWords(matrix, [row, column]) {
    const cell = row * matrix.columns.size + column;
    const masked = matrix.masked && !matrix.allowed[cell];
    let value = exactly(matrix.shown.values[cell]);
    if (matrix.scale === "mask") value = masked ? "may not look" : "may look";
    else if (masked) value = `${value} (masked)`;
    return [value, placeOf(matrix.rows, row), placeOf(matrix.columns, column)].filter(Boolean);
  }

  pick(matrix, event) {
    const cell = this.cellAt(matrix, event);
    if (cell) this.choose(matrix, cell);
  }

  choose(matrix, cell) {
    const picked = this.positions(matrix, cell);
    this.chosen = { ...this.chosen, ...picked };
    this.mark();
    this.send("pick", { ...picked, symbol: matrix.symbol });
  }

  key(event) {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const modified = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
    if (!move || modified || event.defaultPrevented || event.composedPath().some(usesArrows)) return;
    const step = Math.min(Math.max(this.step + move, 0), this.header.steps - 1);
    event.preventDefault();
    if (step === this.step) return;
    this.step = step;
    this.asked.push(step);
    this.send("step", step);
  }

  drawLegend() {
    const ranges = new Map();
    for (const matrix of this.matrices().map(({ shown }) => shown).filter(({ scale }) => scale !== "mask")) {
      const key = `${matrix.scale} ${matrix.low} ${matrix.high}`;
      ranges.set(key, [...(ranges.get(key) || []), matrix]);
    }
    const entries = [...ranges.values()].map((matrices) => legendEntry(matrices, this.tables));
    if (this.matrices().some(({ scale }) => scale === "mask")) entries.push(element("span", "seen", "✓ may look"));
    if (this.matrices().some(({ allowed }) => allowed?.includes(0))) entries.push(element("span", "hatched", "masked"));
    this.legend.replaceChildren(...entries);
  }
}

function legendEntry(matrices, tables) {
  const [{ scale, low, high }] = matrices;
  const entry = element("span", "range");
  const symbols = [...new Set(matrices.map(({ family }) => family))];
  symbols.forEach((symbol, index) => entry.append(index ? ", " : "", symbolNode(symbol)));
  const outside = (value) => Number.isFinite(value) && Math.abs(value) > high * 1.0001;
  const beyond = matrices.some(({ values }) => values.some(outside));
  const ends = [[low, low < 0 ? "≤ " : ""], [high, "≥ "]].map(([end, sign]) => {
    return element("span", "end", (beyond ? sign : "") + signed(String(Number(end.toPrecision(3)))));
  });
  entry.append(ends[0], colourBar(tables[scale]), ends[1]);
  return entry;
}

function placeOf(axis, position) {
  if (!axis.title) return "";
  const singular = axis.title.replace(/:.*/, "").replace("ies", "y").replace("keys", "key").replace("ons", "on");
  const group = axis.groups.length ? `, ${axis.groups[Math.floor((position * axis.groups.length) / axis.size)]}` : "";
  const label = axis.labels.length ? `: ${axis.labels[position]}` : "";
  const note = axis.notes.length ? ` (${axis.notes[position]})` : "";
  return axis.labels.length ? `${singular} ${position}${label}${note}` : `${singular} ${position}${group}`;
}

function usesArrows(target) {
  if (!(target instanceof Element)) return false;
  const roles = /^(slider|combobox|listbox|option|radio|tab|menuitem|textbox|spinbutton|grid)$/;
  const fields = /^(INPUT|TEXTAREA|SELECT)$/;
  return fields.test(target.tagName) || target.isContentEditable || roles.test(target.getAttribute("role"));
}
