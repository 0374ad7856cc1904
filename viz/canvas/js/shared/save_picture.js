// needs: shared/elements.js shared/colours.js shared/svg_pen.js
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
    const canvas = new SvgCanvas();
    const [width, height] = paint(canvas, caption);
    downloadSvg(canvas.node(width, height), file);
    return;
  }
  const canvas = element("canvas");
  paint(canvas, caption);
  canvas.toBlob((blob) => download(blob, `${file}.png`));
}

async function downloadSvg(node, file) {
  const fonts = await fontsOf(node);
  if (fonts) {
    const style = svgElement("style", {});
    style.textContent = fonts;
    node.prepend(style);
  }
  download(new Blob([new XMLSerializer().serializeToString(node)], { type: "image/svg+xml" }), `${file}.svg`);
}

// The page's fonts that an SVG's texts name, as rules of CSS with the fonts inside: the file brings them along.
async function fontsOf(node) {
  const texts = [...node.querySelectorAll("text")];
  const named = texts.map(({ style }) => style.fontFamily).join().replaceAll(/["']/g, "").split(/\s*,\s*/);
  const rules = [...document.styleSheets].flatMap(rulesOf).filter((rule) => rule instanceof CSSFontFaceRule);
  const used = rules.filter(({ style }) => {
    const family = style.getPropertyValue("font-family").replaceAll(/["']/g, "");
    return named.includes(family) && style.getPropertyValue("font-style") !== "italic";
  });
  return (await Promise.all(used.map(withFontInside))).join("\n");
}

function rulesOf(sheet) {
  try {
    return [...sheet.cssRules];
  } catch {
    return []; // of another origin
  }
}

async function withFontInside({ cssText, parentStyleSheet, style }) {
  const found = /url\(["']?([^"')]+)["']?\)/.exec(style.getPropertyValue("src"));
  if (!found || found[1].startsWith("data:")) return cssText;
  const answer = await fetch(new URL(found[1], parentStyleSheet.href || document.baseURI));
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return cssText.replace(found[0], `url("data:font/woff2;base64,${btoa(letters)}")`);
}

function download(blob, name) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// Starts a file of a picture of `width` by `height` pixels: the title and the range above, the caption below. Returns
// the pen, the size of all that, and where the picture's top is.
function startPicture(canvas, [width, height], theme, { title, range, caption }) {
  const ratio = window.devicePixelRatio || 1;
  const ruler = element("canvas").getContext("2d");
  ruler.font = `600 14px ${theme.font}`;
  const widest = Math.max(width, ...[title, range, ...caption].map((line) => ruler.measureText(line).width));
  const size = [Math.ceil(widest) + 2 * EDGE, height + 64 + caption.length * LINE + EDGE];
  [canvas.width, canvas.height] = size.map((side) => Math.round(side * ratio));
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
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
  const layer = canvas instanceof SvgCanvas ? new SvgCanvas() : element("canvas");
  draw(layer);
  pen.drawImage(layer, x, y, width, height);
}
