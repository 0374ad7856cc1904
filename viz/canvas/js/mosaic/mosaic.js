// needs: shared/picture.js shared/payload.js mosaic/mosaic_draw.js
// The mosaic component: every head of every layer on one canvas, and above it what takes the pointer and the keys.

class View extends Picture {
  constructor(root) {
    super(root);
    this.tiles = element("canvas");
    this.marks = element("div", "marks");
    this.outlines = ["hovered", "chosen", "focused"].map((name) => element("div", `outline ${name}`));
    this.marks.append(...this.outlines);
    const layers = element("div", "layers");
    layers.append(this.tiles, this.marks);
    const toolbar = element("div", "toolbar");
    this.legend = element("div", "legend");
    const brighten = toggleButton(tr("Brighten"), BRIGHTEN, (pressed) => {
      this.brightened = pressed;
      this.draw();
    });
    toolbar.append(this.legend, brighten, this.pngButton());
    root.append(toolbar, layers, this.spoken, this.tip);
    this.listen();
  }

  listen() {
    const { marks } = this;
    marks.tabIndex = 0;
    marks.setAttribute("role", "application");
    marks.addEventListener("pointermove", (event) => this.hover(this.placeAt(event), event));
    marks.addEventListener("pointerleave", () => this.hover(null));
    marks.addEventListener("click", (event) => this.choose(this.placeAt(event)));
    marks.addEventListener("keydown", (event) => this.onKey(event));
    marks.addEventListener("blur", () => this.focus(null));
    marks.addEventListener("focus", () => marks.matches(":focus-visible") && this.focus(this.startingPlace()));
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const { header, arrays } = unpack(data);
    [this.header, this.groups] = [header, header.groups];
    this.unit = codeGroups(header.groups, arrays);
    this.largest = Math.max(...header.groups.map(({ largest }) => largest)) * this.unit;
    const [before, focused] = [this.chosen, this.focused];
    const [kind, layer, head] = header.chosen || [];
    this.chosen = this.find({ kind, layer, head });
    // Another theme, or a run that chose nothing else, leaves whoever moves by keys where they are.
    const same = before && this.chosen && nameOf(before) === nameOf(this.chosen);
    this.focused = same && focused ? this.find({ ...focused, kind: focused.group.kind }) : null;
    [this.hovered, this.tip.hidden] = [null, true];
    this.table = lookupTable(header.scale);
    const kinds = this.groups.map(
      ({ title, layers, heads, queries, keys }) =>
        tr("{title}, {layers} layers of {heads} heads, {queries} queries by {keys} keys", { title, layers, heads, queries: queries.length, keys: keys.length }),
    );
    const keys = tr("The arrow keys move between heads, Enter chooses one.");
    this.marks.setAttribute("aria-label", `${tr("{measure} of every head: {kinds}.", { measure: header.measure, kinds: kinds.join("; ") })} ${keys}`);
    this.draw();
    if (this.opening) setTimeout(() => this.showOpened(), 300);
    this.opening = false;
    if (this.root.getRootNode().activeElement === this.marks) this.focus(this.focused || this.startingPlace());
  }

  // The place of a head in what is drawn now; null if it is not there.
  find({ kind, layer, head }) {
    const group = this.groups.find((each) => each.kind === kind);
    return group && layer < group.layers && head < group.heads ? { group, layer, head } : null;
  }

  draw() {
    this.width = this.measure();
    this.theme = themeOf(this.root);
    this.layout = layOutMosaic(this.groups, this.width);
    this.high = (this.brightened && highOfMost(this.groups, this.unit)) || this.header.high || this.largest || 1;
    const { left, tile, step } = this.layout;
    this.marks.dataset.tiles = [left, tile.width + BETWEEN, step, tile.width, tile.height].join(" ");
    this.marks.dataset.tops = this.groups.map(({ top }) => top).join(" ");
    drawMosaic(this.tiles, this);
    this.drawLegend();
    this.mark();
  }

  mark() {
    const { width, height } = this.layout.tile;
    for (const [index, place] of [this.hovered, this.chosen, this.focused].entries()) {
      const { style } = this.outlines[index];
      style.display = place ? "" : "none";
      if (!place) continue;
      const [left, top] = this.layout.corner(place);
      Object.assign(style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    }
  }

  // The head under the pointer, and how many device pixels into it the pointer is.
  placeAt(event) {
    const [x, y] = pointIn(this.marks, event);
    const { left, tile, step, ratio } = this.layout;
    for (const group of this.groups) {
      const layer = Math.floor((y - group.top) / step);
      const head = Math.floor((x - left) / (tile.width + BETWEEN));
      if (layer < 0 || head < 0 || layer >= group.layers || head >= group.heads) continue;
      const corner = this.layout.corner({ group, layer, head });
      const [right, down] = [x - corner[0], y - corner[1]];
      const inside = right >= 0 && right < tile.width && down >= 0 && down < tile.height;
      return inside ? { group, layer, head, pixel: [right, down].map((side) => Math.floor(side * ratio)) } : null;
    }
    return null;
  }

  hover(place, event) {
    const moved = ["group", "layer", "head"].some((part) => place?.[part] !== this.hovered?.[part]);
    this.hovered = place;
    this.marks.style.cursor = place ? "pointer" : "";
    if (moved) this.mark();
    this.tip.hidden = true;
    if (place) this.showTip(this.describe(place), event);
  }

  describe({ group, layer, head, pixel }) {
    const [width, height] = this.layout.pixels;
    const [top, bottom] = cellsOfPixel(group.queries.length, height, pixel[1]);
    const [left, right] = cellsOfPixel(group.keys.length, width, pixel[0]);
    const { code, query, key } = largestCell(group, layer, head, [top, bottom], [left, right]);
    const value = code ? `${this.header.measure} ${weightText(code, this.unit)}` : tr("masked: may not attend");
    const cells = (bottom - top) * (right - left) * group.pool ** 2;
    return [
      element("strong", "", value),
      element("div", "", nameOf({ group, layer, head })),
      element("div", "", positionName("query", query, group.queries, group.pool)),
      element("div", "", positionName("key", key, group.keys, group.pool)),
      ...(cells > 1 ? [element("div", "dim", tr("the largest of {cells} cells in this pixel", { cells }))] : []),
    ];
  }

  startingPlace() {
    return this.chosen || { group: this.groups[0], layer: 0, head: 0 };
  }

  focus(place) {
    this.focused = place;
    if (this.header) this.mark();
    if (!place) return;
    const { group, layer, head } = place;
    const chosen = this.chosen && nameOf(place) === nameOf(this.chosen);
    const { code, query, key } = largestCell(group, layer, head, [0, group.queries.length], [0, group.keys.length]);
    const row = positionName("query", query, group.queries, group.pool);
    const column = positionName("key", key, group.keys, group.pool);
    this.spoken.textContent = tr("{name}; largest {weight}, of {row}, {column}", {
      name: chosen ? tr("{name}, chosen", { name: nameOf(place) }) : nameOf(place),
      weight: weightText(code, this.unit),
      row,
      column,
    });
  }

  onKey(event) {
    if (hasModifier(event)) return;
    const from = this.focused || this.startingPlace();
    if (event.key === "Enter" || event.key === " ") this.choose(from);
    else if (/^Arrow/.test(event.key)) this.focus(this.neighbour(from, event.key));
    else return;
    event.preventDefault();
  }

  neighbour({ group, layer, head }, key) {
    const rows = this.groups.flatMap((each) => Array.from({ length: each.layers }, (_, index) => [each, index]));
    const row = rows.findIndex(([each, index]) => each === group && index === layer);
    const [down, right] = [{ ArrowUp: -1, ArrowDown: 1 }[key] || 0, { ArrowLeft: -1, ArrowRight: 1 }[key] || 0];
    const [next, index] = rows[clamp(row + down, 0, rows.length - 1)];
    return { group: next, layer: index, head: clamp(head + right, 0, next.heads - 1) };
  }

  choose(place) {
    if (!place) return;
    const { group, layer, head } = place;
    this.chosen = { group, layer, head };
    this.mark();
    this.spoken.textContent = tr("{name}, chosen", { name: nameOf(place) });
    this.send("choose", { kind: group.kind, layer, head });
    this.opening = true;
  }

  // On a narrow screen the opened head is below the mosaic; what stands between them may have changed its height.
  showOpened() {
    const opened = this.header.opens && document.querySelector(`.${this.header.opens}`);
    const below = opened && opened.getBoundingClientRect().top > this.marks.getBoundingClientRect().bottom;
    if (below) opened.scrollIntoView({ behavior: "smooth" });
  }

  // Whether a pixel stands for more than one cell.
  get pooled() {
    const [width, height] = this.layout.pixels;
    return this.groups.some(({ queries, keys, pool }) => pool > 1 || queries.length > height || keys.length > width);
  }

  drawLegend() {
    const { header, high, table } = this;
    const beyond = this.largest > high * 1.001 ? "≥ " : "";
    const masked = this.groups.some((group) => group.masked);
    const text = [header.measure, beyond, high, masked, this.pooled].join();
    if (text === this.legend.dataset.text) return;
    this.legend.dataset.text = text;
    const entries = [colourRange([header.measure], "0", table, beyond + threeDigits(high))];
    if (masked) entries.push(element("span", "hatched", tr("masked")));
    if (this.pooled) entries.push(element("span", "dim", POOLED));
    this.legend.replaceChildren(...entries);
  }

  paint(canvas, caption) {
    const { layout, theme, header } = this;
    const masked = this.groups.some((group) => group.masked) ? `; ${tr("hatched: masked")}` : "";
    const pooled = this.pooled ? `; ${POOLED}` : "";
    const range = `${tr("{measure}: colours from 0 to {high}", { measure: header.measure, high: threeDigits(this.high) })}${masked}${pooled}`;
    const titles = { title: header.title, range, caption };
    const { pen, size, top } = startPicture(canvas, [layout.width, layout.height], theme, titles);
    const draw = (layer) => {
      const inner = drawMosaic(layer, this);
      if (this.chosen) outlineTile(inner, layout.corner(this.chosen), layout.tile, theme);
    };
    drawLayer(pen, canvas, draw, EDGE, top, layout.width, layout.height);
    return size;
  }
}

const BRIGHTEN = tr("Colours up to the largest 1% of all weights; the legend shows the range");
const POOLED = tr("a pixel shows the largest of its cells");

// "query 7: cat", or of several "query 28 and the 3 after: the cat sat on".
function positionName(side, index, labels, pool) {
  return pool > 1 ? `${roleText(side)} ${labels[index]}` : `${roleText(side)} ${index}: ${labels[index]}`;
}

function nameOf({ group, layer, head }) {
  const facts = { title: group.title, layer, head };
  return group.averaged ? tr("{title}, layer {layer}, all heads", facts) : tr("{title}, layer {layer}, head {head}", facts);
}
