// needs: shared/mount.js shared/picture.css shared/colours.js shared/save_picture.js
// What all pictures on canvases share: they are drawn again when their width changes, can be saved, and have a tooltip.
// A subclass has `update(component)`, `paint(canvas, caption)` and a `draw()` that begins with this one, and appends `tip` and
// `spoken` to its root.

class Picture {
  constructor(root) {
    this.root = root;
    this.spoken = liveRegion();
    this.tip = element("div", "tip");
    this.tip.hidden = true;
    offerPicture(root, (canvas, caption) => this.paint(canvas, caption));
    this.ratio = ratioOf(root);
    this.observer = new ResizeObserver(() => {
      const ratio = ratioOf(root);
      if (this.header && (this.measure() !== this.width || ratio !== this.ratio)) this.draw();
      this.ratio = ratio;
    });
    this.observer.observe(root);
    // Present tells of another height; another width is seen anyway.
    root.addEventListener("room", () => this.header && this.measure() === this.width && this.draw());
  }

  close() {
    this.observer.disconnect();
  }

  measure() {
    return this.root.clientWidth;
  }

  // What depends on where the picture stands: its width, the colours of the page, on a whole screen the height that it fills.
  draw() {
    const { root } = this;
    [this.width, this.theme, this.room] = [this.measure(), themeOf(root), roomOf(root)];
    root.classList.toggle("present", this.room !== null);
  }

  // What is left of that from the top of one of its parts on; null where it has its usual size.
  roomFrom(part) {
    const above = part.getBoundingClientRect().top - this.root.getBoundingClientRect().top;
    return this.room === null ? null : this.room - above / zoomOf(this.root);
  }

  pngButton() {
    return button("PNG", tr("Download the picture"), () => {
      const paint = (canvas, caption) => this.paint(canvas, caption);
      savePicture(paint, { format: "png", file: this.header.title.replace(/[^\p{L}\p{N}_.-]+/gu, "-"), caption: [] });
    });
  }

  // Of colours that go up to the largest weights that are there, by `high`.
  brightenButton(title) {
    return toggleButton(tr("Brighten"), title, (pressed) => {
      this.brightened = pressed;
      this.draw();
    });
  }

  // The legend: a range of colours, whether there are masked cells, and sentences.
  showLegend(range, masked, ...sentences) {
    const hatched = masked ? [element("span", "hatched", tr("masked"))] : [];
    this.legend.replaceChildren(range, ...hatched, ...sentences.map((text) => element("span", "dim", text)));
  }

  // The tooltip beside the pointer, inside the picture: texts, the first in bold, or nodes; `toLeft`: left of the pointer.
  showTip(lines, event, toLeft = false) {
    const { root, tip } = this;
    tip.hidden = false;
    tip.replaceChildren(...lines.map((line, index) => (line instanceof Node ? line : element(index ? "div" : "strong", "", line))));
    const [x, y] = pointIn(root, event);
    const left = toLeft ? x - tip.offsetWidth - 14 : x + 14;
    const height = tip.offsetHeight + 12;
    tip.style.left = `${clamp(left, 0, Math.max(root.clientWidth - tip.offsetWidth - 4, 0))}px`;
    tip.style.top = `${y > height ? y - height : y + 18}px`;
  }
}

// Pixels that the window leaves below `above` pixels of page, so that a picture ends on the screen on which it begins;
// not below `least`, nor above `most`.
function roomBelow(above, least, most) {
  return clamp(window.innerHeight - above, least, most);
}

// A legend's entry: what has these colours, and the colours between the two ends of their range.
function colourRange(names, low, table, high) {
  const colours = packedColours(table);
  const bar = imageOf(256, 1, (step) => colours[step]);
  return element("span", "range", ...names, element("span", "end", low), bar, element("span", "end", high));
}

// A canvas with a pixel for each cell; `colourAt(cell)` is packed, 0 transparent.
function imageOf(columns, rows, colourAt) {
  const canvas = element("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const image = new ImageData(columns, rows);
  new Uint32Array(image.data.buffer).forEach((_, cell, pixels) => (pixels[cell] = colourAt(cell)));
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// The canvas in this size in CSS pixels, empty; its pen.
function sizedCanvas(canvas, width, height) {
  const pen = sharpPen(canvas, width, height);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  return pen;
}

function frame(pen, box, colour, thickness) {
  pen.strokeStyle = colour;
  pen.lineWidth = thickness;
  pen.strokeRect(...box);
}

// Two tones, so that the line is visible on every colour of the scale.
function outline(pen, [x, y, width, height], thickness, theme, colour = theme.text) {
  const wider = [x - 0.5, y - 0.5, width + 1, height + 1];
  frame(pen, wider, theme.background, thickness + 2);
  frame(pen, wider, colour, thickness);
}

const HATCH = 6; // pixels from one line of the hatching to the next

// A fill style for masked cells.
function hatching(pen, theme) {
  return pen.createPattern(hatchTile(theme), "repeat");
}

function hatchTile(theme) {
  const tile = element("canvas");
  [tile.width, tile.height] = [HATCH, HATCH];
  // On a canvas of the GPU reading pixels back would wait for all drawing.
  const lines = tile.getContext("2d", { willReadFrequently: true });
  lines.strokeStyle = theme.text;
  lines.globalAlpha = 0.4;
  lines.beginPath();
  for (const start of [-3, 3, 9]) {
    lines.moveTo(start - 3, 9);
    lines.lineTo(start + 9, -3);
  }
  lines.stroke();
  return tile;
}

// Writes a text where `most` pixels of width are: on the screen cut with an ellipsis, in a file whole, in as many smaller
// lines as fit the height of one. The baseline is the middle.
function writeIn(pen, text, most, x, y) {
  const wide = pen.measureText(text).width;
  if (wide <= most || !pen.canvas.forFile) {
    pen.fillText(shortened(pen, text, most), x, y);
    return;
  }
  const lines = linesIn(text, wide / Math.max(most, 1));
  const height = 1.1 * parseFloat(/([\d.]+)px/.exec(pen.font)[1]);
  pen.save();
  pen.translate(x, y);
  pen.scale(1 / lines.length, 1 / lines.length);
  lines.forEach((line, index) => pen.fillText(line, 0, (index - (lines.length - 1) / 2) * height));
  pen.restore();
}

// The same upwards at an angle, from a point on.
function writeSlanted(pen, text, most, [x, y], angle) {
  pen.save();
  pen.translate(x, y);
  pen.rotate(-angle);
  writeIn(pen, text, most, 0, 0);
  pen.restore();
}

// The text, cut with an ellipsis where it is wider than `most` pixels.
function shortened(pen, text, most) {
  if (pen.measureText(text).width <= most) return text;
  let length = text.length;
  while (length > 1 && pen.measureText(`${text.slice(0, length)}…`).width > most) length -= 1;
  return `${text.slice(0, length)}…`;
}
