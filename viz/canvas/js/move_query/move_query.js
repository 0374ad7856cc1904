// needs: shared/grid.js shared/payload.js temperature/temperature_row.js move_query/move_query_draw.js
// The move_query component: a query is dragged through the plane of the keys, and the weights follow.
// The part of the query outside the plane stays; its share of each score came with the data, so the weights are exact.

const ABOVE_PLANE = 356; // pixels of page: heading, tabs, the row's number, the controls
const [LOWEST, TALLEST] = [330, 440]; // pixels of the plane
const NARROW = 640; // pixels: below this the weights are under the plane
const NEAR = 14; // pixels from a query's own place, within which letting go snaps to it
const KEY_STEPS = 40; // presses of an arrow key across the plane

class View extends Picture {
  constructor(root) {
    super(root);
    this.cells = element("canvas");
    this.marks = new Grid(this, this).marks;
    this.plane = element("div", "plane", element("div", "layers", this.cells, this.marks));
    this.row = new RowBars(this.spoken);
    this.row.head.hidden = true;
    this.change = element("div", "entropy");
    this.row.bars.before(this.change);
    this.top = this.buildControl();
    root.append(this.top, element("div", "stage", this.plane, this.row.panel), this.tip);
    this.listen();
  }

  buildControl() {
    this.back = button(tr("Back to the run"), tr("Put the query where the run had it"), () => this.snap(this.at.row));
    this.other = element("select");
    this.other.setAttribute("aria-label", tr("The other query"));
    this.slider = element("input");
    Object.assign(this.slider, { type: "range", min: 0, max: 1, step: 0.01, value: 0 });
    this.slider.setAttribute("aria-label", tr("From this query to the other one"));
    this.slider.addEventListener("input", () => this.blend());
    this.slider.addEventListener("change", () => this.release());
    this.other.addEventListener("change", () => this.blend());
    const towards = element("label", "", tr("Towards the query"), this.other, this.slider);
    this.badge = element("strong", "badge");
    this.note = element("span", "note");
    this.legend = element("div", "legend");
    const state = element("div", "state", this.badge, this.note);
    return element("div", "", element("div", "control", this.back, towards), state, this.legend);
  }

  listen() {
    const { marks } = this;
    marks.addEventListener("pointerdown", (event) => {
      marks.setPointerCapture(event.pointerId);
      this.dragging = true;
      this.moveTo(this.pointAt(event));
    });
    marks.addEventListener("pointermove", (event) => {
      if (this.dragging) this.moveTo(this.pointAt(event));
    });
    marks.addEventListener("pointerup", (event) => {
      this.dragging = false;
      const near = this.queryNear(event);
      if (near !== null) this.snap(near);
      this.row.readOut(this.matrix);
    });
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const { header, arrays } = unpack(data);
    const rows = header.queries.length;
    const ofHead = (name) => arrayAt(arrays, named(header.path, name, header.head));
    const same = this.header?.title === header.title && this.header.row === header.row;
    this.header = header;
    for (const name of ["keys", "queries", "rest"]) this[name] = arrayAt(arrays, `plane.${name}`).values;
    for (const name of ["pattern", "mask", "v", "z"]) this[name] = ofHead(name).values;
    this.bias = header.biased ? ofHead("bias").values : null;
    this.d_v = ofHead("v").shape[1];
    this.table = lookupTable(header.colours);
    this.other.replaceChildren(...header.queries.map((name, index) => new Option(name, index)));
    // The answer to a query that was chosen here must not undo what has been moved since.
    if (!same && this.asked !== header.row) this.begin(header.row);
    if (this.at.row >= rows) this.begin(header.row);
    this.asked = null;
    this.draw();
  }

  // The query of the run, at its own place.
  begin(row) {
    const place = this.placeOf(row);
    this.at = { row, point: place, rest: this.part(this.rest, row), own: true };
    this.slider.value = 0;
    this.other.value = String((row + 1) % this.header.queries.length);
  }

  placeOf(row) {
    return [this.queries[2 * row], this.queries[2 * row + 1]];
  }

  // One row of a (query, key) array.
  part(array, row) {
    const size = this.header.keys.length;
    return array.subarray(row * size, (row + 1) * size);
  }

  snap(row) {
    const other = row !== this.at.row;
    this.begin(row);
    this.draw();
    if (other) {
      this.asked = row;
      this.send("row", row);
    }
    this.row.readOut(this.matrix);
  }

  moveTo(point) {
    const most = this.view.extent / this.view.factor;
    const inside = point.map((each) => clamp(each, -most, most));
    this.at = { ...this.at, point: inside, own: false };
    this.drawQuery();
  }

  // A query between this one and the other; mask and bias stay those of this row.
  blend() {
    const share = Number(this.slider.value);
    const [row, other] = [this.at.row, Number(this.other.value)];
    const mix = (one, two) => (1 - share) * one + share * two;
    const [from, to] = [this.placeOf(row), this.placeOf(other)];
    const [own, theirs] = [this.part(this.rest, row), this.part(this.rest, other)];
    const point = from.map((each, axis) => mix(each, to[axis]));
    this.at = { row, point, rest: own.map((each, key) => mix(each, theirs[key])), own: share === 0 };
    this.draw();
  }

  release() {
    if (Number(this.slider.value) === 1) this.snap(Number(this.other.value));
    else this.row.readOut(this.matrix);
  }

  onKey({ key }) {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key];
    if (key === "Home") this.snap(this.at.row);
    if (!by) return key === "Home";
    const step = (2 * this.view.extent) / this.view.factor / KEY_STEPS;
    this.moveTo(this.at.point.map((each, axis) => each + step * by[axis]));
    this.row.readOut(this.matrix);
    return true;
  }

  // The weights of the query as it stands: those of the run where it is the run's.
  weights() {
    const { header, at } = this;
    if (at.own) return this.part(this.pattern, at.row);
    const scores = this.scores(at.point).map((score) => score / header.temperature);
    const sink = header.sink === null ? -Infinity : header.sink;
    const largest = scores.reduce((one, two) => Math.max(one, two), sink);
    const powers = scores.map((score) => Math.exp(score - largest));
    const sum = powers.reduce((one, two) => one + two, Math.exp(sink - largest));
    return Float32Array.from(powers, (power) => power / sum);
  }

  // What the softmax reads, before the temperature; -Infinity where masked.
  scores([x, y]) {
    const { header, at } = this;
    const allowed = this.part(this.mask, at.row);
    const bias = this.bias && this.part(this.bias, at.row);
    return Float64Array.from(at.rest, (rest, key) => {
      if (!allowed[key]) return -Infinity;
      const across = x * (this.keys[2 * key] + header.mean[0]);
      const up = y * (this.keys[2 * key + 1] + header.mean[1]);
      let score = header.scale * (across + up) + rest;
      if (header.softcap !== null) score = header.softcap * Math.tanh(score / header.softcap);
      return bias ? score + bias[key] : score;
    });
  }

  draw() {
    super.draw();
    const wide = this.width >= NARROW;
    this.root.classList.toggle("narrow", !wide);
    // In Present, what the controls leave of the window; else what the page leaves of it.
    const { room } = this;
    const onPage = wide ? roomBelow(ABOVE_PLANE, LOWEST, TALLEST) : TALLEST;
    const tallest = room === null ? onPage : Math.max(room - this.top.offsetHeight, 200);
    const widest = room === null ? TALLEST : tallest;
    const size = Math.round(wide ? Math.min(this.width * 0.58, widest * 1.3) : this.width);
    this.view = viewOf(this, size, Math.min(tallest, size));
    const { height } = this.view;
    if (wide) this.row.panel.style.height = `${room === null ? heightOfRow(height, this.header.keys.length) : height}px`;
    else this.row.panel.style.removeProperty("height");
    const range = colourRange([tr("attention weight of a key")], "0", this.table, "1");
    const border = element("span", "", tr("thin lines: beyond them another key gets the largest weight"));
    this.legend.replaceChildren(range, border);
    this.drawQuery(true);
  }

  // All that changes while the query moves; `all`: also the lines where the heaviest key changes, and the sizes.
  drawQuery(all = false) {
    const { header, at } = this;
    this.shown = this.weights();
    this.root.weights = this.shown;
    if (all) this.borders = bordersOf(this);
    const allowed = this.part(this.mask, at.row);
    const rows = { size: 1, labels: [header.queries[at.row]], notes: [] };
    const columns = { size: header.keys.length, labels: header.keys };
    this.matrix = { rows, columns, values: this.shown, allowed };
    paintPlane(this.cells, this);
    sizedCanvas(this.marks, this.view.width, this.view.height);
    // The plane has its width by now, and leaves the bars theirs.
    if (all) this.row.measure(header.keys.length);
    this.row.draw(this.matrix, this.theme);
    this.showState();
  }

  showState() {
    const { header, at } = this;
    this.root.classList.toggle("again", !at.own);
    this.badge.textContent = at.own ? tr("the run") : tr("moved");
    this.back.disabled = at.own;
    const share = header.shares[0] + header.shares[1];
    const outside = threeDigits(header.outside[at.row]);
    this.note.textContent = at.own
      ? tr("Weights of the run. The plane holds {share} of the keys' variance; outside it the query has length {outside}. Drag q.", { share: percentText(share), outside })
      : tr("Computed in the browser from the run's keys and values. Outside the plane the query has length {outside}; that part stays while you move it, and counts in every score.", { outside });
    const { length, cosine } = this.changeOfResult();
    this.change.textContent = at.own
      ? tr("z, the weighted sum of the values, has length {length}", { length: threeDigits(length) })
      : tr("z: length {length}, cosine with the run's z {cosine}", { length: threeDigits(length), cosine: fixed(cosine, 3) });
    Object.assign(this.change.dataset, { length, cosine });
    const most = this.shown.indexOf(Math.max(...this.shown));
    const heaviest = tr("{key} has the largest weight, {weight}", { key: header.keys[most], weight: fixed(this.shown[most], 3) });
    const how = tr("Arrow keys move the query, Home puts it back.");
    this.marks.setAttribute("aria-label", `${header.title}: ${tr("{keys} keys in a plane", { keys: header.keys.length })}; ${heaviest}. ${how}`);
  }

  // Length of z = sum of weight times value, and its cosine with the z of the run's row.
  changeOfResult() {
    const size = this.d_v;
    const z = new Float64Array(size);
    this.shown.forEach((weight, key) => {
      for (let part = 0; part < size; part += 1) z[part] += weight * this.v[key * size + part];
    });
    const own = this.z.subarray(this.at.row * size, (this.at.row + 1) * size);
    const dot = (one, two) => one.reduce((sum, each, part) => sum + each * two[part], 0);
    const lengths = Math.sqrt(dot(z, z) * dot(own, own));
    return { length: Math.sqrt(dot(z, z)), cosine: lengths ? dot(z, own) / lengths : 0 };
  }

  // The point of the plane under the pointer, in the query's units.
  pointAt(event) {
    return fromPixels(this.view, ...pointIn(this.marks, event));
  }

  queryNear(event) {
    const [left, top] = pointIn(this.marks, event);
    const distances = this.header.queries.map((_, row) => {
      const [x, y] = toPixels(this.view, this.placeOf(row), this.view.factor);
      return Math.hypot(x - left, y - top);
    });
    const nearest = distances.indexOf(Math.min(...distances));
    return distances[nearest] <= NEAR ? nearest : null;
  }

  // Keys stand where they stand in the plane.
  cellAt(point) {
    const key = this.dragging ? null : keyNear(this, ...point);
    return key === null ? null : [key];
  }

  point() {}

  describe([key]) {
    const allowed = this.part(this.mask, this.at.row)[key];
    const weight = allowed ? exactText(this.shown[key]) : tr("0, masked");
    return [`${tr("weight")} ${weight}`, `${tr("key")} ${this.header.keys[key]}`];
  }

  paint(canvas, caption) {
    return paintMoveQuery(this, canvas, caption);
  }
}
