// needs: shared/layers.css shared/header.js shared/colours.js shared/svg_pen.js shared/save_picture.js lines/lines_draw.js lines/lines_picture.js
// The lines component: what each query token looks at, a line a weight, and the heads that a person turns on and off.
// It is one module with header.js, colours.js, svg_pen.js, save_picture.js and lines_*.js, which come before it.

const views = new WeakMap();

export default function mount(component) {
  const { parentElement } = component;
  if (!views.has(parentElement)) views.set(parentElement, new LinesView(parentElement));
  const view = views.get(parentElement);
  view.update(component.data);
  return () => {
    view.watcher.disconnect();
    views.delete(parentElement);
  };
}

function decode(data) {
  const { header, bytes, start } = unpackedHeader(data);
  const cells = header.heads.length * header.queries.length * header.keys.length;
  return [header, new Float32Array(bytes.buffer, start, cells)];
}

class LinesView {
  constructor(root) {
    this.root = root.querySelector(".lines");
    this.chips = element("div", "chips");
    this.chips.setAttribute("role", "group");
    this.chips.setAttribute("aria-label", "Heads");
    this.heading = element("canvas", "heading");
    this.box = element("div", "box");
    this.all = element("canvas");
    this.top = element("canvas");
    const layers = element("div", "layers");
    layers.append(this.all, this.top);
    this.box.append(layers);
    this.said = element("div", "spoken");
    this.said.setAttribute("aria-live", "polite");
    this.note = element("p", "note");
    this.tip = element("div", "tip");
    this.tip.hidden = true;
    this.root.append(this.chips, this.heading, this.box, this.note, this.said, this.tip);
    this.listen();
    offerPicture(this.root, (canvas, caption) => paintLines(this, canvas, caption));
    this.watcher = new ResizeObserver(() => this.header && this.box.clientWidth !== this.width && this.draw());
    this.watcher.observe(this.root);
  }

  listen() {
    this.top.tabIndex = 0;
    this.top.setAttribute("role", "application");
    this.top.addEventListener("pointermove", (event) => this.hover(this.at(event), event));
    this.top.addEventListener("pointerleave", () => this.hover(null));
    this.top.addEventListener("click", (event) => this.pin(this.at(event)));
    this.top.addEventListener("keydown", (event) => this.key(event));
  }

  update(data) {
    const [header, weights] = decode(data);
    const text = (from, name) => JSON.stringify(from?.[name]);
    const same = (...names) => names.every((name) => text(header, name) === text(this.header, name));
    if (!same("heads", "shown")) this.enabled = new Set(header.shown);
    if (!same("queries", "keys")) this.pinned = null;
    this.hovered = null;
    this.tip.hidden = true;
    [this.header, this.weights] = [header, weights];
    this.theme = themeOf(this.root);
    const sizes = `${header.queries.length} queries, ${header.keys.length} keys`;
    this.root.classList.toggle("scrolls", heightOf(header) > TALLEST);
    const how = "Arrow up and down choose a token, left and right the column, Escape shows all lines.";
    this.top.setAttribute("aria-label", `${header.title} as lines between tokens: ${sizes}. ${how}`);
    this.buildChips();
    this.draw();
    // Text drawn before the page's font has arrived is drawn again.
    if (document.fonts.status === "loading") document.fonts.ready.then(() => this.draw());
  }

  buildChips() {
    const buttons = this.header.heads.map((head, slot) => {
      const chip = element("button", "chip");
      chip.append(sample(this.lookOf(slot)), element("span", "", `head ${head}`));
      chip.title = "Click: on or off. Double click: this head only.";
      chip.addEventListener("click", () => this.toggle(head));
      chip.addEventListener("dblclick", () => this.show([head]));
      return chip;
    });
    const all = element("button", "", "All");
    all.title = "Show all these heads";
    all.addEventListener("click", () => this.show(this.header.heads));
    const none = element("button", "", "None");
    none.title = "Show no head";
    none.addEventListener("click", () => this.show([]));
    this.chips.replaceChildren(...buttons, all, none);
    // Where there is no other head to compare with, there is nothing to turn on and off.
    this.chips.style.display = buttons.length > 1 ? "" : "none";
    this.press();
  }

  press() {
    this.header.heads.forEach((head, slot) => {
      this.chips.children[slot].setAttribute("aria-pressed", String(this.enabled.has(head)));
    });
  }

  toggle(head) {
    if (!this.enabled.delete(head)) this.enabled.add(head);
    this.press();
    this.draw();
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
    return { colour: seenOn(this.header.colours[look], this.theme.background), dashes: DASHES[look] };
  }

  weightOf(slot, query, key) {
    return this.weights[(slot * this.header.queries.length + query) * this.header.keys.length + key];
  }

  get isolated() {
    return this.pinned || this.hovered;
  }

  draw() {
    this.theme = themeOf(this.root);
    this.box.style.height = `${Math.min(heightOf(this.header), TALLEST)}px`;
    this.width = this.box.clientWidth;
    this.layout = layOutLines(this, this.all.getContext("2d"));
    this.top.dataset.rows = `${this.layout.left} ${this.layout.right} ${this.layout.step}`;
    const least = leastOf(this, this.shownSlots());
    drawLines(sized(this.all, this.width, this.layout.height), this, everyPair(this), least);
    this.explain(least);
    this.mark();
  }

  explain(least) {
    const most = least > this.header.least ? `, which leaves about the ${MOST_LINES} largest` : "";
    const alone = most ? `; a token alone has all from ${short(this.header.least)}` : "";
    this.note.textContent =
      `The larger the ${this.header.measure}, the thicker and less transparent its line, up to ` +
      `${short(this.header.high)}. Lines under ${short(least)} are not drawn` +
      `${most}${alone}. ` +
      "Point at a token to see its lines and weights alone; click to keep them." +
      (heightOf(this.header) > TALLEST ? " Scroll for the other tokens." : "");
  }

  mark() {
    this.all.style.opacity = this.isolated ? 0.06 : 1;
    const pen = sized(this.top, this.width, this.layout.height);
    if (this.isolated) drawLines(pen, this, pairsOf(this, this.isolated), this.header.least);
    drawTokens(pen, this);
    drawHeading(this.heading, this);
  }

  // The token under the pointer: a query on the left, a key on the right, none among the lines.
  at(event) {
    const box = this.top.getBoundingClientRect();
    const index = Math.floor((event.clientY - box.top) / this.layout.step);
    const x = event.clientX - box.left;
    const side = x < this.layout.left ? "query" : x > this.layout.right ? "key" : null;
    const size = side === "query" ? this.header.queries.length : this.header.keys.length;
    return side && index >= 0 && index < size ? { side, index } : null;
  }

  hover(token, event) {
    const moved = token?.side !== this.hovered?.side || token?.index !== this.hovered?.index;
    this.hovered = token;
    this.top.style.cursor = token ? "pointer" : "default";
    if (moved && !this.pinned) this.mark();
    this.tip.hidden = !token;
    if (!token) return;
    this.tip.replaceChildren(...this.lines(token));
    const box = this.root.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const right = token.side === "query" ? x + 14 : x - this.tip.offsetWidth - 14;
    this.tip.style.left = `${Math.max(Math.min(right, box.width - this.tip.offsetWidth - 4), 0)}px`;
    const needed = this.tip.offsetHeight + 12;
    this.tip.style.top = `${y > needed ? y - needed : y + 18}px`;
  }

  // Beside a kept token, a token of the other column tells the exact weights between the two.
  lines(token) {
    const named = element("strong", "", this.nameOf(token));
    if (!this.pinned || this.pinned.side === token.side) return [named];
    const [query, key] = token.side === "key" ? [this.pinned.index, token.index] : [token.index, this.pinned.index];
    const weights = this.shownSlots().map((slot) => {
      const weight = this.weightOf(slot, query, key);
      const said = Number.isNaN(weight) ? "masked" : exactly(weight);
      return element("div", "", `${this.calledAt(slot)}: ${said}`);
    });
    return [element("div", "", this.nameOf(this.pinned)), element("div", "", this.nameOf(token)), ...weights];
  }

  calledAt(slot) {
    return this.header.heads.length > 1 ? `head ${this.header.heads[slot]}` : this.header.measure;
  }

  nameOf({ side, index }) {
    return `${side} ${namesOf(this.header, side, false)[index]}`;
  }

  pin(token) {
    const same = token && token.side === this.pinned?.side && token.index === this.pinned.index;
    this.pinned = same ? null : token;
    this.mark();
    this.said.textContent = this.pinned ? this.spoken(this.pinned) : "All lines";
  }

  spoken(token) {
    const query = token.side === "query";
    const strongest = this.shownSlots().map((slot) => {
      let [best, most] = [0, -1];
      pairsOf(this, token)((row, column) => {
        const weight = this.weightOf(slot, row, column);
        if (weight > most) [best, most] = [query ? column : row, weight];
      });
      const other = this.nameOf({ side: query ? "key" : "query", index: best });
      return most < 0 ? "" : `${this.calledAt(slot)}: most, ${most.toFixed(3)}, with ${other}`;
    });
    return [this.nameOf(token), ...strongest].join("; ");
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const from = this.pinned || { side: "query", index: -1 };
    const down = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const side = { ArrowLeft: "query", ArrowRight: "key" }[event.key] || from.side;
    if (event.key === "Escape") this.pin(null);
    else if (!down && side === from.side && !/^Arrow/.test(event.key)) return;
    else this.move(side, from.index + (down || 0));
    event.preventDefault();
  }

  move(side, index) {
    const last = (side === "query" ? this.header.queries : this.header.keys).length - 1;
    this.pinned = null;
    this.pin({ side, index: Math.min(Math.max(index, 0), last) });
    const [y, step] = [this.pinned.index * this.layout.step, this.layout.step];
    const { scrollTop, clientHeight } = this.box;
    if (y < scrollTop || y + step > scrollTop + clientHeight) this.box.scrollTop = y - clientHeight / 2;
  }
}

function short(value) {
  return String(Number(value.toPrecision(3)));
}

// Yellow on white is made darker; every other colour is seen on both.
function seenOn(colour, background) {
  if (!/^#f0e442$/i.test(colour) || inkOn(rgbOf(background)) !== "#000000") return colour;
  return "#b3a800";
}

function rgbOf(colour) {
  // Read back at once: on a canvas that the browser would draw later that waits for all drawing before it.
  const pen = element("canvas").getContext("2d", { willReadFrequently: true });
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

// A short line as the head's lines are drawn.
function sample({ colour, dashes }) {
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  const set = (node, values) => Object.entries(values).forEach(([name, value]) => node.setAttribute(name, value));
  set(picture, { width: 30, height: 8, "aria-hidden": "true" });
  set(line, { x1: 0, x2: 30, y1: 4, y2: 4, stroke: colour, "stroke-width": 3, "stroke-dasharray": dashes.join(" ") });
  picture.append(line);
  return picture;
}
