// needs: shared/picture.js shared/payload.js whole_model/whole_model_layout.js whole_model/whole_model_draw.js
// The whole_model component: figure 1 of the paper with the numbers of a run. A token travels from box to box; beside the
// picture stands what happens to it there. What is chosen is sent once the token rests; links and switches at once.

const KEYS =
  "Arrow up and down move the token from box to box, left and right choose another token, Page up and Page down go from " +
  "layer to layer, Space plays, Z opens the layer, Enter opens the page that explains the box.";
const BEAT = 1300; // milliseconds at each box while the token travels by itself
const TRAVEL = 260; // milliseconds from box to box
const REST = 600; // milliseconds without a move until the page is told

class View extends Picture {
  constructor(root) {
    super(root);
    this.all = element("canvas");
    this.marks = element("canvas");
    const layers = element("div", "layers");
    layers.append(this.all, this.marks);
    this.stage = element("div", "stage");
    this.stage.append(layers);
    const body = element("div", "body");
    body.append(this.stage, this.makePanel());
    root.append(this.makeToolbar(), body, this.spoken, this.tip);
    this.pending = new Pending();
    this.listen();
  }

  makeToolbar() {
    const toolbar = element("div", "toolbar");
    this.legend = element("div", "legend");
    this.player = button("Play", "The token travels through the whole model", () => this.play(!this.playing));
    this.zoom = toggleButton("Open layer", "The boxes of one layer with all their numbers", (pressed) => this.zoomTo(pressed));
    const [back, on] = [["‹", "One box back", -1], ["›", "One box on", 1]].map(([text, title, by]) => {
      return button(text, title, () => this.step(by));
    });
    toolbar.append(this.legend, back, this.player, on, this.zoom, this.pngButton());
    return toolbar;
  }

  makePanel() {
    const panel = element("div", "panel");
    this.heading = element("h3");
    this.where = element("p", "where");
    this.words = element("dl");
    this.size = element("p", "dim");
    this.open = button("Open", "The page that explains this box", () => this.send("open", { box: this.box.name }));
    this.switches = element("div", "switches");
    this.switchButtons = Object.fromEntries(
      [["off", "Off", "Runs the model without what this box adds"], ["residual", "Residual off", "Runs the model without this residual connection"]].map(
        ([name, text, title]) => [name, toggleButton(text, title, () => this.turn(name))],
      ),
    );
    this.reset = button("All on", "Runs the model as it was trained", () => this.send("switch", { box: "", switch: "" }));
    this.switches.append(...Object.values(this.switchButtons), this.reset);
    this.score = element("p", "score");
    panel.append(this.heading, this.where, this.words, this.size, this.open, this.switches, this.score);
    return panel;
  }

  listen() {
    const { marks } = this;
    marks.tabIndex = 0;
    marks.setAttribute("role", "application");
    marks.addEventListener("pointermove", (event) => this.hover(event));
    marks.addEventListener("pointerleave", () => this.leave());
    marks.addEventListener("click", (event) => this.click(this.placeAt(event)));
    marks.addEventListener("keydown", (event) => this.onKey(event));
  }

  close() {
    super.close();
    clearInterval(this.playing);
    clearTimeout(this.resting);
  }

  // Without the panel beside the picture.
  measure() {
    return this.stage.clientWidth;
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const { header, take } = unpack(data);
    const sizes = Object.fromEntries(header.rows.map(({ name, tokens }) => [name, tokens.length]));
    for (const box of header.boxes) {
      box.numbers = take(Float32Array, box.values.length * sizes[box.stack]);
      if (box.heads) box.codes = take(Uint8Array, box.heads.count * box.heads.cells[0] * box.heads.cells[1]);
    }
    [this.header, this.boxes, this.sizes, this.images] = [header, header.boxes, sizes, new Map()];
    this.table = packedColours(lookupTable(header.scale));
    this.hovered = null;
    this.tip.hidden = true;
    const chosen = this.playing || this.resting ? this.chosen() : this.pending.afterAnswer(header.chosen);
    this.box = this.boxes.find(({ name }) => name === chosen.box) || this.boxes[0];
    this.positions = Object.fromEntries(header.rows.map(({ name }) => [name, Math.min(chosen.positions[name] ?? 0, sizes[name] - 1)]));
    const names = header.rows.map(({ title, tokens }) => `${title}, ${tokens.length} tokens`);
    this.marks.setAttribute("aria-label", `The whole model, ${this.boxes.length} boxes: ${names.join("; ")}. ${KEYS}`);
    this.describe();
    this.draw();
  }

  chosen() {
    return { box: this.box.name, positions: { ...this.positions } };
  }

  rowOf(stack) {
    return this.header.rows.find(({ name }) => name === stack);
  }

  has(box, name) {
    return box.values.includes(name);
  }

  // At the chosen token; undefined where the box has no such value.
  value(box, name) {
    const index = box.values.indexOf(name);
    return index < 0 ? undefined : box.numbers[index * this.sizes[box.stack] + this.positions[box.stack]];
  }

  isOff(box, name) {
    const own = this.header.off[box.name] || [];
    const twin = name === "residual" && this.boxes.find(({ stack, layer, sublayer, part }) => {
      return sublayer && part === sublayer && sublayer === box.sublayer && stack === box.stack && layer === box.layer;
    });
    return own.includes(name) || Boolean(twin && this.header.off[twin.name]?.includes(name));
  }

  // A template of viz/canvas/whole_model.py with the values of the chosen token.
  fill(text, box) {
    const keys = box.part === "cross_attn" ? "encoder" : box.stack;
    return text.replace(/\{(\w+)(?::([\w%]+))?\}/g, (_, name, form) => {
      const value = this.value(box, name);
      if (form === "%") return percent(value);
      if (form === "int") return value.toLocaleString("en");
      return form === "token" ? this.rowOf(keys).tokens[value] : threeDigits(value);
    });
  }

  // What stands at the right of a closed box.
  numberOf(box) {
    if (box.part === "output") return "";
    return box.part === "softmax" ? percent(this.value(box, "out")) : threeDigits(this.value(box, "out"));
  }

  headImage(box, head) {
    const key = `${box.name} ${head}`;
    if (this.images.has(key)) return this.images.get(key);
    const [rows, columns] = box.heads.cells;
    const canvas = element("canvas");
    [canvas.width, canvas.height] = [columns, rows];
    const image = new ImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    const codes = box.codes.subarray(head * rows * columns, (head + 1) * rows * columns);
    codes.forEach((code, index) => (pixels[index] = code ? this.table[code] : 0));
    canvas.getContext("2d").putImageData(image, 0, 0);
    this.images.set(key, canvas);
    return canvas;
  }

  draw() {
    this.width = this.measure();
    this.theme = themeOf(this.root);
    this.layout = layOutModel(this);
    drawModel(this.all, this);
    this.traveller = this.middleOf(this.box);
    this.mark();
    this.drawLegend();
  }

  mark() {
    drawMarksOfModel(this.marks, this);
  }

  middleOf(box) {
    const place = this.layout.places.get(box.name);
    return place ? place.y + place.height / 2 : 0;
  }

  placeAt(event) {
    const box = this.marks.getBoundingClientRect();
    return findPlace(this, event.clientX - box.left, event.clientY - box.top);
  }

  hover(event) {
    const place = this.placeAt(event);
    const moved = place?.box !== this.hovered?.box;
    this.hovered = place;
    this.marks.style.cursor = place ? "pointer" : "default";
    if (moved) this.mark();
    this.tip.hidden = true;
    if (place?.box) this.showTip(this.tipOf(place.box), event);
  }

  leave() {
    this.hovered = null;
    this.tip.hidden = true;
    this.mark();
  }

  tipOf(box) {
    const lines = box.words.map(([formula, text]) => element("div", "", `${formula}: ${this.fill(text, box)}`));
    const share = this.has(box, "share") ? [element("div", "", `share of the sum: ${percent(this.value(box, "share"))}`)] : [];
    const page = box === this.box ? `Click: open “${box.page}”` : "Click: bring the token here";
    return [element("strong", "", this.nameOf(box)), element("div", "dim", sizeOf(box)), ...lines, ...share, element("div", "dim", page)];
  }

  nameOf(box) {
    const stack = this.rowOf(box.stack).title;
    return `${box.title}, ${stack.toLowerCase()}${box.layer === null ? "" : `, layer ${box.layer}`}`;
  }

  click(place) {
    if (place?.token) this.chooseToken(place.token.stack, place.token.index);
    else if (place?.box === this.box) this.send("open", { box: this.box.name });
    else if (place?.box) this.goTo(place.box);
  }

  onKey(event) {
    if (hasModifier(event)) return;
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    const token = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const layer = { PageUp: 1, PageDown: -1 }[event.key];
    const end = { Home: 0, End: -1 }[event.key];
    if (step) this.step(step);
    else if (token) this.chooseToken(this.box.stack, this.positions[this.box.stack] + token);
    else if (layer) this.stepLayer(layer);
    else if (end !== undefined) this.goTo(this.boxes.at(end));
    else if (event.key === "Enter") this.send("open", { box: this.box.name });
    else if (event.key === " ") this.play(!this.playing);
    else if (event.key === "z" || event.key === "Z") this.zoom.click();
    else return;
    event.preventDefault();
  }

  step(by) {
    this.play(false);
    this.goTo(this.boxes[clamp(this.boxes.indexOf(this.box) + by, 0, this.boxes.length - 1)]);
  }

  stepLayer(by) {
    const groups = [...new Map(this.boxes.map((box) => [groupOf(this.boxes, box)[0], 0])).keys()];
    const index = groups.indexOf(groupOf(this.boxes, this.box)[0]);
    this.goTo(groups[clamp(index + by, 0, groups.length - 1)]);
  }

  chooseToken(stack, index) {
    this.positions[stack] = clamp(index, 0, this.sizes[stack] - 1);
    if (this.box.stack !== stack) this.box = this.boxes.find((box) => box.stack === stack);
    this.describe();
    this.draw();
    this.rest();
  }

  goTo(box) {
    const from = this.traveller;
    const same = this.layout.places.has(box.name) && box.stack === this.box.stack;
    this.box = box;
    this.describe();
    if (this.zoomed && !this.layout.places.has(box.name)) this.draw();
    else this.travel(same ? from : this.middleOf(box));
    this.keepInView();
    this.rest();
  }

  // Moves the pill from where it was to the box.
  travel(from) {
    const to = this.middleOf(this.box);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const start = performance.now();
    const frame = (now) => {
      const done = still ? 1 : clamp((now - start) / TRAVEL, 0, 1);
      this.traveller = from + (to - from) * (1 - (1 - done) ** 3);
      this.mark();
      if (done < 1) this.moving = requestAnimationFrame(frame);
    };
    cancelAnimationFrame(this.moving);
    frame(start);
  }

  keepInView() {
    const box = this.marks.getBoundingClientRect();
    const y = box.top + this.middleOf(this.box);
    if (y < 120 || y > innerHeight - 40) {
      const anchor = element("div", "anchor");
      anchor.style.top = `${this.middleOf(this.box)}px`;
      this.stage.append(anchor);
      anchor.scrollIntoView({ block: "center", behavior: "smooth" });
      anchor.remove();
    }
  }

  play(on) {
    clearInterval(this.playing);
    this.playing = 0;
    if (on) {
      if (this.box === this.boxes.at(-1)) this.goTo(this.boxes[0]);
      this.playing = setInterval(() => {
        const next = this.boxes[this.boxes.indexOf(this.box) + 1];
        if (next) this.goTo(next);
        else this.play(false);
      }, BEAT);
    } else this.rest();
    this.player.textContent = on ? "Pause" : "Play";
  }

  zoomTo(zoomed) {
    this.zoomed = zoomed;
    this.draw();
    this.keepInView();
  }

  turn(name) {
    this.send("switch", { box: this.box.name, switch: name });
  }

  // Tells the page where the token is once it has rested there.
  rest() {
    clearTimeout(this.resting);
    this.resting = 0;
    if (this.playing || !this.send) return;
    this.resting = setTimeout(() => {
      this.resting = 0;
      const chosen = this.chosen();
      if (JSON.stringify(chosen) === JSON.stringify(this.pending.sent.at(-1) ?? this.header.chosen)) return;
      this.pending.sent.push(chosen);
      this.send("move", chosen);
    }, REST);
  }

  // The panel: what happens at this box, in words and numbers.
  describe() {
    const { box } = this;
    const { tokens, title, predicts } = this.rowOf(box.stack);
    const position = this.positions[box.stack];
    this.heading.textContent = box.title;
    const next = predicts ? `, should predict “${predicts[position]}”` : "";
    const layer = box.layer === null ? "" : `, layer ${box.layer}`;
    this.where.textContent = `${title}${layer}. Token ${position}: “${tokens[position]}”${next}`;
    const words = box.words.map(([formula, text]) => [formula, this.fill(text, box)]);
    if (this.has(box, "share")) words.push(["share of the sum", percent(this.value(box, "share"))]);
    this.words.replaceChildren(...words.flatMap(([formula, text]) => [element("dt", "", formula), element("dd", "", text)]));
    this.size.textContent = [box.shape, sizeOf({ ...box, shape: "" })].filter(Boolean).join(". ");
    this.open.textContent = `Open “${box.page}”`;
    for (const [name, node] of Object.entries(this.switchButtons)) {
      node.hidden = !box.switches.includes(name);
      node.setAttribute("aria-pressed", String(this.isOff(box, name)));
    }
    this.describeScore();
    this.spoken.textContent = [this.nameOf(box), `“${tokens[position]}”`, ...words.map((pair) => pair.join(": "))].join("; ");
  }

  describeScore() {
    const { before, after, off, alone } = this.header;
    const any = Object.keys(off).length > 0;
    const each = this.box.switches.map((name) => [name, alone[`${this.box.name} ${name}`]]).filter(([, number]) => number !== undefined);
    const nats = (number) => withMinus(number.toFixed(3));
    const said = each.map(([name, number]) => `${name === "off" ? "This box off" : "Its residual off"}, alone: ${nats(number)}.`);
    const now = any ? `${nats(before)} → ${nats(after)} nats` : `${nats(before)} nats`;
    this.score.replaceChildren(element("span", "", "log p of the text: "), element("strong", "", now), ` ${said.join(" ")}`);
    this.reset.hidden = !any;
  }

  drawLegend() {
    const pooled = this.boxes.some(({ heads }) => heads && (heads.queries > heads.cells[0] || heads.keys > heads.cells[1]));
    const lines = `A line is as thick as the vector of the chosen token is long; the thickest is ${threeDigits(longestVector(this))}. `;
    const shares = "Below a sub-layer’s name: its share of the sum. ";
    const heads = `Small squares: heads, attention weights from 0 (dark) to 1 (bright)${pooled ? "; a cell shows the largest of several" : ""}.`;
    this.legendText = lines + shares + heads;
    this.legend.textContent = this.legendText;
  }

  paint(canvas, caption) {
    const { layout, theme, header } = this;
    const range = `Lines: length of the chosen token's vector, the thickest ${threeDigits(longestVector(this))}. Heads: weights 0 to 1`;
    const { pen, size, top } = startPicture(canvas, [layout.width, layout.height], theme, { title: header.title, range, caption });
    drawLayer(pen, canvas, (layer) => drawModel(layer, this), EDGE, top, layout.width, layout.height);
    return size;
  }
}
