// needs: shared/elements.js shared/colours.js shared/save_svg.js
// Saves a picture as a file. `paint(canvas, caption)` draws it with its title, its range of colours and the lines of the
// caption on a canvas or an SvgCanvas, and returns [width, height] in pixels.

const EDGE = 16; // pixels around the picture
const LINE = 18; // pixels from one line of text to the next

// The page's export box asks for the picture with this event.
function offerPicture(root, paint) {
  root.addEventListener("save-picture", ({ detail }) => savePicture(paint, detail));
}

function savePicture(paint, { format, file, caption }) {
  if (format === "svg") {
    saveSvg(paint, { file, caption });
    return;
  }
  const canvas = element("canvas");
  paint(canvas, caption);
  canvas.toBlob((blob) => download(blob, `${file}.png`));
}

// The pen of a canvas that is empty and as sharp as the screen where it is shown in this size.
function sharpPen(canvas, width, height) {
  const ratio = ratioOf(canvas);
  [canvas.width, canvas.height] = [width, height].map((side) => Math.round(side * ratio));
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  return pen;
}

// Starts a file of a picture of `width` by `height` pixels: the title and the range above, the caption below. Returns
// the pen, the size of all that, and where the picture's top is.
function startPicture(canvas, [width, height], theme, { title, range, caption }) {
  canvas.forFile = true;
  const ruler = element("canvas").getContext("2d");
  ruler.font = `600 14px ${theme.font}`;
  const widest = Math.max(width, ...[title, range, ...caption].map((line) => ruler.measureText(line).width));
  const size = [Math.ceil(widest) + 2 * EDGE, height + 64 + caption.length * LINE + EDGE];
  const pen = sharpPen(canvas, ...size);
  pen.fillStyle = theme.background;
  pen.fillRect(0, 0, ...size);
  pen.fillStyle = theme.text;
  pen.textBaseline = "middle";
  pen.font = `600 14px ${theme.font}`;
  pen.fillText(title, EDGE, 22);
  pen.font = `12px ${theme.font}`;
  pen.fillText(range, EDGE, 44);
  caption.forEach((line, index) => pen.fillText(line, EDGE, 64 + height + (index + 0.7) * LINE));
  return { pen, size, top: 60 };
}

// What `draw(canvas)` draws, as part of a file.
function drawLayer(pen, canvas, draw, x, y, width, height) {
  const layer = canvas.layer?.() ?? element("canvas");
  layer.forFile = true;
  draw(layer);
  pen.drawImage(layer, x, y, width, height);
}

// The text in `n` lines of letters, the fewest that fit where it is `times` too wide when they are `n` times smaller.
function linesIn(text, times) {
  const letters = [...text];
  const count = Math.ceil(Math.sqrt(times));
  const most = Math.ceil(letters.length / count);
  return Array.from({ length: count }, (_, line) => letters.slice(line * most, (line + 1) * most).join(""));
}
