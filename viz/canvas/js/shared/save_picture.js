// A picture as a file. `paint(canvas, caption)` draws all of it, with its title, its colours' range and the lines of the
// caption, on a canvas or an SvgCanvas, and gives width and height in pixels.

const EDGE = 16; // around the picture
const LINE = 18; // of text

// The page's export box asks for the picture with an event.
function offerPicture(root, paint) {
  root.addEventListener("save-picture", ({ detail }) => savePicture(paint, detail));
}

function savePicture(paint, { format, file, caption }) {
  if (format === "svg") {
    const canvas = new SvgCanvas();
    const [width, height] = paint(canvas, caption);
    const text = new XMLSerializer().serializeToString(canvas.node(width, height));
    handOver(new Blob([text], { type: "image/svg+xml" }), `${file}.svg`);
    return;
  }
  const canvas = element("canvas");
  paint(canvas, caption);
  canvas.toBlob((blob) => handOver(blob, `${file}.png`));
}

function handOver(blob, name) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

function fileNameOf(title) {
  return title.replace(/[^\w.-]+/g, "-");
}

// A canvas of `width` by `height` pixels and the caption's lines below; the pen, after title and second line on top.
function startPicture(canvas, [width, height], theme, { title, range, caption }) {
  const ratio = window.devicePixelRatio || 1;
  const ruler = element("canvas").getContext("2d");
  ruler.font = `600 14px ${theme.font}`;
  const widest = Math.max(width, ...[title, range, ...caption].map((line) => ruler.measureText(line).width));
  const whole = [Math.ceil(widest) + 2 * EDGE, height + 64 + caption.length * LINE + EDGE];
  [canvas.width, canvas.height] = whole.map((side) => Math.round(side * ratio));
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.fillStyle = theme.background;
  pen.fillRect(0, 0, ...whole);
  pen.fillStyle = theme.text;
  pen.textBaseline = "middle";
  pen.font = `600 14px ${theme.font}`;
  pen.fillText(title, EDGE, 22);
  pen.font = `12px ${theme.font}`;
  pen.fillText(range, EDGE, 44);
  caption.forEach((line, index) => pen.fillText(line, EDGE, 64 + height + (index + 0.7) * LINE));
  return { pen, whole, top: 60 };
}
