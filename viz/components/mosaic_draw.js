// The pixels of the mosaic. Weights are float16, whose bits, read as whole numbers, are in the same order; a masked
// cell has the bits 0xFFFF, read as -1. So the largest of several cells is found, and coloured, without decoding them.

const MASKED = -1;
const GAP = 4; // between tiles
const TITLE = 40; // above a group's tiles: its title and the numbers of its heads
const BELOW = 14; // below a group

function weightOf(bits) {
  const [exponent, fraction] = [bits >> 10, bits & 1023];
  return exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : fraction * 2 ** -24;
}

// Pixels (red first in memory) of every float16 from 0 up, with colours from 0 to `high`.
function pixelTable(table, high) {
  const pixels = new Uint32Array(0x7c00);
  for (let bits = 0; bits < pixels.length; bits += 1) {
    const step = 3 * Math.round(255 * Math.min(weightOf(bits) / high, 1));
    pixels[bits] = (255 << 24) | (table[step + 2] << 16) | (table[step + 1] << 8) | table[step];
  }
  return pixels;
}

// Places in CSS pixels that are whole pixels of the screen. The height follows from the shape alone.
function layOutMosaic(groups, width) {
  const ratio = window.devicePixelRatio || 1;
  const snap = (pixels) => Math.floor(pixels * ratio) / ratio;
  const left = width < 600 ? 16 : 54;
  const layers = groups.reduce((sum, group) => sum + group.layers, 0);
  const height = Math.min(Math.max(Math.floor(600 / layers), 44), 110);
  const most = Math.max(...groups.map((group) => group.heads));
  const room = (width - left - 2) / most - GAP;
  const tile = { width: Math.max(snap(Math.min(room, 2.4 * height)), 4), height: snap(height) };
  let top = 0;
  for (const group of groups) {
    group.top = top + TITLE;
    top = group.top + group.layers * (height + GAP) + BELOW;
  }
  const place = (group, layer, head) => [snap(left + head * (tile.width + GAP)), group.top + layer * (height + GAP)];
  return { left, tile, place, ratio, width, height: top, step: height + GAP };
}

// Which cells each pixel along one side stands for: from `starts` up to `ends`, at least one.
function spans(cells, pixels) {
  const [starts, ends] = [new Int32Array(pixels), new Int32Array(pixels)];
  for (let pixel = 0; pixel < pixels; pixel += 1) {
    starts[pixel] = Math.floor((pixel * cells) / pixels);
    ends[pixel] = Math.max(Math.floor(((pixel + 1) * cells) / pixels), starts[pixel] + 1);
  }
  return { starts, ends };
}

// The first of the largest cells of a block; its index in the head.
function largestIn(weights, columns, top, bottom, left, right) {
  let best = top * columns + left;
  for (let row = top; row < bottom; row += 1) {
    for (let cell = row * columns + left; cell < row * columns + right; cell += 1) {
      if (weights[cell] > weights[best]) best = cell;
    }
  }
  return best;
}

// One head into `pixels`; where a pixel stands for several cells it shows the largest.
function paintHead(pixels, weights, columns, down, across, table, hatching) {
  const width = across.starts.length;
  const line = new Int16Array(width);
  for (let y = 0; y < down.starts.length; y += 1) {
    if (!y || down.starts[y] !== down.starts[y - 1]) {
      for (let x = 0; x < width; x += 1) {
        line[x] = weights[
          largestIn(weights, columns, down.starts[y], down.ends[y], across.starts[x], across.ends[x])
        ];
      }
    }
    for (let x = 0; x < width; x += 1) {
      pixels[y * width + x] = line[x] === MASKED ? hatching[(x + y) % 6] : table[line[x]];
    }
  }
}

function paintTiles(pen, groups, layout, table, theme) {
  const [width, height] = [layout.tile.width, layout.tile.height].map((side) => Math.round(side * layout.ratio));
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const hatching = new Uint32Array(6).fill(hatchPixel(theme.text), 0, Math.ceil(layout.ratio));
  for (const group of groups) {
    const [rows, columns] = [group.queries.length, group.keys.length];
    const [down, across] = [spans(rows, height), spans(columns, width)];
    for (const [layer, head] of placesOf(group)) {
      paintHead(pixels, headOf(group, layer, head), columns, down, across, table, hatching);
      const [x, y] = layout.place(group, layer, head);
      pen.putImageData(image, Math.round(x * layout.ratio), Math.round(y * layout.ratio));
    }
  }
}

function placesOf({ layers, heads }) {
  return Array.from({ length: layers * heads }, (_, index) => [Math.floor(index / heads), index % heads]);
}

function headOf(group, layer, head) {
  const cells = group.queries.length * group.keys.length;
  const start = (layer * group.heads + head) * cells;
  return group.weights.subarray(start, start + cells);
}

// The text colour of the theme, two fifths opaque.
function hatchPixel(colour) {
  // Read back at once: on a canvas that the browser would draw later that waits for all drawing before it.
  const pen = element("canvas").getContext("2d", { willReadFrequently: true });
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
  return ((102 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

function sized(canvas, layout) {
  [canvas.width, canvas.height] = [layout.width, layout.height].map((side) => Math.round(side * layout.ratio));
  canvas.style.width = `${layout.width}px`;
  canvas.style.height = `${layout.height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(layout.ratio, layout.ratio);
  return pen;
}

function writeLabels(pen, groups, layout, theme) {
  pen.fillStyle = theme.text;
  pen.textBaseline = "middle";
  const long = layout.left > 30;
  for (const group of groups) {
    pen.textAlign = "left";
    pen.font = `600 13px ${theme.font}`;
    pen.fillText(group.title, layout.place(group, 0, 0)[0], group.top - 29);
    const sizes = `${group.queries.length} × ${group.keys.length}`;
    const start = layout.place(group, 0, 0)[0] + pen.measureText(group.title).width + 10;
    pen.font = `12px ${theme.font}`;
    pen.globalAlpha = 0.75;
    pen.fillText(long ? `${sizes} (queries × keys)` : sizes, start, group.top - 29);
    pen.textAlign = "center";
    const fits = layout.tile.width > 48;
    for (let head = 0; head < group.heads; head += 1) {
      const x = layout.place(group, 0, head)[0] + layout.tile.width / 2;
      const name = group.averaged ? "all heads" : `head ${head}`;
      pen.fillText(fits ? name : String(head), x, group.top - 9);
    }
    pen.textAlign = "right";
    for (let layer = 0; layer < group.layers; layer += 1) {
      const y = layout.place(group, layer, 0)[1] + layout.tile.height / 2;
      pen.fillText(long ? `layer ${layer}` : String(layer), layout.left - 6, y);
    }
    pen.globalAlpha = 1;
  }
}

// Two tones, so that the line is seen on every colour of the scale.
function outlineTile(pen, [x, y], { width, height }, colours, thickness, dashes = []) {
  for (const [colour, extra] of [[colours[0], 2], [colours[1], 0]]) {
    pen.setLineDash(extra ? [] : dashes);
    pen.strokeStyle = colour;
    pen.lineWidth = thickness + extra;
    pen.strokeRect(x - thickness / 2, y - thickness / 2, width + thickness, height + thickness);
  }
  pen.setLineDash([]);
}

function paintMosaic(view, canvas, caption) {
  const { layout, theme, groups, header } = view;
  const says = { title: header.title, range: view.rangeInWords(), caption };
  const { pen, whole, top } = startPicture(canvas, [layout.width, layout.height], theme, says);
  const tiles = canvasLike(canvas);
  const inner = sized(tiles, layout);
  writeLabels(inner, groups, layout, theme);
  paintTiles(inner, groups, layout, pixelTable(view.colours, view.high), theme);
  if (view.chosen) {
    const { group, layer, head } = view.chosen;
    outlineTile(inner, layout.place(group, layer, head), layout.tile, [theme.background, theme.primary], 3);
  }
  pen.drawImage(tiles, EDGE, top, layout.width, layout.height);
  return whole;
}
