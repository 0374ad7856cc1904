// needs: shared/grid.js shared/payload.js lines/lines_draw.js
// The lines component: what each query token attends to, one line a weight. The heads can be shown and hidden.

class View extends Picture {
  constructor(root) {
    super(root);
    this.chips = strip("chips", tr("Heads"));
    this.heading = element("canvas", "heading");
    this.all = element("canvas");
    this.top = new Grid(this, this).marks;
    this.box = element("div", "box", element("div", "layers", this.all, this.top));
    this.note = element("p", "note");
    root.append(this.chips, this.heading, this.box, this.note, this.spoken, this.tip);
  }

  // Without the scrollbar.
  measure() {
    return this.box.clientWidth;
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const { header, arrays } = unpack(data);
    this.weights = header.heads.map((head) => seenWeights(arrays, header, head));
    const text = (from, name) => JSON.stringify(from?.[name]);
    const same = (...names) => names.every((name) => text(header, name) === text(this.header, name));
    if (!same("heads", "shown")) this.enabled = new Set(header.shown);
    if (!same("queries", "keys")) this.pinned = null;
    [this.header, this.hovered, this.tip.hidden] = [header, null, true];
    this.theme = themeOf(this.root);
    this.root.classList.toggle("scrolls", heightOf(header) > TALLEST);
    const sizes = { title: header.title, queries: header.queries.length, keys: header.keys.length };
    const keys = tr("Arrow up and down go to a token, left and right to the column, Enter chooses it, Escape shows all lines.");
    this.top.setAttribute("aria-label", `${tr("{title} as lines between tokens: {queries} queries, {keys} keys.", sizes)} ${keys}`);
    this.buildChips();
    this.draw();
  }

  buildChips() {
    const buttons = this.header.heads.map((head, slot) => {
      const chip = element("button", "chip", sample(this.lookOf(slot)), element("span", "", tr("head {head}", { head })));
      chip.title = tr("Click: show or hide. Double click: show only this head.");
      chip.addEventListener("click", () => this.toggle(head));
      chip.addEventListener("dblclick", () => this.show([head]));
      return chip;
    });
    const all = button(tr("All"), tr("Show all these heads"), () => this.show(this.header.heads));
    const none = button(tr("None"), tr("Hide all heads"), () => this.show([]));
    this.chips.replaceChildren(...buttons, all, none);
    stopAt(this.chips);
    this.chips.style.display = buttons.length > 1 ? "" : "none";
    this.press();
  }

  press() {
    this.header.heads.forEach((head, slot) => {
      this.chips.children[slot].setAttribute("aria-pressed", String(this.enabled.has(head)));
    });
  }

  toggle(head) {
    const others = [...this.enabled].filter((one) => one !== head);
    this.show(this.enabled.has(head) ? others : [...others, head]);
  }

  show(heads) {
    this.enabled = new Set(heads);
    this.press();
    this.draw();
  }

  shownSlots() {
    return [...this.header.heads.keys()].filter((slot) => this.enabled.has(this.header.heads[slot]));
  }

  lookOf(slot) {
    const look = this.header.looks[slot];
    return { colour: visibleOn(this.header.colours[look], this.theme.background), dashes: DASHES[look] };
  }

  weightOf(slot, query, key) {
    return this.weights[slot][query * this.header.keys.length + key];
  }

  get isolated() {
    return this.pinned || this.hovered;
  }

  draw() {
    super.draw();
    this.layout = layOutLines(this, this.all.getContext("2d"));
    this.top.dataset.rows = `${this.layout.left} ${this.layout.right} ${this.layout.step}`;
    const least = leastOf(this, this.shownSlots());
    drawLines(sizedCanvas(this.all, this.width, this.layout.height), this, everyPair(this), least);
    this.explain(least);
    this.mark();
    // In Present, what all else leaves of the window: heading and note have their heights by now.
    const { room } = this;
    const around = this.root.offsetHeight - this.box.offsetHeight;
    const tallest = room === null ? TALLEST : Math.max(Math.floor(room - around) - 1, 160);
    this.box.style.height = `${Math.min(heightOf(this.header), tallest)}px`;
  }

  explain(least) {
    const { measure, high } = this.header;
    const facts = { measure, high: threeDigits(high), least: threeDigits(least), most: MOST_LINES, all: threeDigits(this.header.least) };
    const fewer = least > this.header.least;
    this.note.textContent =
      `${tr("The larger the {measure}, the thicker and less transparent its line, up to {high}.", facts)} ` +
      `${fewer ? tr("Lines under {least} are not drawn, which leaves about the {most} largest; an isolated token has all from {all}.", facts) : tr("Lines under {least} are not drawn.", facts)} ` +
      tr("Point at a token to see only its lines and weights; click to choose it.") +
      (heightOf(this.header) > TALLEST ? ` ${tr("Scroll for the other tokens.")}` : "");
  }

  mark() {
    this.all.style.opacity = this.isolated ? 0.06 : 1;
    const pen = sizedCanvas(this.top, this.width, this.layout.height);
    if (this.isolated) drawLines(pen, this, pairsOf(this, this.isolated), this.header.least);
    drawTokens(pen, this);
    drawHeading(this.heading, this);
  }

  // A single head needs no dashes to be told from others.
  dashesOf(slot) {
    return this.shownSlots().length > 1 ? this.lookOf(slot).dashes : [];
  }

  // The token under the pointer: a query on the left, a key on the right, none between the columns.
  cellAt([x, y]) {
    const index = Math.floor(y / this.layout.step);
    const side = x < this.layout.left ? "query" : x > this.layout.right ? "key" : null;
    const size = side === "query" ? this.header.queries.length : this.header.keys.length;
    return side && index >= 0 && index < size ? { side, index } : null;
  }

  point(token) {
    const moved = token?.side !== this.hovered?.side || token?.index !== this.hovered?.index;
    this.hovered = token;
    this.top.style.cursor = token ? "pointer" : "default";
    if (moved && !this.pinned) this.mark();
  }

  leftward({ side }) {
    return side === "key";
  }

  // With a pinned token, hovering a token of the other column gives the exact weights between the two.
  describe(token) {
    if (!this.pinned || this.pinned.side === token.side) return [this.nameOf(token)];
    const [query, key] = token.side === "key" ? [this.pinned.index, token.index] : [token.index, this.pinned.index];
    const weights = this.shownSlots().map((slot) => {
      const weight = this.weightOf(slot, query, key);
      return `${this.labelOf(slot)}: ${Number.isNaN(weight) ? tr("masked") : exactText(weight)}`;
    });
    return [element("div", "", this.nameOf(this.pinned)), this.nameOf(token), ...weights];
  }

  labelOf(slot) {
    return this.header.heads.length > 1 ? tr("head {head}", { head: this.header.heads[slot] }) : this.header.measure;
  }

  nameOf({ side, index }) {
    return `${roleText(side)} ${namesOf(this.header, side, false)[index]}`;
  }

  // A token is a token everywhere: a click chooses it, for every page; here its lines also stay alone.
  choose(token) {
    this.pin(token);
    this.sendPinned();
  }

  sendPinned() {
    const { choices } = this.header;
    if (!this.pinned || !choices) return;
    const { side, index } = this.pinned;
    this.send("choose", { kind: choices.kind, [side]: choices[side][index] });
  }

  pin(token) {
    const same = token && token.side === this.pinned?.side && token.index === this.pinned.index;
    this.pinned = same ? null : token;
    this.mark();
    this.spoken.textContent = this.pinned ? this.inWords(this.pinned) : tr("All lines");
  }

  inWords(token) {
    const query = token.side === "query";
    const strongest = this.shownSlots().map((slot) => {
      let [best, most] = [0, -1];
      pairsOf(this, token)((row, column) => {
        const weight = this.weightOf(slot, row, column);
        if (weight > most) [best, most] = [query ? column : row, weight];
      });
      const other = this.nameOf({ side: query ? "key" : "query", index: best });
      return most < 0 ? "" : tr("{name}: most, {weight}, with {other}", { name: this.labelOf(slot), weight: fixed(most, 3), other });
    });
    return [this.nameOf(token), ...strongest].join("; ");
  }

  onKey({ key }) {
    const from = this.pinned || { side: "query", index: -1 };
    const [down] = MOVES[key] || [];
    const side = { ArrowLeft: "query", ArrowRight: "key" }[key] || from.side;
    if (key === "Escape") this.pin(null);
    else if (key === "Enter") this.sendPinned();
    else if (/^Arrow/.test(key)) this.move(side, from.index + down);
    else return false;
    return true;
  }

  // All tokens, however far the column is scrolled, and which line belongs to which head.
  paint(canvas, caption) {
    const { header, layout, theme, width, isolated } = this;
    const least = isolated ? header.least : leastOf(this, this.shownSlots());
    const range = tr("Thickness and opacity of a line: its weight, from {low} to {high}", { low: threeDigits(least), high: threeDigits(header.high) });
    const several = header.heads.length > 1;
    const height = HEADING + layout.height + (several ? LINE + 8 : 0);
    const { pen, size, top } = startPicture(canvas, [width, height], theme, { title: header.measure, range, caption });
    drawLayer(pen, canvas, (layer) => drawHeading(layer, this), EDGE, top, width, HEADING);
    const draw = (layer) => {
      const inner = sizedCanvas(layer, width, layout.height);
      drawLines(inner, this, isolated ? pairsOf(this, isolated) : everyPair(this), least);
      drawTokens(inner, this);
    };
    drawLayer(pen, canvas, draw, EDGE, top + HEADING, width, layout.height);
    if (several) nameHeads(pen, this, top + HEADING + layout.height + LINE / 2);
    return size;
  }

  move(side, index) {
    const last = (side === "query" ? this.header.queries : this.header.keys).length - 1;
    this.pinned = null;
    this.pin({ side, index: clamp(index, 0, last) });
    const [y, step] = [this.pinned.index * this.layout.step, this.layout.step];
    const { scrollTop, clientHeight } = this.box;
    if (y < scrollTop || y + step > scrollTop + clientHeight) this.box.scrollTop = y - clientHeight / 2;
  }
}

// A head's weights, NaN where it is masked.
function seenWeights(arrays, { path, masked }, head) {
  const { values } = arrayAt(arrays, named(path, "pattern", head));
  const allowed = masked && arrayAt(arrays, named(path, "mask", head)).values;
  return allowed ? values.map((weight, cell) => (allowed[cell] ? weight : NaN)) : values;
}

// Yellow is hard to see on white, so it is darkened there; every other colour is visible on both themes.
function visibleOn(colour, background) {
  return /^#f0e442$/i.test(colour) && inkOn(rgbOf(background)) === "#000000" ? "#b3a800" : colour;
}

// A short piece of the head's line.
function sample({ colour, dashes }) {
  const picture = svgElement("svg", { width: 30, height: 8, "aria-hidden": "true" });
  const line = { x1: 0, x2: 30, y1: 4, y2: 4, stroke: colour, "stroke-width": 3, "stroke-dasharray": dashes.join(" ") };
  picture.append(svgElement("line", line));
  return picture;
}
