// needs: shared/grid.js shared/payload.js mosaic/mosaic_draw.js
// The mosaic component: every head of every layer on one canvas, and above it what takes the pointer and the keys.

class View extends Picture {
  constructor(root) {
    super(root);
    this.tiles = element("canvas");
    this.outlines = ["hovered", "chosen", "focused"].map((name) => element("div", `outline ${name}`));
    this.marks = element("div", "marks", ...this.outlines);
    this.grid = new Grid(this, this, this.marks);
    this.legend = element("div", "legend");
    const toolbar = element("div", "toolbar", this.legend, this.brightenButton(BRIGHTEN), this.pngButton());
    root.append(toolbar, element("div", "layers", this.tiles, this.marks), this.spoken, this.tip);
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const { header, arrays } = unpack(data);
    [this.header, this.groups] = [header, header.groups];
    this.unit = codeGroups(header.groups, arrays);
    this.largest = Math.max(...header.groups.map(({ largest }) => largest)) * this.unit;
    const before = this.chosen;
    const [kind, layer, head] = header.chosen || [];
    this.chosen = this.find({ kind, layer, head });
    // Another theme, or a run that chose nothing else, leaves whoever moves by keys where they are.
    const same = before && this.chosen && nameOf(before) === nameOf(this.chosen);
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
    this.grid.resume(same);
  }

  // The place of a head in what is drawn now; null if it is not there.
  find({ kind, layer, head }) {
    const group = this.groups.find((each) => each.kind === kind);
    return group && layer < group.layers && head < group.heads ? { group, layer, head } : null;
  }

  draw() {
    super.draw();
    this.high = (this.brightened && highOfMost(this.groups, this.unit)) || this.header.high || this.largest || 1;
    this.layout = layOutMosaic(this.groups, this.width, ratioOf(this.root), this.roomFrom(this.tiles));
    const { left, tile, step } = this.layout;
    this.marks.dataset.tiles = [left, tile.width + BETWEEN, step, tile.width, tile.height].join(" ");
    this.marks.dataset.tops = this.groups.map(({ top }) => top).join(" ");
    drawMosaic(this.tiles, this);
    this.showLegend(weightRange(this), this.groups.some(({ masked }) => masked), ...(this.pooled ? [POOLED] : []));
    this.mark();
  }

  // A cell is a head: its row among the layers of all groups, its column, and which device pixel of it the pointer is at.
  headAt([row, column]) {
    const { lines } = this.layout;
    const [group, layer] = lines[Math.min(row, lines.length - 1)]; // the cursor may come from a picture with more
    return { group, layer, head: Math.min(column, group.heads - 1) };
  }

  boxOf(cell) {
    const { tile, corner } = this.layout;
    return [...corner(this.headAt(cell)), tile.width, tile.height];
  }

  cellAt([x, y]) {
    for (const [row, [group]] of this.layout.lines.entries()) {
      for (let head = 0; head < group.heads; head += 1) {
        const [left, top, width, height] = this.boxOf([row, head]);
        const [right, down] = [x - left, y - top];
        const inside = right >= 0 && down >= 0 && right < width && down < height;
        if (inside) return [row, head, [right, down].map((side) => Math.floor(side * this.layout.ratio))];
      }
    }
    return null;
  }

  start() {
    const { group, layer, head } = this.chosen || { group: this.groups[0], layer: 0, head: 0 };
    return [this.layout.lines.findIndex(([each, index]) => each === group && index === layer), head];
  }

  point(cell) {
    // Where the cursor is, its own outline is enough.
    this.hovered = cell !== this.grid.cell && cell;
    this.marks.style.cursor = cell ? "pointer" : "";
    this.mark();
  }

  mark() {
    const chosen = this.chosen && this.start();
    for (const [index, cell] of [this.hovered, chosen, this.grid.cell].entries()) {
      const { style } = this.outlines[index];
      style.display = cell ? "" : "none";
      if (!cell) continue;
      const [left, top, width, height] = this.boxOf(cell).map((side) => `${side}px`);
      Object.assign(style, { left, top, width, height });
    }
  }

  // The largest weight of a head, or of those in one pixel of it, and its query and key.
  largestIn(cell) {
    const { group, layer, head } = this.headAt(cell);
    const span = (labels, side) => (cell[2] ? cellsOfPixel(labels.length, this.layout.pixels[side], cell[2][side]) : [0, labels.length]);
    const [down, across] = [span(group.queries, 1), span(group.keys, 0)];
    const { code, query, key } = largestCell(group, layer, head, down, across);
    const row = positionName("query", query, group.queries, group.pool);
    const column = positionName("key", key, group.keys, group.pool);
    const cells = cell[2] && (down[1] - down[0]) * (across[1] - across[0]) * group.pool ** 2;
    return { name: nameOf({ group, layer, head }), code, weight: weightText(code, this.unit), row, column, cells };
  }

  describe(cell) {
    const { name, code, weight, row, column, cells } = this.largestIn(cell);
    const value = code ? `${this.header.measure} ${weight}` : tr("masked: may not attend");
    const pooled = cells > 1 ? [element("div", "dim", tr("the largest of {cells} cells in this pixel", { cells }))] : [];
    return [value, name, row, column, ...pooled];
  }

  say(cell) {
    const { name, weight, row, column } = this.largestIn(cell);
    const chosen = this.chosen && name === nameOf(this.chosen);
    return tr("{name}; largest {weight}, of {row}, {column}", {
      name: chosen ? tr("{name}, chosen", { name }) : name,
      weight,
      row,
      column,
    });
  }

  choose(cell) {
    if (!cell) return;
    const { group, layer, head } = (this.chosen = this.headAt(cell));
    this.mark();
    this.spoken.textContent = tr("{name}, chosen", { name: nameOf(this.chosen) });
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

  paint(canvas, caption) {
    const { groups, theme, header, chosen } = this;
    // On the screen, a picture may be enlarged.
    const layout = layOutMosaic(groups, this.width, devicePixelRatio);
    const masked = groups.some((group) => group.masked) ? `; ${tr("hatched: masked")}` : "";
    const pooled = this.pooled ? `; ${POOLED}` : "";
    const range = `${tr("{measure}: colours from 0 to {high}", { measure: header.measure, high: threeDigits(this.high) })}${masked}${pooled}`;
    const titles = { title: header.title, range, caption };
    const { pen, size, top } = startPicture(canvas, [layout.width, layout.height], theme, titles);
    const draw = (layer) => {
      const inner = drawMosaic(layer, { ...this, layout });
      if (!chosen) return;
      // As the CSS draws .outline.chosen.
      const [[x, y], { width, height }] = [layout.corner(chosen), layout.tile];
      outline(inner, [x - 1, y - 1, width + 2, height + 2], 3, theme, theme.primary);
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
