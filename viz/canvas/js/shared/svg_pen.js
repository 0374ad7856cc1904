// A canvas that writes SVG: it has as much of the canvas interface as our pictures use, so that what draws them on the
// screen also draws the file. Text stays text; pixels become an image.

const SVG_NAMES = "http://www.w3.org/2000/svg";
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
let clips = 0;

function svgNode(tag, attributes) {
  const node = document.createElementNS(SVG_NAMES, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

class SvgCanvas {
  constructor() {
    [this.style, this.dataset] = [{}, {}];
    [this.width, this.height] = [0, 0];
  }

  getContext() {
    this.pen = new SvgPen();
    return this.pen;
  }

  // The whole picture, `width` by `height` pixels large.
  node(width, height) {
    const { root } = this.pen;
    const size = { width, height, viewBox: `0 0 ${this.width} ${this.height}` };
    for (const [name, value] of Object.entries(size)) root.setAttribute(name, value);
    return root;
  }
}

// Another canvas of the same sort.
function canvasLike(canvas) {
  return canvas instanceof SvgCanvas ? new SvgCanvas() : element("canvas");
}

class SvgPen {
  constructor() {
    Object.assign(this, LOOK);
    this.root = svgNode("svg", { xmlns: SVG_NAMES });
    this.ruler = element("canvas").getContext("2d");
    this.matrix = new DOMMatrix();
    [this.kept, this.dashes, this.path, this.into] = [[], [], [], this.root];
  }

  save() {
    const look = Object.fromEntries(Object.keys(LOOK).map((name) => [name, this[name]]));
    this.kept.push({ ...look, matrix: this.matrix, dashes: this.dashes, into: this.into });
  }

  restore() {
    Object.assign(this, this.kept.pop());
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

  put(tag, attributes, matrix = this.matrix) {
    const { a, b, c, d, e, f } = matrix;
    const look = { transform: `matrix(${[a, b, c, d, e, f].join(" ")})`, opacity: this.globalAlpha };
    const node = svgNode(tag, { ...look, ...attributes });
    this.into.append(node);
    return node;
  }

  stroked() {
    const line = { fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth };
    return { ...line, ...(this.dashes.length ? { "stroke-dasharray": this.dashes.join(" ") } : {}) };
  }

  fillRect(x, y, width, height) {
    this.put("rect", { x, y, width: Math.max(width, 0), height: Math.max(height, 0), fill: this.filling() });
  }

  strokeRect(x, y, width, height) {
    this.put("rect", { x, y, width: Math.max(width, 0), height: Math.max(height, 0), ...this.stroked() });
  }

  fillText(text, x, y) {
    const place = { x, y, "text-anchor": ANCHORS[this.textAlign], "dominant-baseline": BASELINES[this.textBaseline] };
    const node = this.put("text", { ...place, fill: this.filling() });
    // Another font, where the page's is not installed, takes the same room.
    if (text.length > 1) node.setAttribute("textLength", this.measureText(text).width);
    node.setAttribute("lengthAdjust", "spacingAndGlyphs");
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

  rect(x, y, width, height) {
    this.path.push(`M${x} ${y}h${width}v${height}h${-width}z`);
  }

  stroke() {
    this.put("path", { d: this.path.join(""), ...this.stroked() });
  }

  fill() {
    this.put("path", { d: this.path.join(""), fill: this.filling() });
  }

  clip() {
    const id = `clip-${(clips += 1)}`;
    const { a, b, c, d, e, f } = this.matrix;
    const shape = svgNode("path", { d: this.path.join(""), transform: `matrix(${[a, b, c, d, e, f].join(" ")})` });
    const clipping = svgNode("clipPath", { id });
    clipping.append(shape);
    const group = svgNode("g", { "clip-path": `url(#${id})` });
    this.into.append(clipping, group);
    this.into = group;
  }

  createPattern(tile) {
    return tile;
  }

  // A colour, or a tile that repeats.
  filling() {
    if (typeof this.fillStyle === "string") return this.fillStyle;
    const { width, height } = this.fillStyle;
    const id = `tile-${(clips += 1)}`;
    const tile = svgNode("pattern", { id, width, height, patternUnits: "userSpaceOnUse" });
    tile.append(svgNode("image", { width, height, href: this.fillStyle.toDataURL() }));
    this.into.append(tile);
    return `url(#${id})`;
  }

  drawImage(source, x, y, width, height) {
    if (source instanceof SvgCanvas) {
      const group = this.put("g", {});
      const inner = source.node(width, height);
      inner.setAttribute("x", x);
      inner.setAttribute("y", y);
      group.append(inner);
      return;
    }
    const image = this.put("image", { x, y, width, height, preserveAspectRatio: "none", href: source.toDataURL() });
    image.style.imageRendering = this.imageSmoothingEnabled ? "auto" : "pixelated";
  }

  // In pixels of the canvas, as there.
  putImageData(image, x, y) {
    const tile = element("canvas");
    [tile.width, tile.height] = [image.width, image.height];
    tile.getContext("2d").putImageData(image, 0, 0);
    const { width, height } = image;
    this.put("image", { x, y, width, height, href: tile.toDataURL() }, new DOMMatrix()).style.imageRendering = "pixelated";
  }
}
