// needs: shared/elements.js
// A canvas that writes SVG. It has the part of the canvas interface that our pictures use, so the same code draws the
// screen and the file. Text stays text; pixels become an image.

const LOOK = {
  fillStyle: "#000000",
  strokeStyle: "#000000",
  globalAlpha: 1,
  lineWidth: 1,
  font: "10px sans-serif",
  textAlign: "start",
  textBaseline: "alphabetic",
  imageSmoothingEnabled: true,
};
const ANCHORS = { left: "start", start: "start", center: "middle", right: "end", end: "end" };
const BASELINES = { middle: "central", top: "text-before-edge", bottom: "text-after-edge", alphabetic: "auto" };
let tiles = 0;

class SvgCanvas {
  constructor() {
    [this.style, this.dataset] = [{}, {}];
    [this.width, this.height] = [0, 0];
  }

  getContext() {
    this.pen = new SvgPen();
    this.pen.canvas = this;
    return this.pen;
  }

  // For a part of the picture, drawn by itself.
  layer() {
    return new SvgCanvas();
  }

  // The picture as an <svg> element, `width` by `height` pixels large.
  node(width, height) {
    const { root } = this.pen;
    const size = { width, height, viewBox: `0 0 ${this.width} ${this.height}` };
    for (const [name, value] of Object.entries(size)) root.setAttribute(name, value);
    return root;
  }
}

class SvgPen {
  constructor() {
    Object.assign(this, LOOK);
    this.group = this.root = svgElement("svg", {});
    this.ruler = element("canvas").getContext("2d");
    this.matrix = new DOMMatrix();
    [this.stack, this.dashes, this.path] = [[], [], []];
  }

  save() {
    const look = Object.fromEntries(Object.keys(LOOK).map((name) => [name, this[name]]));
    this.stack.push({ ...look, matrix: this.matrix, dashes: this.dashes, group: this.group });
  }

  restore() {
    Object.assign(this, this.stack.pop());
  }

  scale(across, down) {
    this.matrix = this.matrix.scale(across, down);
  }

  translate(x, y) {
    this.matrix = this.matrix.translate(x, y);
  }

  rotate(angle) {
    this.matrix = this.matrix.rotate((angle * 180) / Math.PI);
  }

  setLineDash(dashes) {
    this.dashes = dashes;
  }

  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  add(tag, attributes) {
    const { a, b, c, d, e, f } = this.matrix;
    const look = { transform: `matrix(${[a, b, c, d, e, f].join(" ")})`, opacity: this.globalAlpha };
    const node = svgElement(tag, { ...look, ...attributes });
    this.group.append(node);
    return node;
  }

  strokeStyles() {
    const line = { fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth };
    return { ...line, ...(this.dashes.length ? { "stroke-dasharray": this.dashes.join(" ") } : {}) };
  }

  fillRect(x, y, width, height) {
    this.add("rect", { x, y, width: Math.max(width, 0), height: Math.max(height, 0), fill: this.paintServer() });
  }

  strokeRect(x, y, width, height) {
    this.add("rect", { x, y, width: Math.max(width, 0), height: Math.max(height, 0), ...this.strokeStyles() });
  }

  fillText(text, x, y) {
    const place = { x, y, "text-anchor": ANCHORS[this.textAlign], "dominant-baseline": BASELINES[this.textBaseline] };
    const node = this.add("text", { ...place, fill: this.paintServer() });
    node.style.font = this.font;
    node.style.whiteSpace = "pre";
    node.textContent = text;
  }

  beginPath() {
    this.path = [];
  }

  moveTo(x, y) {
    this.path.push(`M${x} ${y}`);
  }

  lineTo(x, y) {
    this.path.push(`L${x} ${y}`);
  }

  quadraticCurveTo(x, y, toX, toY) {
    this.path.push(`Q${x} ${y} ${toX} ${toY}`);
  }

  roundRect(x, y, width, height, radius) {
    const [right, down, r] = [width - 2 * radius, height - 2 * radius, radius];
    const corner = (toX, toY) => `a${r} ${r} 0 0 1 ${toX} ${toY}`;
    this.path.push(`M${x + r} ${y}h${right}${corner(r, r)}v${down}${corner(-r, r)}h${-right}${corner(-r, -r)}v${-down}${corner(r, -r)}z`);
  }

  rect(x, y, width, height) {
    this.path.push(`M${x} ${y}h${width}v${height}h${-width}z`);
  }

  stroke() {
    this.add("path", { d: this.path.join(""), ...this.strokeStyles() });
  }

  fill() {
    this.add("path", { d: this.path.join(""), fill: this.paintServer() });
  }

  // What follows, until the pen is as it was saved, is seen only inside the path.
  clip() {
    const id = `tile-${(tiles += 1)}`;
    const inside = svgElement("clipPath", { id });
    const { a, b, c, d, e, f } = this.matrix;
    inside.append(svgElement("path", { d: this.path.join(""), transform: `matrix(${[a, b, c, d, e, f].join(" ")})` }));
    const group = svgElement("g", { "clip-path": `url(#${id})` });
    this.group.append(inside, group);
    this.group = group;
  }

  createPattern(tile) {
    return tile;
  }

  // The fill style as an attribute: a colour, or a reference to a tile that repeats.
  paintServer() {
    if (typeof this.fillStyle === "string") return this.fillStyle;
    const { width, height } = this.fillStyle;
    const id = `tile-${(tiles += 1)}`;
    const tile = svgElement("pattern", { id, width, height, patternUnits: "userSpaceOnUse" });
    tile.append(svgElement("image", { width, height, href: this.fillStyle.toDataURL() }));
    this.root.append(tile);
    return `url(#${id})`;
  }

  drawImage(source, x, y, width, height) {
    if (source instanceof SvgCanvas) {
      const group = this.add("g", {});
      const inner = source.node(width, height);
      inner.setAttribute("x", x);
      inner.setAttribute("y", y);
      group.append(inner);
      return;
    }
    const image = this.add("image", { x, y, width, height, preserveAspectRatio: "none", href: source.toDataURL() });
    image.style.imageRendering = this.imageSmoothingEnabled ? "auto" : "pixelated";
  }

  // At pixels of the canvas, whatever the transformation, as a canvas does.
  putImageData(image, x, y) {
    const tile = element("canvas");
    [tile.width, tile.height] = [image.width, image.height];
    tile.getContext("2d").putImageData(image, 0, 0);
    this.save();
    [this.matrix, this.imageSmoothingEnabled] = [new DOMMatrix(), false];
    this.drawImage(tile, x, y, image.width, image.height);
    this.restore();
  }
}
