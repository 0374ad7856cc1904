// needs: shared/grid.js shared/payload.js shared/tau_slider.js temperature/temperature_row.js own_vectors/own_vectors_draw.js own_vectors/own_vectors_table.js
// The own_vectors component: a query and keys are moved in a plane; scores, weights, and z among the values follow.
// Whole vectors move, and are multiplied: what lies outside the plane stays and counts, so the weights are exact.

const ABOVE_PLANE = [416, 502]; // pixels of page: heading, tabs, controls; of a head, and of typed vectors
const [LOWEST, TALLEST] = [210, 400]; // pixels of a plane
const NARROW = 640; // pixels: below this planes and table stand below each other
const [LEAST, BETWEEN] = [210, 18]; // pixels: of a plane's width beside the table, and from one to the next
const NEAR = 14; // pixels from the end of a query, within which letting go snaps to it
const KEY_STEPS = 40; // presses of an arrow key across the plane
const STOPS = 12; // keys up to which each is a stop of the Tab key; of more of them one is
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

class View extends Picture {
  constructor(root) {
    super(root);
    this.pending = new Pending();
    const among = (places) => ({ cellAt: (point) => this.keyAt(places(), point), point() {}, describe: (key) => this.describe(key) });
    this.query = new Grid(this, { ...among(() => this.keyPlaces), onKey: (event) => this.onKey(event) });
    this.among = new Grid(this, among(() => valuePlaces(this)));
    this.among.marks.tabIndex = -1;
    this.among.marks.setAttribute("role", "img");
    this.handles = element("div", "handles");
    this.planes = [this.query, this.among].map(({ marks }) => element("div", "layers", element("canvas", "cells"), marks));
    this.planes[0].append(this.handles);
    this.table = element("table");
    this.top = this.buildControl();
    this.legend = element("div", "legend");
    const stage = element("div", "stage", ...this.planes.map((layers, at) => element("div", `plane ${["keys", "values"][at]}`, layers)), element("div", "frame", this.table));
    root.append(this.top, stage, this.legend, this.spoken, this.tip);
    this.listen();
  }

  close() {
    super.close();
    this.slider.close();
    clearTimeout(this.timer);
  }

  buildControl() {
    this.slider = new TauSlider(tr("Temperature τ, redrawn in the browser"), () => this.drawVectors(), (tau) => this.send("tau", tau));
    this.tau = element("output", "tau");
    this.back = button(tr("Back to the run"), tr("Put the query where the run had it"), () => this.snap(this.at.row));
    this.other = element("select");
    this.other.setAttribute("aria-label", tr("The other query"));
    this.share = element("input");
    Object.assign(this.share, { type: "range", min: 0, max: 1, step: 0.01, value: 0 });
    this.share.setAttribute("aria-label", tr("From this query to the other one"));
    for (const control of [this.share, this.other]) control.addEventListener("input", () => this.blend());
    this.share.addEventListener("change", () => (Number(this.share.value) === 1 ? this.snap(Number(this.other.value)) : this.finish()));
    this.towards = element("label", "", tr("Towards the query"), this.other, this.share);
    [this.badge, this.note, this.change] = [element("strong", "badge"), element("span"), element("span")];
    const control = element("div", "control", element("label", "", this.tau, this.slider.input), this.back, this.towards);
    return element("div", "", control, element("div", "state", this.badge, element("span", "note", this.note, " ", this.change)));
  }

  listen() {
    const { marks } = this.query;
    const from = (event) => pointIn(marks, event);
    marks.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      marks.setPointerCapture(event.pointerId);
      const onQuery = this.queryAt(from(event), [this.at.q]) === 0;
      const [key] = (!onQuery && this.keyAt(this.keyPlaces, from(event))) || [];
      this.dragged = { key };
      (this.stops[key]?.marks ?? marks).focus({ preventScroll: true });
      if (key === undefined) this.moveTo(from(event));
    });
    marks.addEventListener("pointermove", (event) => this.dragged && this.moveTo(from(event), this.dragged.key));
    marks.addEventListener("pointerup", (event) => {
      if (!this.dragged) return;
      const near = this.dragged.key === undefined ? this.queryAt(from(event), this.q) : null;
      this.dragged = null;
      // Typed vectors may be moved by little.
      if (near === null || (this.header.typed && near === this.at.row)) this.finish();
      else this.snap(near);
    });
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const { header, arrays } = unpack(data);
    const ofHead = (name) => arrayAt(arrays, named(header.path, name, header.head));
    const before = this.header;
    const same = ["title", "row", "keys"].every((name) => JSON.stringify(before?.[name]) === JSON.stringify(header[name]));
    this.header = header;
    for (const name of ["q", "k", "v", "z"]) this[name] = rowsOf(ofHead(name));
    for (const name of ["pattern", "mask"]) this[name] = ofHead(name).values;
    this.bias = header.biased ? ofHead("bias").values : null;
    this.axes = { k: rowsOf(arrayAt(arrays, "plane.key_axes")), v: rowsOf(arrayAt(arrays, "plane.value_axes")) };
    this.valuePoints = this.v.map((value) => inPlane(this.axes.v, value));
    // Where the vectors' own numbers are the axes, their zero is in the middle; else the mean of the keys.
    const places = this.k.map((key) => inPlane(this.axes.k, key));
    this.middle = [0, 1].map((axis) => (header.shares[0].length ? places.reduce((sum, place) => sum + place[axis], 0) / places.length : 0));
    this.slider.update(header.taus, header.temperature, before?.path !== header.path || before?.head !== header.head);
    this.other.replaceChildren(...header.queries.map((name, index) => new Option(name, index)));
    this.towards.hidden = header.queries.length < 2;
    this.back.hidden = Boolean(header.typed);
    // The answer to what was chosen or typed here must not undo what has been moved since.
    const fits = before && this.at.row < this.q.length && this.at.keys.length === this.k.length && this.at.q.length === this.q[0].length;
    const keeps = fits && Boolean(before.typed) === Boolean(header.typed) && (header.typed ? this.isAhead(header.typed) : same || this.asked === header.row);
    if (!keeps || this.at.own) this.begin(keeps && !header.typed ? this.at.row : header.row);
    this.asked = null;
    this.buildStops();
    this.draw();
  }

  // Whether vectors were moved here after those that Python knows.
  isAhead({ query, keys }) {
    const sent = { query, keys };
    return this.pending.afterAnswer(sent) !== sent || this.dragged || this.timer;
  }

  // The vectors of the run, or as typed.
  begin(row) {
    this.at = { row, q: this.q[row], keys: this.k, own: true };
    this.share.value = 0;
    this.other.value = String((row + 1) % this.q.length);
  }

  // Stops of the Tab key at the keys, where arrow keys move them.
  buildStops() {
    if (this.stops?.length === this.k.length) return;
    const picture = (key) => ({ point() {}, describe: () => null, onKey: (event) => this.onKey(event, key) });
    this.stops = this.k.map((_, key) => new Grid(this, picture(key), element("div", "handle")));
    this.handles.replaceChildren(...this.stops.map(({ marks }) => marks));
    if (this.k.length > STOPS) joinGrids(this.stops);
  }

  snap(row) {
    const other = row !== this.at.row;
    this.begin(row);
    this.draw();
    if (other) {
      this.asked = row;
      this.send("row", row);
    }
    this.spoken.textContent = this.inWords;
  }

  // Where in the plane the query is, or a key, as they are drawn; their vectors, and by how much they are shortened.
  placeOf(key) {
    const place = inPlane(this.axes.k, this.vectorOf(key));
    return key === undefined ? place : place.map((each, axis) => each - this.middle[axis]);
  }

  vectorOf(key) {
    return key === undefined ? this.at.q : this.at.keys[key];
  }

  factorOf(key) {
    return key === undefined ? this.view.factor : 1;
  }

  moveTo(point, key) {
    this.move(fromPixels(this.view, ...point, this.factorOf(key)), key);
  }

  move(place, key) {
    const most = this.view.extent / this.factorOf(key);
    const from = this.placeOf(key);
    const [across, up] = place.map((each, axis) => clamp(each, -most, most) - from[axis]);
    const vector = this.vectorOf(key).map((each, part) => this.rounded(each + across * this.axes.k[0][part] + up * this.axes.k[1][part]));
    this.at = { ...this.at, own: false, ...(key === undefined ? { q: vector } : { keys: replaced(this.at.keys, key, vector) }) };
    this.drawVectors(key !== undefined);
  }

  // Typed vectors have no more digits than can be typed.
  rounded(number) {
    const unit = 10 ** (2 - Math.floor(Math.log10(this.view.extent)));
    return this.header.typed ? Math.round(number * unit) / unit : number;
  }

  // A query between this one and the other; mask and bias stay those of this row.
  blend() {
    const share = Number(this.share.value);
    const to = this.q[Number(this.other.value)];
    const q = this.q[this.at.row].map((each, part) => this.rounded((1 - share) * each + share * to[part]));
    this.at = { ...this.at, q, own: share === 0 && this.at.keys === this.k };
    this.draw();
  }

  onKey({ key: pressed }, key) {
    if (pressed === "Home") this.snap(this.at.row);
    if (!ARROWS[pressed]) return pressed === "Home";
    const step = (2 * this.view.extent) / this.factorOf(key) / KEY_STEPS;
    const one = this.header.typed ? Number(step.toPrecision(1)) : step;
    this.move(this.placeOf(key).map((each, axis) => each + one * ARROWS[pressed][axis]), key);
    this.finish(PATIENCE);
    return true;
  }

  // After a move: read out, and typed vectors are typed anew, after some milliseconds without another move.
  finish(patience = 0) {
    this.spoken.textContent = this.inWords;
    clearTimeout(this.timer);
    if (this.header.typed) this.timer = setTimeout(() => this.type(), patience);
  }

  type() {
    this.timer = null;
    if (this.at.own) return;
    const [queries, keys] = this.header.typed.names;
    const texts = { query: textOf(replaced(this.q, this.at.row, this.at.q), queries), keys: textOf(this.at.keys, keys) };
    this.pending.sent.push(texts);
    this.send("vectors", texts);
  }

  // Of a (query, key) array, the row of a query.
  part(array, row = this.at.row) {
    return array.subarray(row * this.k.length, (row + 1) * this.k.length);
  }

  productsOf(query) {
    return Float64Array.from(this.at.keys, (key) => dot(query, key));
  }

  // What the softmax reads of products q · k, before the temperature; -Infinity where masked.
  readsOf(products, row = this.at.row) {
    const { scale, softcap } = this.header;
    const [allowed, bias] = [this.part(this.mask, row), this.bias && this.part(this.bias, row)];
    const capped = (score) => (softcap === null ? score : softcap * Math.tanh(score / softcap));
    return products.map((product, key) => (allowed[key] ? capped(scale * product) + (bias ? bias[key] : 0) : -Infinity));
  }

  weightsAt(reads, tau) {
    const sink = this.header.sink ?? -Infinity;
    const largest = Math.max(...reads) / tau;
    const most = Math.max(largest, sink);
    if (most === -Infinity) return reads.map(() => 0);
    const powers = reads.map((read) => Math.exp(read / tau - most));
    const sum = powers.reduce((one, two) => one + two, Math.exp(sink - most));
    return powers.map((power) => power / sum);
  }

  // The sum of weight times value, or of weight times the value's place.
  mix(weights, values = this.v) {
    const sum = new Float64Array(values[0].length);
    values.forEach((value, key) => value.forEach((each, part) => (sum[part] += weights[key] * each)));
    return sum;
  }

  // z of any query, with the keys and τ as they stand.
  mixedOf(row) {
    if (row === this.at.row) return this.mixed;
    return this.mix(this.weightsAt(this.readsOf(this.productsOf(this.q[row]), row), this.slider.tau));
  }

  draw() {
    super.draw();
    const { room, width } = this;
    this.colours = lookupTable(this.header.colours);
    this.compute();
    drawTable(this);
    const wide = width >= NARROW;
    const beside = (width - this.table.offsetWidth - 2 * BETWEEN) / 2;
    const below = beside < LEAST;
    this.root.classList.toggle("narrow", !wide);
    this.root.classList.toggle("below", below);
    this.root.classList.toggle("typed", Boolean(this.header.typed));
    const onPage = wide ? roomBelow(ABOVE_PLANE[this.header.typed ? 1 : 0], LOWEST, TALLEST) : TALLEST;
    const tallest = room === null ? onPage : Math.max(room - this.top.offsetHeight - this.legend.offsetHeight, 200);
    const widest = wide ? Math.floor(below ? (width - BETWEEN) / 2 : beside) : width;
    const size = [Math.min(widest, 1.4 * tallest), Math.min(tallest, wide ? widest : 0.8 * widest)];
    [this.view, this.valueView] = [viewOfKeys(this, ...size), viewOfValues(this, ...size)];
    this.table.parentNode.style.maxHeight = `${room === null ? heightOfRow(tallest, this.k.length) : tallest}px`;
    this.table.style.setProperty("--high", `${clamp(Math.floor(tallest / this.table.rows.length) - 2, 13, 32)}px`);
    this.table.parentNode.setAttribute("aria-label", this.header.title);
    makeReachable(this.table.parentNode);
    const range = colourRange([tr("attention weight of a key")], "0", this.colours, "1");
    this.showLegend(range, this.mask.includes(0), tr("thin lines: beyond them another key gets the largest weight"), tr("dotted: z from τ → 0 to τ → ∞"));
    this.drawVectors(true);
  }

  // All that follows from the vectors as they stand: of the run's own, its own weights.
  compute() {
    const { at, slider } = this;
    this.again = !at.own || slider.again;
    this.products = this.productsOf(at.q);
    this.reads = this.readsOf(this.products);
    this.shown = this.again ? this.weightsAt(this.reads, slider.tau) : Float64Array.from(this.part(this.pattern));
    this.mixed = this.again ? this.mix(this.shown) : this.z[at.row];
    this.keyPlaces = this.view && at.keys.map((_, key) => toPixels(this.view, this.placeOf(key)));
    Object.assign(this.root, { weights: this.shown, scores: this.products, z: this.mixed });
  }

  // All that changes with a vector or τ; `all`: also the lines where the heaviest key changes.
  drawVectors(all = false) {
    this.compute();
    if (all) this.borders = bordersOf(this);
    const [keys, values] = this.planes.map((layers) => layers.firstChild);
    paintKeys(keys, this);
    paintValues(values, this);
    for (const { marks } of [this.query, this.among]) sizedCanvas(marks, this.view.width, this.view.height);
    drawTable(this);
    this.stops.forEach(({ marks }, key) => {
      const [left, top] = this.keyPlaces[key];
      Object.assign(marks.style, { left: `${left}px`, top: `${top}px` });
      marks.setAttribute("aria-label", `${this.describe([key]).join(", ")}. ${tr("Arrow keys move it.")}`);
    });
    this.showState();
  }

  showState() {
    const { header, at, slider, again } = this;
    this.root.classList.toggle("again", again);
    this.tau.textContent = `τ = ${slider.text}`;
    this.badge.textContent = again ? (at.own ? tr("redrawn") : tr("moved")) : header.typed ? tr("typed") : tr("the run");
    slider.show(this.badge.textContent);
    this.back.disabled = at.own;
    this.note.textContent = header.typed ? tr("Drag q or a key, or choose one with the Tab key and move it with the arrow keys.") : this.noteOnPlane();
    const visible = this.part(this.mask).reduce((sum, seen) => sum + seen, 0);
    const bits = tr("Entropy {bits} bits", { bits: fixed(entropyOf(this.shown), 3) });
    const [z, own] = [this.mixed, this.z[at.row]];
    const lengths = Math.hypot(...z) * Math.hypot(...own);
    const facts = { length: threeDigits(Math.hypot(...z)), cosine: fixed(lengths ? dot(z, own) / lengths : 0, 3) };
    const said = again && !header.typed ? tr("z: length {length}, cosine with the run's z {cosine}", facts) : this.zText;
    this.change.textContent = `${said}. ${bits}; ${tr("at most")} log₂ ${visible} = ${fixed(visible ? Math.log2(visible) : 0, 3)}`;
    const most = this.shown.indexOf(Math.max(...this.shown));
    const heaviest = tr("{key} has the largest weight, {weight}", { key: header.keys[most], weight: fixed(this.shown[most], 3) });
    const how = header.typed ? tr("Arrow keys move it.") : tr("Arrow keys move the query, Home puts it back.");
    this.query.marks.setAttribute("aria-label", `${header.title}: ${tr("{keys} keys in a plane", { keys: header.keys.length })}; ${heaviest}. ${how}`);
    this.among.marks.setAttribute("aria-label", this.inWords);
  }

  noteOnPlane() {
    const { shares: [[first = 1, second = 0]] } = this.header;
    const { q } = this.at;
    const place = this.placeOf();
    const facts = { share: percentText(first + second), outside: threeDigits(Math.sqrt(Math.max(dot(q, q) - dot(place, place), 0))) };
    return this.at.own
      ? tr("Weights of the run. The plane holds {share} of the keys' variance; outside it the query has length {outside}. Drag q.", facts)
      : tr("Computed in the browser from the run's keys and values. Outside the plane the query has length {outside}; that part stays while you move it, and counts in every score.", facts);
  }

  // The numbers of z; of a long one its length.
  get zText() {
    const { mixed } = this;
    if (mixed.length <= MOST_CELLS) return `z = (${Array.from(mixed, threeDigits).join("; ")})`;
    return tr("z, the weighted sum of the values, has length {length}", { length: threeDigits(Math.hypot(...mixed)) });
  }

  // z and the weights, for screen readers; of many keys the heaviest.
  get inWords() {
    const order = [...this.shown.keys()].sort((one, other) => this.shown[other] - this.shown[one]).slice(0, STOPS);
    const weights = order.map((key) => `${this.header.keys[key]} ${fixed(this.shown[key], 3)}`).join(", ");
    return `${this.zText}, ${tr("inside the hull of the values; weights: {weights}", { weights })}`;
  }

  // The query on whose square a point is; null if there is none.
  queryAt(point, queries) {
    return nearest(queries.map((query) => toPixels(this.view, inPlane(this.axes.k, query), this.view.factor)), point, () => NEAR);
  }

  // [key] whose dot of these is at a point; null if there is none.
  keyAt(places, point) {
    const key = this.dragged ? null : nearest(places, point, (one) => radiusOf(this.shown[one]) + 4);
    return key === null ? null : [key];
  }

  describe([key]) {
    const weight = this.part(this.mask)[key] ? exactText(Math.fround(this.shown[key])) : tr("0, masked");
    return [`${tr("weight")} ${weight}`, `${tr("key")} ${this.header.keys[key]}`];
  }

  paint(canvas, caption) {
    return paintOwnVectors(this, canvas, caption);
  }
}

// The rows of a matrix, in double precision.
function rowsOf({ values, shape: [rows, size] }) {
  return Array.from({ length: rows }, (_, row) => Float64Array.from(values.subarray(row * size, (row + 1) * size)));
}

function dot(one, other) {
  let sum = 0;
  for (let part = 0; part < one.length; part += 1) sum += one[part] * other[part];
  return sum;
}

function inPlane(axes, vector) {
  return axes.map((axis) => dot(axis, vector));
}

function replaced(rows, at, row) {
  return rows.map((one, place) => (place === at ? row : one));
}

// Vectors as they are typed.
function textOf(rows, names) {
  const typed = (number) => String(Number(number.toPrecision(6)));
  return rows.map((row, at) => [names[at], ...Array.from(row, typed)].filter(Boolean).join(" ")).join("; ");
}
