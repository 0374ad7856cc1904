// needs: shared/picture.js shared/tau_slider.js matrices/matrices_draw.js temperature/temperature_row.js
// The temperature component: one head's weights, computed from its scores again at every move of the slider.

const ABOVE_STAGE = 368; // pixels of page: heading, tabs, the row's number, the slider
const [LOWEST, TALLEST] = [340, 460]; // pixels of the map and its row; the latter also where they stand below each other
const AROUND_MAP = 10;
const NARROW = 640; // pixels: below this the row is under the map
const TICK_LABELS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20];

class View extends Picture {
  constructor(root) {
    super(root);
    this.hovered = {};
    this.cells = element("canvas", "cells");
    this.cells.setAttribute("aria-hidden", "true");
    this.grid = new Grid(this, this);
    this.map = element("div", "map", element("div", "layers", this.cells, this.grid.marks));
    this.map.addEventListener("scroll", () => this.grid.scrolled());
    this.row = new RowBars(this.spoken);
    this.stage = element("div", "stage", this.map, this.row.panel);
    this.control = this.buildControl();
    root.append(this.control, this.stage, this.tip);
  }

  close() {
    super.close();
    this.slider.close();
  }

  buildControl() {
    this.badge = element("strong", "badge");
    this.note = element("span", "note");
    this.output = element("output", "tau");
    const label = tr("Temperature τ, redrawn in the browser");
    this.slider = new TauSlider(label, () => this.drawWeights(), (tau) => this.send("tau", tau));
    this.ticks = element("div", "ticks");
    const track = element("div", "track", this.slider.input, this.ticks);
    this.legend = element("div", "legend");
    const state = element("div", "state", this.badge, this.note);
    return element("div", "control", element("div", "line", this.output, track), state, this.legend);
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const { header, arrays } = unpack(data);
    const other = this.header?.title !== header.title;
    this.header = header;
    [[this.weights, this.masked]] = equationsOf(header, arrays);
    this.slider.update(header.taus, header.temperature, other);
    if (other || this.row.asked === header.row) this.row.asked = null;
    if (this.row.asked === null || this.row.asked >= this.weights.rows.size) this.row.chosen = header.row;
    this.markTicks();
    this.draw();
  }

  markTicks() {
    const { taus } = this.header;
    const [low, high] = [Math.log10(taus[0]), Math.log10(taus.at(-1))];
    const marks = taus.map((tau) => {
      const mark = element("span", tau === 1 ? "one" : "", TICK_LABELS.includes(tau) ? written(String(tau)) : "");
      mark.style.setProperty("--place", (Math.log10(tau) - low) / (high - low));
      return mark;
    });
    this.ticks.replaceChildren(...marks);
  }

  get again() {
    return this.slider.again;
  }

  draw() {
    super.draw();
    this.tables = lookupTables(this.header.scales, this.theme.background);
    this.arranged = { ...this.weights, font: this.theme.font };
    const pen = element("canvas").getContext("2d");
    pen.font = `600 ${FONT_SIZE}px ${this.theme.font}`;
    const wide = this.width >= NARROW;
    this.root.classList.toggle("narrow", !wide);
    const range = colourRange([tr("attention weight")], "0", this.tables[this.weights.scale], "1");
    this.showLegend(range, this.weights.allowed.includes(0));
    const height = this.stageHeight(wide);
    layOut([[this.arranged]], (wide ? this.width * 0.6 : this.width) - 8, height - AROUND_MAP + CAPTION, 1, pen);
    this.row.measure(this.weights.columns.size);
    this.drawWeights();
    this.mark();
  }

  // In Present, what the slider leaves of the window; else what the page leaves of it.
  stageHeight(wide) {
    const { room } = this;
    const beside = roomBelow(ABOVE_STAGE, LOWEST, TALLEST);
    const onPage = wide ? heightOfRow(beside, this.weights.columns.size) : TALLEST;
    const height = room === null ? onPage : Math.max(room - this.control.offsetHeight, 200);
    this.stage.style.height = room !== null || wide ? `${height}px` : "";
    return height;
  }

  // All that changes with τ.
  drawWeights() {
    const { weights, header } = this;
    const values = this.again ? softmaxRows(this.masked, this.slider.tau) : weights.values;
    this.shown = { ...this.arranged, values };
    this.root.weights = values;
    this.showState();
    drawMatrix(this.cells, this.shown, this.tables, this.theme);
    const state = this.again ? tr("redrawn") : tr("as in the run");
    const facts = { title: header.title, tau: this.tauText, state, queries: weights.rows.size, keys: weights.columns.size };
    const what = tr("{title}: attention weights at τ = {tau}, {state}, {queries} queries by {keys} keys.", facts);
    this.grid.marks.setAttribute("aria-label", `${what} ${tr("Arrow up and down choose the row whose weights are listed.")}`);
    this.row.draw(this.shown, this.theme);
  }

  get tauText() {
    return this.slider.text;
  }

  showState() {
    const { temperature, scope, changes } = this.header;
    this.output.textContent = `τ = ${this.tauText}`;
    this.root.classList.toggle("again", this.again);
    const plain = changes ? tr("the run, with other changes") : tr("the run, as trained");
    this.badge.textContent = this.again ? tr("redrawn") : temperature === 1 ? plain : tr("rerun");
    const [tau, trained] = [written(String(temperature)), temperature === 1];
    if (!this.again) {
      const ran = tr("The model ran with τ = {tau} in {scope}; these are the weights of that run.", { tau, scope });
      this.note.textContent = trained ? tr("These are the weights of the run. Move τ.") : ran;
    } else if (this.slider.waits) {
      const asked = tr("The model is running with τ = {tau} …", { tau: this.tauText });
      this.note.textContent = `${computedOf(trained, tau)} ${asked}`;
    } else {
      const release = tr("Release the slider to run the model with τ = {tau}.", { tau: written(String(this.slider.nearest)) });
      this.note.textContent = `${computedOf(trained, tau)} ${release}`;
    }
    this.slider.show(this.badge.textContent);
  }

  mark() {
    drawMarks(this.grid.marks, this.shown, { query: this.row.chosen }, this.hovered, this.theme);
  }

  get layout() {
    return this.arranged.layout;
  }

  point(cell) {
    this.hovered = cell ? { query: cell[0], key: cell[1] } : {};
    this.mark();
  }

  describe([row, column]) {
    const { rows, columns, allowed, values } = this.shown;
    const place = row * columns.size + column;
    const number = allowed[place] ? exactText(values[place]) : tr("0, masked");
    return [`${tr("weight")} ${number}`, `${tr("query")} ${nameOf(rows, row)}`, `${tr("key")} ${columns.labels[column]}`];
  }

  choose(cell, point) {
    const row = cell?.[0] ?? labelAt(this.shown, point)?.[this.shown.rows.name];
    if (row !== undefined) this.list(row);
  }

  list(row) {
    if (row === this.row.chosen) return;
    this.row.asked = this.row.chosen = row;
    this.row.draw(this.shown, this.theme);
    this.row.readOut(this.shown);
    this.mark();
    this.send("row", row);
  }

  onKey({ key }) {
    const down = MOVES[key]?.[0];
    if (down) this.list(clamp(this.row.chosen + down, 0, this.shown.rows.size - 1));
    return down;
  }

  paint(canvas, caption) {
    return paintTemperature(this, canvas, caption);
  }
}

// What the weights on screen are computed from, of a run as trained or with another temperature.
function computedOf(trained, tau) {
  return trained
    ? tr("Softmax of the scores of the run, computed in the browser.")
    : tr("Softmax of the scores of the run with τ = {tau}, computed in the browser.", { tau });
}
