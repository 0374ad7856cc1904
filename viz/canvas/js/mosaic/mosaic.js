// needs: shared/toolbar.css shared/layers.css shared/header.js shared/colours.js shared/svg_pen.js shared/save_picture.js mosaic/mosaic_draw.js
// The mosaic component: every head of every layer on one canvas, and above it what takes the pointer and the keys.
// It is one module with header.js, colours.js, svg_pen.js, save_picture.js and mosaic_draw.js, which come before it.

const views = new WeakMap();

export default function mount(component) {
  const { parentElement } = component;
  if (!views.has(parentElement)) views.set(parentElement, new MosaicView(parentElement));
  const view = views.get(parentElement);
  view.update(component);
  return () => {
    view.watcher.disconnect();
    views.delete(parentElement);
  };
}

// `before` are the groups that were drawn last.
function decode(data, before = []) {
  const { header, bytes, start } = unpackedHeader(data);
  let place = start;
  for (const [index, group] of header.groups.entries()) {
    const parts = group.bytes.map((size) => bytes.subarray(place, (place += size)));
    group.weights = weightsOf(group, parts, before[index]?.weights);
  }
  return header;
}

class MosaicView {
  constructor(root) {
    this.root = root.querySelector(".mosaic");
    this.tiles = element("canvas");
    this.marks = element("div", "marks");
    this.outlines = ["hovered", "chosen", "focused"].map((name) => element("div", `outline ${name}`));
    this.marks.append(...this.outlines);
    this.said = element("div", "spoken");
    this.said.setAttribute("aria-live", "polite");
    this.tip = element("div", "tip");
    this.tip.hidden = true;
    const stage = element("div", "layers");
    stage.append(this.tiles, this.marks);
    this.root.append(this.toolbar(), stage, this.said, this.tip);
    this.listen();
    this.watcher = new ResizeObserver(() => this.header && this.root.clientWidth !== this.width && this.draw());
    this.watcher.observe(this.root);
  }

  toolbar() {
    const bar = element("div", "toolbar");
    this.legend = element("div", "legend");
    this.stretch = element("button", "", "Brighten");
    this.stretch.title = "Colours up to the largest 1 % of all weights; the legend says the range";
    this.stretch.setAttribute("aria-pressed", "false");
    this.stretch.addEventListener("click", () => {
      this.stretched = !this.stretched;
      this.stretch.setAttribute("aria-pressed", String(this.stretched));
      this.draw();
    });
    const save = element("button", "", "PNG");
    save.title = "Download the picture";
    save.setAttribute("aria-label", `PNG: ${save.title}`);
    const paint = (canvas, caption) => paintMosaic(this, canvas, caption);
    save.addEventListener("click", () => {
      savePicture(paint, { format: "png", file: fileNameOf(this.header.title), caption: [] });
    });
    offerPicture(this.root, paint);
    bar.append(this.legend, this.stretch, save);
    return bar;
  }

  listen() {
    Object.assign(this.marks, { tabIndex: 0 });
    this.marks.setAttribute("role", "application");
    this.marks.addEventListener("pointermove", (event) => this.hover(this.at(event), event));
    this.marks.addEventListener("pointerleave", () => this.hover(null));
    this.marks.addEventListener("click", (event) => this.choose(this.at(event)));
    this.marks.addEventListener("keydown", (event) => this.key(event));
    this.marks.addEventListener("blur", () => this.focus(null));
    this.marks.addEventListener("focus", () => {
      if (this.marks.matches(":focus-visible")) this.focus(this.startingPlace());
    });
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    this.header = decode(data, this.groups);
    this.groups = this.header.groups;
    const [kind, layer, head] = this.header.chosen || [];
    const group = this.groups.find((each) => each.kind === kind);
    this.chosen = group && layer < group.layers && head < group.heads ? { group, layer, head } : null;
    this.focused = null;
    this.hovered = null;
    this.tip.hidden = true;
    this.colours = lookupTables(this.header.scales)[this.header.scale];
    this.quantile = null;
    const kinds = this.groups.map(
      ({ title, layers, heads, queries, keys }) =>
        `${title}, ${layers} layers of ${heads} heads, ${queries.length} queries by ${keys.length} keys`,
    );
    const how = "The arrow keys move between heads, Enter chooses one.";
    this.marks.setAttribute("aria-label", `${this.header.measure} of every head: ${kinds.join("; ")}. ${how}`);
    this.draw();
    // Text drawn before the page's font has arrived is drawn again.
    if (document.fonts.status === "loading") document.fonts.ready.then(() => this.draw());
    if (this.root.getRootNode().activeElement === this.marks) this.focus(this.startingPlace());
  }

  get high() {
    if (!this.stretched) return this.header.high;
    this.quantile ??= weightOf(largestHundredth(this.groups), this.header.power) || this.header.high;
    return this.quantile;
  }

  get pixels() {
    return pixelTable(this.colours, this.high, this.header.power);
  }

  draw() {
    this.width = this.root.clientWidth;
    this.theme = themeOf(this.root);
    this.layout = layOutMosaic(this.groups, this.width);
    const { left, tile, step } = this.layout;
    this.marks.dataset.tiles = [left, tile.width + GAP, step, tile.width, tile.height].join(" ");
    this.marks.dataset.tops = this.groups.map(({ top }) => top).join(" ");
    this.writeLabels();
    paintTiles(this.tiles.getContext("2d"), this.groups, this.layout, this.pixels, this.theme);
    this.writeLegend();
    this.mark();
  }

  // Around the same heads stand the same words: they are not written again with every change of the weights.
  writeLabels() {
    const words = this.groups.map(({ title, averaged, layers, heads, queries, keys }) => {
      return [title, averaged, layers, heads, queries.length, keys.length];
    });
    const looks = JSON.stringify([words, this.layout, this.theme, document.fonts.status]);
    if (looks === this.looks) return;
    this.looks = looks;
    writeLabels(sized(this.tiles, this.layout), this.groups, this.layout, this.theme);
  }

  mark() {
    const { width, height } = this.layout.tile;
    for (const [index, place] of [this.hovered, this.chosen, this.focused].entries()) {
      const { style } = this.outlines[index];
      style.display = place ? "" : "none";
      if (!place) continue;
      const [left, top] = this.layout.place(place.group, place.layer, place.head);
      Object.assign(style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    }
  }

  // The head under the pointer, and how far into it the pointer is, in pixels of the screen.
  at(event) {
    const box = this.marks.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    for (const group of this.groups) {
      const layer = Math.floor((y - group.top) / this.layout.step);
      const head = Math.floor((x - this.layout.left) / (this.layout.tile.width + GAP));
      if (layer < 0 || head < 0 || layer >= group.layers || head >= group.heads) continue;
      const [left, top] = this.layout.place(group, layer, head);
      const { width, height } = this.layout.tile;
      const inside = x >= left && x < left + width && y >= top && y < top + height;
      const pixels = [x - left, y - top].map((side) => Math.floor(side * this.layout.ratio));
      return inside ? { group, layer, head, pixels } : null;
    }
    return null;
  }

  hover(place, event) {
    const moved = ["group", "layer", "head"].some((part) => place?.[part] !== this.hovered?.[part]);
    this.hovered = place;
    this.marks.style.cursor = place ? "pointer" : "default";
    if (moved) this.mark();
    this.tip.hidden = !place;
    if (!place) return;
    this.tip.replaceChildren(...this.lines(place));
    const box = this.root.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    this.tip.style.left = `${Math.max(Math.min(x + 14, box.width - this.tip.offsetWidth - 4), 0)}px`;
    const needed = this.tip.offsetHeight + 12;
    this.tip.style.top = `${y > needed ? y - needed : y + 18}px`;
  }

  lines({ group, layer, head, pixels }) {
    const sides = [this.layout.tile.height, this.layout.tile.width].map((side) => Math.round(side * this.layout.ratio));
    const [keys, weights] = [group.keys.length, headOf(group, layer, head)];
    const [top, bottom] = spanAt(group.queries.length, sides[0], pixels[1]);
    const [left, right] = spanAt(keys, sides[1], pixels[0]);
    const cell = largestIn(weights, keys, top, bottom, left, right);
    const [query, key] = [Math.floor(cell / keys), cell % keys];
    const masked = weights[cell] === MASKED;
    const value = masked ? "masked: may not look" : `${this.header.measure} ${inDecimals(weights[cell], this.header.power)}`;
    const cells = (bottom - top) * (right - left);
    return [
      element("strong", "", value),
      element("div", "", nameOf({ group, layer, head })),
      element("div", "", `query ${query}: ${group.queries[query]}`),
      element("div", "", `key ${key}: ${group.keys[key]}`),
      ...(cells > 1 ? [element("div", "dim", `the largest of ${cells} cells in this pixel`)] : []),
    ];
  }

  startingPlace() {
    return this.chosen || { group: this.groups[0], layer: 0, head: 0 };
  }

  focus(place) {
    this.focused = place;
    if (this.header) this.mark();
    if (!place) return;
    const chosen = this.chosen && nameOf(place) === nameOf(this.chosen) ? ", chosen" : "";
    this.said.textContent = `${nameOf(place)}${chosen}; ${this.strongest(place)}`;
  }

  // What stands out in a square, in words.
  strongest({ group, layer, head }) {
    const [keys, weights] = [group.keys.length, headOf(group, layer, head)];
    const cell = largestIn(weights, keys, 0, group.queries.length, 0, keys);
    const [query, key] = [Math.floor(cell / keys), cell % keys];
    const value = inDecimals(weights[cell], this.header.power);
    return `largest ${value}, of query ${query}: ${group.queries[query]}, key ${key}: ${group.keys[key]}`;
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const from = this.focused || this.startingPlace();
    if (event.key === "Enter" || event.key === " ") this.choose(from);
    else if (/^Arrow/.test(event.key)) this.focus(this.neighbour(from, event.key));
    else return;
    event.preventDefault();
  }

  neighbour({ group, layer, head }, key) {
    const rows = this.groups.flatMap((each) => Array.from({ length: each.layers }, (_, index) => [each, index]));
    const row = rows.findIndex(([each, index]) => each === group && index === layer);
    const down = { ArrowUp: -1, ArrowDown: 1 }[key] || 0;
    const [next, index] = rows[Math.min(Math.max(row + down, 0), rows.length - 1)];
    const across = { ArrowLeft: -1, ArrowRight: 1 }[key] || 0;
    return { group: next, layer: index, head: Math.min(Math.max(head + across, 0), next.heads - 1) };
  }

  choose(place) {
    if (!place) return;
    const { group, layer, head } = place;
    this.chosen = { group, layer, head };
    this.mark();
    this.said.textContent = `${nameOf(place)}, chosen`;
    this.send("choose", { kind: group.kind, layer, head });
  }

  get pooled() {
    const [width, height] = [this.layout.tile.width, this.layout.tile.height].map((side) => side * this.layout.ratio);
    return this.groups.some(({ queries, keys }) => queries.length > height || keys.length > width);
  }

  rangeInWords() {
    const pooled = this.pooled ? "; a pixel shows the largest of its cells" : "";
    const masked = this.legend.querySelector(".hatched") ? "; hatched: masked" : "";
    return `${this.header.measure}: colours from 0 to ${threeDigits(this.high)}${masked}${pooled}`;
  }

  writeLegend() {
    const masked = this.groups.some((group) => group.masks);
    const says = [this.header.measure, this.header.largest > this.high, this.high, masked, this.pooled].join();
    if (says === this.legend.dataset.says) return;
    this.legend.dataset.says = says;
    const range = element("span", "range", this.header.measure);
    const beyond = this.header.largest > this.high * 1.001 ? "≥ " : "";
    const end = element("span", "end", beyond + threeDigits(this.high));
    range.append(element("span", "end", "0"), colourBar(this.colours), end);
    const entries = [range];
    if (masked) entries.push(element("span", "hatched", "masked"));
    if (this.pooled) entries.push(element("span", "dim", "a pixel shows the largest of its cells"));
    this.legend.replaceChildren(...entries);
  }
}

function nameOf({ group, layer, head }) {
  return `${group.title}, layer ${layer}, ${group.averaged ? "all heads" : `head ${head}`}`;
}

function threeDigits(value) {
  return String(Number(value.toPrecision(3)));
}
