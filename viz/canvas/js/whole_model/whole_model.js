// needs: shared/follow.js shared/grid.js shared/payload.js whole_model/whole_model_layout.js whole_model/whole_model_draw.js
// The whole_model component: figure 1 of the paper with the numbers of a run. A token travels from box to box; beside the
// picture stands what happens to it there. What is chosen is sent once the token rests; links and switches at once.

const KEYS =
  tr("Arrow up and down move the token from box to box, left and right choose another token, Page up and Page down go from layer to layer, Space plays, plus and minus zoom, Enter opens the page that explains the box.");
const TRAVELS = tr("the token travels through the whole model");
const BEAT = 1300; // milliseconds at each box while the token travels by itself
const TRAVEL = 260; // milliseconds from box to box
const ZOOMING = 380; // milliseconds
const REST = 600; // milliseconds without a move until the page is told

class View extends Picture {
  constructor(root) {
    super(root);
    this.all = element("canvas");
    this.marks = new Grid(this, this).marks;
    this.stage = element("div", "stage", element("div", "layers", this.all, this.marks));
    const body = element("div", "body", this.stage, this.makePanel());
    this.legend = element("div", "legend");
    root.append(body, this.legend, this.spoken, this.tip);
    this.pending = new Pending();
    this.follower = new Follower();
    this.zoom = root.clientWidth < PHONE ? BOXES : FIT;
  }

  // Stays on the screen: the player and the zoom, and what happens at the chosen box.
  makePanel() {
    this.player = button(tr("Play"), TRAVELS, () => this.play(!this.playing));
    this.zoomOut = button("−", tr("Zoom out"), () => this.zoomTo(this.zoom - 1));
    this.zoomIn = button("+", tr("Zoom in, down to one layer with all its numbers"), () => this.zoomTo(this.zoom + 1));
    const [back, on] = [["‹", tr("One box back"), -1], ["›", tr("One box on"), 1]].map(([text, title, by]) => {
      return button(text, title, () => this.step(by));
    });
    const player = element("div", "player", back, this.player, on, this.zoomOut, this.zoomIn, this.pngButton());
    this.heading = element("h3");
    this.where = element("p", "where");
    this.purpose = element("p", "purpose");
    this.words = element("dl");
    this.size = element("p", "dim");
    this.open = button(tr("Open"), tr("The page that explains this box"), () => this.openPage());
    const turn = (name) => () => this.ask("switch", { off: this.turned(name) });
    this.switchButtons = {
      off: toggleButton(tr("Off"), tr("Runs the model without what this box adds"), turn("off")),
      residual: toggleButton(tr("Residual off"), tr("Runs the model without this residual connection"), turn("residual")),
      norm: toggleButton(tr("Norm off"), tr("Runs the model without this norm"), turn("norm")),
    };
    this.reset = button(tr("All on"), tr("Runs the model as it was trained"), turn(""));
    const showing = (name) => (pressed) => this.show(name, pressed);
    this.lossButton = toggleButton(tr("Losses in the picture"), tr("In each box, the change in log p without it"), showing("losses"));
    this.countsButton = toggleButton(tr("Parameters in the picture"), tr("In each box, the number of parameters it has learned"), showing("counts"));
    this.switches = element("div", "switches", ...Object.values(this.switchButtons), this.reset, this.lossButton);
    this.probability = element("p", "score");
    const about = [this.heading, this.where, this.purpose, this.words, this.size, this.countsButton, this.open, this.switches, this.probability];
    return element("div", "panel", player, ...about);
  }

  // Numbers of another kind in the boxes; of two kinds one at a time.
  show(name, pressed) {
    for (const [each, node] of [["losses", this.lossButton], ["counts", this.countsButton]]) {
      this[each] = each === name && pressed;
      node.setAttribute("aria-pressed", String(this[each]));
    }
    this.draw();
  }

  close() {
    super.close();
    clearInterval(this.playing);
    clearTimeout(this.resting);
    this.follower.close();
  }

  // Without the panel beside the picture.
  measure() {
    return this.stage.clientWidth;
  }

  update({ data, setTriggerValue, key }) {
    this.send = setTriggerValue;
    // In a saved file there is no model to run and no page to open.
    this.saved = this.switches.hidden = key === undefined;
    const { header, arrays } = unpack(data);
    const sizes = Object.fromEntries(header.rows.map(({ name, tokens }) => [name, tokens.length]));
    for (const box of header.boxes) {
      box.numbers = arrayAt(arrays, named(box.name, "values")).values;
      if (box.heads) [box.codes] = encode([{ array: arrayAt(arrays, box.heads.array) }], 8).codes;
    }
    [this.header, this.boxes, this.sizes, this.images] = [header, header.boxes, sizes, new Map()];
    this.most = Math.max(...header.boxes.map(({ parameters }) => parameters));
    this.counts ??= Boolean(header.counts);
    this.countsButton.setAttribute("aria-pressed", String(this.counts));
    this.colours = lookupTable(header.scale);
    this.table = packedColours(this.colours);
    this.hovered = null;
    this.tip.hidden = true;
    const chosen = this.playing || this.resting ? this.chosen() : this.pending.afterAnswer(header.chosen);
    this.box = this.boxes.find(({ name }) => name === chosen.box) || this.boxes[0];
    const position = ({ name }) => Math.min(chosen.positions[name] ?? 0, sizes[name] - 1);
    this.positions = Object.fromEntries(header.rows.map((row) => [row.name, position(row)]));
    const names = header.rows.map(({ title, tokens }) => tr("{title}, {count} tokens", { title, count: tokens.length }));
    this.marks.setAttribute("aria-label", `${tr("The whole model, {boxes} boxes: {stacks}.", { boxes: this.boxes.length, stacks: names.join("; ") })} ${KEYS}`);
    this.showBox();
    this.draw();
  }

  // Sets what the page that explains the box will show; the app answers with a link to it, a page with scripts alone goes
  // there at once.
  openPage() {
    const { box } = this;
    if (!box.page) return;
    const here = { ":position": this.positions[box.stack], ":head": this.value(box, "head") };
    const values = Object.entries(box.opens).map(([name, value]) => [name, here[value] ?? value]);
    if (!this.ask("open", Object.fromEntries(values))) this.follower.follow();
  }

  // The text of all that is off, with one switch of the box turned; without a name everything is on.
  turned(name) {
    const { changes } = this.header;
    const change = this.box.switches[name];
    const others = changes.filter((each) => each !== change);
    const left = change && others.length === changes.length ? [...changes, change] : change ? others : [];
    return left.length ? `[${left.join(",")}]` : "";
  }

  chosen() {
    return { box: this.box.name, positions: { ...this.positions } };
  }

  // The same as a text, for the link.
  at() {
    return [this.box.name, ...this.header.rows.map(({ name }) => this.positions[name])].join("~");
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
    const place = name === "off" ? box : this.switchedBox(box);
    return Boolean(this.header.off[place.name]?.includes(name));
  }

  // A template of viz/canvas/whole_model.py with the values of the chosen token.
  fill(text, box) {
    const keys = box.part === "cross_attn" ? "encoder" : box.stack;
    return text.replace(/\{(\w+)(?::([\w%]+))?\}/g, (_, name, form) => {
      const value = this.value(box, name);
      if (form === "%") return percent(value);
      if (form === "int") return written(value.toLocaleString("en"));
      if (form === "2") return fixed(value, 2);
      return form === "token" ? this.rowOf(keys).tokens[value] : digits(value);
    });
  }

  // Formulas, and their numbers at the chosen token.
  wordsAbout(box) {
    const words = box.words.map(([formula, text]) => [formula, this.fill(text, box)]);
    return this.has(box, "share") ? [...words, [tr("share of the sum"), percent(this.value(box, "share"))]] : words;
  }

  // The sub-layer that a sum belongs to; other boxes themselves.
  switchedBox(box) {
    const { stack, layer, sublayer } = box;
    return sublayer ? this.boxes.find((each) => each.name === `${stack}.${layer}.${sublayer}`) : box;
  }

  // What stands at the right of a closed box: the length of what it gives, its parameters, or what log p loses without it.
  numberOf(box) {
    if (this.counts) return box.shared ? tr("shared") : compact(box.parameters);
    if (this.losses) {
      const name = "off" in box.switches ? "off" : Object.keys(box.switches)[0];
      const number = this.header.alone[`${this.switchedBox(box).name} ${name}`];
      return number === undefined ? "" : signed(number - this.header.before);
    }
    if (box.part === "output") return "";
    return box.part === "softmax" ? percent(this.value(box, "out")) : digits(this.value(box, "out"));
  }

  headImage(box, head) {
    const key = `${box.name} ${head}`;
    if (this.images.has(key)) return this.images.get(key);
    const [rows, columns] = box.heads.cells;
    const codes = box.codes.subarray(head * rows * columns, (head + 1) * rows * columns);
    const image = imageOf(columns, rows, (cell) => codes[cell] && this.table[codes[cell]]);
    this.images.set(key, image);
    return image;
  }

  draw() {
    super.draw();
    this.layout = layOutModel(this);
    drawModel(this.all, this);
    const middle = ({ x, y, width, height }) => [x + width / 2, y + height / 2];
    const middles = [...this.layout.places].map(([name, place]) => [name, middle(place)]);
    this.marks.dataset.places = JSON.stringify(Object.fromEntries(middles));
    this.traveller = this.middleOf(this.box);
    this.mark();
    this.drawLegend();
  }

  mark() {
    drawMarksOfModel(this.marks, this);
  }

  // Where the token is beside a box, or as it enters an opened one.
  middleOf(box) {
    const place = this.layout.places.get(box.name);
    return place ? place.y + place.height / (this.layout.opened ? 1 : 2) : 0;
  }

  cellAt(point) {
    return findPlace(this, ...point);
  }

  point(place) {
    const moved = place?.box !== this.hovered?.box;
    this.hovered = place;
    this.marks.style.cursor = place ? "pointer" : "default";
    if (moved) this.mark();
  }

  describe({ box }) {
    if (!box) return null;
    const lines = this.wordsAbout(box).map(([formula, text]) => withSubscripts("div", `${formula}: ${text}`));
    const page = box !== this.box ? tr("Click: bring the token here") : box.page ? tr("Click: open “{page}”", { page: box.page }) : "";
    return [this.nameOf(box), box.purpose, withSubscripts("div", sizeOf(box)), ...lines, element("div", "dim", page)];
  }

  nameOf(box) {
    const stack = { encoder: tr("encoder"), decoder: tr("decoder") }[box.stack];
    const layer = box.layer === null ? [] : [tr("layer {layer}", { layer: box.layer })];
    return [box.title, stack, ...layer].join(", ");
  }

  choose(place) {
    if (place?.token) this.chooseToken(place.token.stack, place.token.index);
    else if (place?.box === this.box) this.openPage();
    else if (place?.box) this.goTo(place.box);
  }

  onKey({ key }) {
    const zoom = { "+": 1, "=": 1, "-": -1 }[key];
    const step = { ArrowUp: 1, ArrowDown: -1 }[key];
    const token = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const layer = { PageUp: 1, PageDown: -1 }[key];
    const end = { Home: 0, End: -1 }[key];
    if (step) this.step(step);
    else if (token) this.chooseToken(this.box.stack, this.positions[this.box.stack] + token);
    else if (layer) this.stepLayer(layer);
    else if (end !== undefined) this.goTo(this.boxes.at(end));
    else if (key === "Enter") this.openPage();
    else if (key === " ") this.play(!this.playing);
    else if (zoom) this.zoomTo(this.zoom + zoom);
    else return false;
    return true;
  }

  step(by) {
    this.play(false);
    this.goTo(this.boxes[clamp(this.boxes.indexOf(this.box) + by, 0, this.boxes.length - 1)]);
  }

  stepLayer(by) {
    const firstOf = (box) => groupOf(this.boxes, box)[0];
    const starts = this.boxes.filter((box) => firstOf(box) === box);
    this.goTo(starts[clamp(starts.indexOf(firstOf(this.box)) + by, 0, starts.length - 1)]);
  }

  chooseToken(stack, index) {
    this.positions[stack] = clamp(index, 0, this.sizes[stack] - 1);
    if (this.box.stack !== stack) this.box = this.boxes.find((box) => box.stack === stack);
    this.showBox();
    this.draw();
    this.rest();
  }

  goTo(box) {
    const from = this.traveller;
    const same = this.layout.places.has(box.name) && box.stack === this.box.stack;
    this.box = box;
    this.showBox();
    if (this.layout.opened && !this.layout.places.has(box.name)) this.draw();
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
    const lowest = this.layout.narrow ? 0.6 * innerHeight : innerHeight - 40; // on a phone the panel covers the rest
    if (y > 120 && y < lowest) return;
    const anchor = element("div", "anchor");
    anchor.style.top = `${this.middleOf(this.box)}px`;
    this.stage.append(anchor);
    anchor.scrollIntoView({ block: "center", behavior: "smooth" });
    anchor.remove();
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
    rename(this.player, on ? tr("Pause") : tr("Play"), TRAVELS);
  }

  zoomTo(zoom) {
    const [group, old] = [groupOf(this.boxes, this.box), this.layout];
    const ghost = copyOf(this.all);
    this.zoom = clamp(zoom, FIT, LAYER);
    this.draw();
    this.morph(ghost, boundsOf(old, group), boundsOf(this.layout, group));
    this.keepInView();
    this.spoken.textContent = ZOOMS[this.zoom];
  }

  // The old picture grows or shrinks into the new one, so that the layer of the token stays where the eye is.
  morph(ghost, from, to) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const [across, down] = [to.width / from.width, to.height / from.height];
    const moved = `translate(${to.x - across * from.x}px, ${to.y - down * from.y}px) scale(${across}, ${down})`;
    this.marks.parentNode.append(ghost);
    const steps = [{ transform: "none", opacity: 1 }, { transform: moved, opacity: 0 }];
    ghost.animate(steps, { duration: ZOOMING, easing: "ease-in-out" }).finished.finally(() => ghost.remove());
    this.all.animate([{ opacity: 0 }, { opacity: 1 }], { duration: ZOOMING, easing: "ease-in" });
  }

  // For a switch or a page; the page learns where the token is, too.
  ask(what, more = {}) {
    this.play(false);
    clearTimeout(this.resting);
    this.resting = 0;
    this.pending.sent.push(this.chosen());
    return this.send(what, { at: this.at(), ...more });
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
      this.send("move", this.at());
    }, REST);
  }

  // The panel: what happens at this box, in words and numbers.
  showBox() {
    const { box } = this;
    const { tokens, title, predicts } = this.rowOf(box.stack);
    const position = this.positions[box.stack];
    this.heading.textContent = box.title;
    const layer = box.layer === null ? "" : `, ${tr("layer {layer}", { layer: box.layer })}`;
    const facts = { position, token: tokens[position], next: predicts?.[position] };
    const token = predicts ? tr("Token {position}: “{token}”, should predict “{next}”", facts) : tr("Token {position}: “{token}”", facts);
    this.where.textContent = `${title}${layer}. ${token}`;
    this.purpose.textContent = box.purpose;
    const words = this.wordsAbout(box);
    const nodes = words.flatMap(([formula, text]) => [withSubscripts("dt", formula), element("dd", "", text)]);
    this.words.replaceChildren(...nodes);
    this.size.replaceChildren(withSubscripts("span", sizeOf(box)));
    rename(this.open, tr("Open “{page}”", { page: box.page }), tr("the page that explains this box"));
    this.open.hidden = this.saved || !box.page;
    for (const [name, node] of Object.entries(this.switchButtons)) {
      node.hidden = !(name in box.switches);
      node.setAttribute("aria-pressed", String(this.isOff(box, name)));
    }
    this.describeScore();
    const said = [this.nameOf(box), inQuotes(tokens[position]), box.purpose, ...words.map((pair) => pair.join(": "))].join("; ");
    if (this.spoken.textContent !== said) this.spoken.textContent = said;
  }

  // log p of the text, with everything on and as it is switched.
  score() {
    const { before, after, off } = this.header;
    return Object.keys(off).length ? tr("{before} → {after} nats", { before: nats(before), after: nats(after) }) : tr("{before} nats", { before: nats(before) });
  }

  describeScore() {
    const { alone, off } = this.header;
    const runs = { off: tr("This box off"), residual: tr("Its residual off"), norm: tr("Its norm off") };
    const known = Object.keys(this.box.switches).map((name) => [runs[name], alone[`${this.box.name} ${name}`]]);
    const found = known.filter(([, number]) => number !== undefined);
    const said = found.map(([name, number]) => ` ${tr("{name}, alone: {number}.", { name, number: nats(number) })}`);
    this.probability.replaceChildren(`${tr("log p of the text")}: `, element("strong", "", this.score()), ".", ...said);
    this.reset.hidden = !Object.keys(off).length;
    this.lossButton.hidden = !Object.keys(alone).length;
    this.losses &&= !this.lossButton.hidden;
  }

  drawLegend() {
    const pooled = this.boxes.some(({ heads }) => heads && (heads.queries > heads.cells[0] || heads.keys > heads.cells[1]));
    const thickest = digits(longestVector(this));
    const right = this.losses ? tr("the change of log p without it (in a sum: without its residual)") : tr("the length of its output");
    const inside = this.counts
      ? tr("In each box: its parameter count, to which the line along the bottom is proportional; it is full in the box with the most. “shared”: the box uses another box's parameters.")
      : tr("In a box: at the right {right}, along the bottom its share of the sum.", { right });
    this.legend.replaceChildren(
      element("span", "", tr("A line is as thick as the chosen token’s vector is long; the thickest is {thickest}.", { thickest })),
      element("span", "", inside),
      colourRange([tr("Heads: attention weights")], "0", this.colours, "1"),
      ...(pooled ? [element("span", "", tr("A cell of a head shows the largest of several weights."))] : []),
    );
    this.zoomOut.disabled = this.zoom === FIT;
    this.zoomIn.disabled = this.zoom === LAYER;
  }

  paint(canvas, caption) {
    const { layout, theme, header } = this;
    const range = tr("Lines: length of the chosen token’s vector, the thickest {thickest}; heads: weights from 0 to 1", { thickest: digits(longestVector(this)) });
    const titles = { title: header.title, range, caption };
    const { pen, size, top } = startPicture(canvas, [layout.width, layout.height], theme, titles);
    drawLayer(pen, canvas, (layer) => drawModel(layer, this), EDGE, top, layout.width, layout.height);
    return size;
  }
}

function copyOf(canvas) {
  const copy = element("canvas", "ghost");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  [copy.style.width, copy.style.height] = [canvas.style.width, canvas.style.height];
  copy.getContext("2d").drawImage(canvas, 0, 0);
  return copy;
}

// As shared/elements.js names a button.
function rename(node, text, title) {
  node.textContent = text;
  node.setAttribute("aria-label", `${text}: ${title}`);
}

function signed(number) {
  return `${number > 0 ? "+" : ""}${fixed(number, Math.abs(number) < 10 ? 2 : 1)}`;
}

function nats(number) {
  return fixed(number, 3);
}

function withSubscripts(tag, formula) {
  return element(tag, "", ...formulaParts(formula).map((text, index) => (index % 2 ? element("sub", "", text) : text)));
}
