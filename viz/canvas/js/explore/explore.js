// needs: shared/picture.js shared/tau_slider.js matrices/matrices.css matrices/matrices_draw.js explore/explore_chips.js explore/explore_steps.js explore/explore_heads.js explore/explore_detail.js explore/explore_picker.js
// The explore component: tokens to choose from, one word on its way through one head, and the same word in all heads.

const NARROW = 700; // pixels: below this everything is in one column

class View extends Picture {
  constructor(root) {
    super(root);
    const label = tr("Temperature τ, redrawn in the browser");
    this.slider = new TauSlider(label, () => this.redraw(), (tau) => this.send("tau", tau));
    this.chips = new Chips(this);
    this.steps = new Steps(this);
    this.detail = new Detail(this);
    this.heads = new HeadRows(this);
    this.picker = new Picker(this);
    this.chain = element("div", "chain", this.steps.node, this.detail.node);
    this.panel = element("div", "panel", this.chain, this.heads.node);
    root.append(this.chips.node, this.panel, this.tip, this.spoken);
    this.chooses = "query"; // what the next click on a token chooses
    this.sorted = false; // whether the rows of all heads are in the order of the chosen key
  }

  close() {
    super.close();
    this.slider.close();
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const { header, arrays } = unpack(data);
    const equations = equationsOf(header, arrays);
    const of = ({ kind, place, sides }) => JSON.stringify([kind, place, sides.map(({ tokens }) => tokens)]);
    const another = !this.header || of(header) !== of(this.header);
    this.header = header;
    this.boxes = header.boxes.map((box, index) => ({ ...box, parts: equations[index] }));
    this.keys = axisOf("key", header.labels.key.length, header);
    this.rows = this.rowsOfAllHeads(arrays);
    if (!this.boxes.some(({ name }) => name === this.opened)) this.opened = null;
    if (header.taus.length) this.slider.update(header.taus, header.temperature, another);
    this.tip.hidden = true;
    this.draw();
  }

  // A matrix with a row for each head: the chosen word's weights.
  rowsOfAllHeads(arrays) {
    const { places, paths, query } = this.header;
    const all = (name, Type) => {
      const layers = paths.map((path) => arrayAt(arrays, named(path, name, ":", query)).values);
      const rows = new Type(layers.reduce((sum, { length }) => sum + length, 0));
      let start = 0;
      for (const values of layers) {
        rows.set(values, start);
        start += values.length;
      }
      return rows;
    };
    const rows = { size: places.length, labels: places.map(([layer, head]) => `L${layer} H${head}`) };
    return { rows, columns: this.keys, values: all("pattern", Float32Array), allowed: all("mask", Uint8Array) };
  }

  draw() {
    super.draw();
    this.narrow = this.width < NARROW;
    this.root.classList.toggle("narrow", this.narrow);
    this.tables = lookupTables(this.header.scales, this.theme.background);
    this.chips.draw();
    if (this.room !== null) this.panel.style.setProperty("--panel", `${this.room - this.panel.offsetTop}px`);
    this.picker.draw();
    this.steps.draw();
    this.heads.draw();
    this.detail.draw();
    (this.opened === "softmax" ? this.detail.line : this.steps.softmax).append(this.steps.control);
    this.redraw();
  }

  // All that changes with τ.
  redraw() {
    this.root.classList.toggle("again", this.again);
    [this.root.weights, this.root.mixture] = [this.weights, this.mixture];
    this.chips.shade(this.weights);
    this.steps.redraw();
    this.detail.redraw();
  }

  get again() {
    return this.header.taus.length > 0 && this.slider.again;
  }

  part(symbol) {
    return this.boxes.flatMap(({ parts }) => parts).find((part) => part.symbol === symbol);
  }

  // The row of a matrix that belongs to the chosen query or key; of a very large matrix it is the only one here.
  row(part, place = this.header[part.rows.name]) {
    const [at, size] = [part.rows.size === 1 ? 0 : place, part.columns.size];
    return part.values.subarray(at * size, (at + 1) * size);
  }

  // The chosen word's weights, at the temperature of the slider.
  get weights() {
    if (!this.again) return this.row(this.part("weights"));
    const masked = this.part("masked");
    return softmaxRows({ values: this.row(masked), rows: { size: 1 }, columns: masked.columns }, this.slider.tau);
  }

  // The weighted values; where not all values are here, those of the run.
  get mixture() {
    const [z, v] = [this.part("z"), this.part("v")];
    if (!this.again || v.rows.size !== this.keys.size) return this.row(z);
    const mixed = new Float32Array(z.columns.size);
    this.weights.forEach((weight, key) => this.row(v, key).forEach((value, place) => (mixed[place] += weight * value)));
    return mixed;
  }

  visible(key) {
    const { allowed } = this.part("weights");
    const row = this.part("weights").rows.size === 1 ? 0 : this.header.query;
    return !allowed || allowed[row * this.keys.size + key] === 1;
  }

  // A click on a token: a query, then a key; with Shift always a key.
  click(side, place, shift) {
    const [row, isKey] = [place - side.first, side.answers && place < this.keys.size];
    const isQuery = row >= 0;
    if (isKey && (shift || this.chooses === "key" || !isQuery)) this.chooseKey(place);
    else if (isQuery) this.chooseQuery(side, row);
  }

  chooseQuery(side, row) {
    this.choose("key");
    this.chips.mark(side, row);
    this.say(`${tr("query")} ${side.tokens[row + side.first]}`);
    this.send("token", { kind: side.kind, query: row });
  }

  chooseKey(key) {
    this.choose("query");
    this.header.key = key;
    this.header.names.key = this.keys.labels[key];
    this.say(`${tr("key")} ${this.keyInWords(key)}`);
    this.draw();
    this.send("key", key);
  }

  // What the next click on a token chooses.
  choose(what) {
    this.chooses = what;
    this.chips.press();
  }

  keyInWords(key) {
    const numbers = this.boxes.flatMap(({ name, parts }) => {
      if (parts[0].columns.name !== "key" || name === "mask") return [];
      const value = name === "softmax" ? this.weights[key] : this.row(parts[0])[key];
      return [`${singular(parts[0].symbol)} ${exactText(value)}`];
    });
    return [this.keys.labels[key], ...(this.visible(key) ? numbers : [tr("masked")])].join(", ");
  }

  toggle(name) {
    this.opened = this.opened === name ? null : name;
    this.draw();
    const place = this.opened ? this.detail.node : this.steps.node;
    place.querySelector(`[data-box="${name}"]`)?.focus({ preventScroll: true });
  }

  say(text) {
    this.spoken.textContent = text;
  }

  openHead([layer, head]) {
    this.say(tr("layer {layer}, head {head}, chosen", { layer, head }));
    this.send("head", { layer, head });
  }

  paint(canvas, caption) {
    return this.heads.paint(canvas, caption);
  }
}

// "score" of "scores": one number of a matrix.
function singular(symbol) {
  return symbol.replace(/s$/, "");
}

// Text in which a letter after _ is a subscript.
function subscripted(text) {
  return element("span", "", ...text.split(/_(\w)/).map((part, index) => (index % 2 ? element("sub", "", part) : part)));
}
