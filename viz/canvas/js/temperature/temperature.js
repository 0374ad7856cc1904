// needs: shared/layers.css shared/header.js shared/colours.js shared/payload.js matrices/matrices_layout.js matrices/matrices_draw.js temperature/temperature_row.js shared/svg_pen.js shared/save_picture.js temperature/temperature_picture.js
// The temperature component: one head's weights, drawn again from its own scores at every move of the slider.
// It is one module with temperature_*.js, header.js, colours.js, payload.js, matrices_*.js, svg_pen.js and
// save_picture.js, which come before it.

const views = new WeakMap();

export default function mount(component) {
  const { parentElement } = component;
  if (!views.has(parentElement)) views.set(parentElement, new TemperatureView(parentElement));
  const view = views.get(parentElement);
  view.update(component);
  return () => {
    view.close();
    views.delete(parentElement);
  };
}

const STAGE_HEIGHT = 450;
const PATIENCE = 500; // milliseconds after the last key press, until the model runs again
const NARROW = 640; // pixels: below this the row stands under the map

class TemperatureView {
  constructor(root) {
    this.root = root.querySelector(".temperature");
    this.hovered = {};
    this.control = this.buildControl();
    this.map = element("div", "map");
    this.row = new RowBars();
    const stage = element("div", "stage");
    stage.append(this.map, this.row.panel);
    this.tip = element("div", "tip");
    this.tip.hidden = true;
    this.root.append(this.control, stage, this.tip);
    offerPicture(this.root, (canvas, caption) => paintTemperature(this, canvas, caption));
    this.watcher = new ResizeObserver(() => this.root.clientWidth !== this.width && this.draw());
    this.watcher.observe(this.root);
    this.map.addEventListener("scroll", () => this.hover(null));
    // Text drawn before the page's font has arrived is drawn again.
    document.fonts.ready.then(() => this.draw());
  }

  close() {
    this.watcher.disconnect();
    clearTimeout(this.waiting);
  }

  buildControl() {
    const control = element("div", "control");
    this.badge = element("strong", "badge");
    this.note = element("span", "note");
    const said = element("div", "said");
    said.append(this.badge, this.note);
    this.output = element("output", "tau");
    this.slider = element("input");
    Object.assign(this.slider, { type: "range", step: 0.005 });
    this.slider.setAttribute("aria-label", "Temperature τ, drawn again in the browser");
    this.slider.addEventListener("pointerdown", () => (this.dragging = true));
    this.slider.addEventListener("input", () => this.set(10 ** Number(this.slider.value)));
    this.slider.addEventListener("change", () => this.release());
    this.slider.addEventListener("keydown", (event) => this.key(event));
    this.ticks = element("div", "ticks");
    const track = element("div", "track");
    track.append(this.slider, this.ticks);
    const line = element("div", "line");
    line.append(this.output, track);
    this.legend = element("div", "legend");
    control.append(line, said, this.legend);
    return control;
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const header = decode(data);
    const other = this.header?.title !== header.title;
    const ran = header.temperature !== this.header?.temperature;
    this.header = header;
    [this.weights, this.masked] = header.equations[0];
    this.tables = lookupTables(header.scales);
    if (other || ran) this.asked = null;
    if (other || this.row.asked === header.row) this.row.asked = null;
    if (this.row.asked === null || this.row.asked >= this.weights.rows.size) this.row.chosen = header.row;
    if (other || (ran && !this.dragging)) this.tau = header.temperature;
    this.buildMap();
    this.markTicks();
    this.draw();
  }

  buildMap() {
    const { weights } = this;
    const layers = element("div", "layers");
    weights.cells = element("canvas", "cells");
    weights.cells.setAttribute("aria-hidden", "true");
    weights.marks = element("canvas", "marks");
    weights.marks.tabIndex = 0;
    weights.marks.setAttribute("role", "application");
    weights.marks.addEventListener("keydown", (event) => this.move(event));
    weights.marks.addEventListener("pointermove", (event) => this.hover(event));
    weights.marks.addEventListener("pointerleave", () => this.hover(null));
    weights.marks.addEventListener("click", (event) => this.pick(event));
    layers.append(weights.cells, weights.marks);
    const focused = this.map.contains(this.root.getRootNode().activeElement);
    this.map.replaceChildren(layers);
    if (focused) weights.marks.focus({ preventScroll: true });
  }

  markTicks() {
    const { taus } = this.header;
    const [low, high] = [Math.log10(taus[0]), Math.log10(taus.at(-1))];
    Object.assign(this.slider, { min: low, max: high });
    const written = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20];
    const marks = taus.map((tau) => {
      const mark = element("span", tau === 1 ? "one" : "", written.includes(tau) ? String(tau) : "");
      mark.style.setProperty("--place", (Math.log10(tau) - low) / (high - low));
      return mark;
    });
    this.ticks.replaceChildren(...marks);
  }

  // The temperature that may be run and is nearest on the logarithmic scale.
  nearest() {
    const distance = (tau) => Math.abs(Math.log(tau / this.tau));
    return this.header.taus.reduce((best, tau) => (distance(tau) < distance(best) ? tau : best));
  }

  set(tau) {
    this.tau = tau;
    this.paint();
  }

  key(event) {
    const { taus } = this.header;
    const here = taus.indexOf(this.nearest());
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -4, PageUp: 4 };
    const ends = { Home: 0, End: taus.length - 1 };
    if (!(event.key in steps) && !(event.key in ends)) return;
    event.preventDefault();
    const place = ends[event.key] ?? here + steps[event.key];
    this.set(taus[Math.min(Math.max(place, 0), taus.length - 1)]);
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.release(), PATIENCE);
  }

  release() {
    this.dragging = false;
    clearTimeout(this.waiting);
    this.tau = this.nearest();
    const known = this.asked ?? this.header.temperature;
    if (this.tau !== known) {
      this.asked = this.tau;
      this.send("tau", this.tau);
    }
    this.paint();
  }

  get again() {
    return this.tau !== this.header.temperature;
  }

  // Everything: only the numbers change with τ, and then paint is enough.
  draw() {
    if (!this.header) return;
    this.width = this.root.clientWidth;
    this.theme = themeOf(this.root);
    this.arranged = { ...this.weights, font: this.theme.font };
    const pen = element("canvas").getContext("2d");
    pen.font = `600 ${FONT_SIZE}px ${this.theme.font}`;
    const wide = this.width >= NARROW;
    this.root.classList.toggle("narrow", !wide);
    layOut([[this.arranged]], (wide ? this.width * 0.6 : this.width) - 8, STAGE_HEIGHT + CAPTION, 1, pen);
    this.legend.replaceChildren(...legend(this.arranged, this.tables));
    this.row.measure(this.weights.columns.size);
    this.paint();
    this.mark();
  }

  paint() {
    const { weights, header } = this;
    const values = this.again ? softmaxRows(this.masked, this.tau) : weights.values;
    this.shown = { ...this.arranged, values };
    this.root.weights = values;
    this.describe();
    drawMatrix(weights.cells, this.shown, this.tables, this.theme);
    const state = this.again ? "drawn again" : "as in the run";
    const sizes = `${weights.rows.size} queries by ${weights.columns.size} keys`;
    const what = `${header.title}: attention weights at τ = ${this.written}, ${state}, ${sizes}`;
    weights.marks.setAttribute("aria-label", `${what}. Arrow up and down choose the row whose weights are listed.`);
    this.row.draw(this.shown, this.theme);
  }

  get written() {
    return String(Number(this.tau.toPrecision(3)));
  }

  describe() {
    const { temperature, scope } = this.header;
    this.slider.value = Math.log10(this.tau);
    this.output.textContent = `τ = ${this.written}`;
    this.root.classList.toggle("again", this.again);
    this.badge.textContent = this.again ? "drawn again" : temperature === 1 ? "the run, as trained" : "run again";
    const scores = `the scores of the run${temperature === 1 ? "" : ` with τ = ${temperature}`}`;
    if (!this.again) {
      const ran = `The model ran with τ = ${temperature} in ${scope}; these are that run's own weights.`;
      this.note.textContent = temperature === 1 ? "These are the run's own weights. Move τ." : ran;
    } else if (this.asked === this.tau) {
      this.note.textContent = `Softmax of ${scores}, here in the browser; the model is running again with τ = ${this.asked} …`;
    } else {
      const rest = `Let go, and the model runs again with τ = ${this.nearest()}.`;
      this.note.textContent = `Softmax of ${scores}, here in the browser; the model has not run. ${rest}`;
    }
    this.slider.setAttribute("aria-valuetext", `${this.written}, ${this.badge.textContent}`);
  }

  mark() {
    drawMarks(this.weights.marks, this.shown, { query: this.row.chosen }, this.hovered, this.theme);
  }

  cellAt(event) {
    const { marks } = this.weights;
    const { margins, cellWidth, cellHeight, rows, columns } = this.shown;
    const box = marks.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - margins.top) / cellHeight);
    const column = Math.floor((event.clientX - box.left - margins.left) / cellWidth);
    return row >= 0 && column >= 0 && row < rows.size && column < columns.size ? [row, column] : null;
  }

  pick(event) {
    const cell = this.cellAt(event);
    if (cell) this.choose(cell[0]);
  }

  choose(row) {
    if (row === this.row.chosen) return;
    this.row.asked = this.row.chosen = row;
    this.row.draw(this.shown, this.theme);
    this.row.say(this.shown);
    this.mark();
    this.send("row", row);
  }

  move(event) {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(this.row.chosen + by, 0), this.shown.rows.size - 1));
  }

  hover(event) {
    const cell = event && this.cellAt(event);
    this.tip.hidden = !cell;
    this.hovered = cell ? { query: cell[0], key: cell[1] } : {};
    if (!this.header) return;
    this.mark();
    if (!cell) return;
    const [row, column] = cell;
    const { rows, columns, allowed, values } = this.shown;
    const place = row * columns.size + column;
    const number = allowed[place] ? exactly(values[place]) : "0, masked";
    const lines = [`query ${nameOf(rows, row)}`, `key ${columns.labels[column]}`];
    const first = element("strong", "", `weight ${number}`);
    this.tip.replaceChildren(first, ...lines.map((line) => element("div", "", line)));
    const box = this.root.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    this.tip.style.left = `${Math.max(Math.min(x + 14, box.width - this.tip.offsetWidth - 4), 0)}px`;
    this.tip.style.top = `${y - this.tip.offsetHeight - 12}px`;
  }
}
