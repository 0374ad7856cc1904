// Draws the mosaic from 16-bit codes of the weights: 0 is a masked cell, code c is the weight (c - 1) * unit. The largest of
// several cells is therefore the one with the largest code.

const CODES = 65536;
const BETWEEN = 4; // pixels between tiles
const TITLE = 40; // pixels above a group's tiles, for its title and the numbers of its heads
const BELOW = 14; // pixels below a group

// Gives each group the `codes` of each layer, (heads, query, key), the largest of them, and whether some are masked; returns
// the unit.
function codeGroups(groups, arrays) {
  const parts = groups.map(({ paths, masked }) => paths.map((path) => ({
    array: arrayAt(arrays, named(path, "pattern")),
    mask: masked && arrayAt(arrays, named(path, "mask")),
  })));
  const { unit, codes } = encode(parts.flat());
  for (const group of groups) {
    group.codes = codes.splice(0, group.layers);
    group.masked = group.codes.some((layer) => layer.includes(0));
    group.largest = Math.max(...group.codes.map(largestCode)) - 1;
  }
  return unit;
}

// With all decimals that the codes resolve: four for weights up to 1.
function weightText(code, unit) {
  const decimals = Math.max(Math.floor(-Math.log10(unit)), 0);
  const weight = (code - 1) * unit;
  return Number(weight.toFixed(decimals)) ? fixed(weight, decimals) : tr("under {least}", { least: fixed(0.5 / 10 ** decimals, decimals + 1) });
}

// The weight that all but the largest 1 % of the weights that are not masked stay below.
function highOfMost(groups, unit) {
  const counts = new Uint32Array(CODES);
  for (const codes of groups.flatMap((group) => group.codes)) for (const code of codes) counts[code] += 1;
  counts[0] = 0;
  let left = counts.reduce((sum, count) => sum + count, 0) / 100;
  let code = CODES - 1;
  while (code > 1 && left > counts[code]) left -= counts[code--];
  return (code - 1) * unit;
}

// The legend's range of colours: weights from 0 to `high`; there may be larger ones.
function weightRange({ header, high, largest, table }) {
  return colourRange([header.measure], "0", table, (largest > high * 1.001 ? "≥ " : "") + threeDigits(high));
}

// The pixel of every code with colours from 0 to `high`, 0 for masked cells. It is filled colour by colour: looking up the
// colour of every code would take as long as all the rest.
function pixelTable({ table, high, unit }) {
  const pixels = new Uint32Array(CODES);
  const firstCode = (step) => Math.max(Math.ceil(((step - 0.5) * high) / 255 / unit) + 1, 1);
  packedColours(table).forEach((colour, step) => {
    pixels.fill(colour, firstCode(step), step < 255 ? firstCode(step + 1) : CODES);
  });
  return pixels;
}

// Sizes in CSS pixels that are whole device pixels. They do not depend on the sentence. `tallest`: in Present, of all of it.
function layOutMosaic(groups, width, ratio, tallest = null) {
  const snap = (pixels) => Math.floor(pixels * ratio) / ratio;
  const left = width < 600 ? 16 : 54;
  const lines = groups.flatMap((group) => Array.from({ length: group.layers }, (_, layer) => [group, layer]));
  const most = Math.max(...groups.map((group) => group.heads));
  const room = (width - left - 2) / most - BETWEEN;
  const around = groups.length * (TITLE + BELOW) + lines.length * BETWEEN;
  const [all, low, high] = tallest === null ? [600, 24, 110] : [tallest - around, 8, Infinity];
  const height = clamp(Math.min(Math.floor(all / lines.length), Math.floor(room)), low, high);
  const tile = { width: Math.max(snap(Math.min(room, height)), 4), height: snap(height) };
  let top = 0;
  for (const group of groups) {
    group.top = top + TITLE;
    top = group.top + group.layers * (height + BETWEEN) + BELOW;
  }
  const corner = ({ group, layer, head }) => [
    snap(left + head * (tile.width + BETWEEN)),
    group.top + layer * (height + BETWEEN),
  ];
  const pixels = [tile.width, tile.height].map((side) => Math.round(side * ratio));
  return { left, tile, corner, pixels, ratio, width, height: top, step: height + BETWEEN, lines, rows: lines.length, columns: most };
}

// The cells [start, end) along one side that a pixel stands for, at least one.
function cellsOfPixel(cells, pixels, pixel) {
  const start = Math.floor((Math.min(pixel, pixels - 1) * cells) / pixels);
  return [start, Math.max(Math.floor(((Math.min(pixel, pixels - 1) + 1) * cells) / pixels), start + 1)];
}

// The first of the largest cells of a head in the queries [top, bottom) and keys [left, right).
function largestCell({ codes, queries, keys }, layer, head, [top, bottom], [left, right]) {
  const start = head * queries.length * keys.length;
  let best = { code: -1 };
  for (let query = top; query < bottom; query += 1) {
    for (let key = left; key < right; key += 1) {
      const code = codes[layer][start + query * keys.length + key];
      if (code > best.code) best = { code, query, key };
    }
  }
  return best;
}

// The cells that each pixel along one side stands for.
function pixelSpans(cells, pixels) {
  const spans = Array.from({ length: pixels }, (_, pixel) => cellsOfPixel(cells, pixels, pixel));
  return [Int32Array.from(spans, ([start]) => start), Int32Array.from(spans, ([, end]) => end)];
}

// Into `most`, the largest code of each column in `rows` rows that begin at `cell`. Reading each code once, in the order in
// which they lie, is faster than the block of each pixel by itself.
function largestOfRows(most, codes, cell, rows) {
  const columns = most.length;
  for (let column = 0; column < columns; column += 1, cell += 1) most[column] = codes[cell];
  for (let row = 1; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1, cell += 1) most[column] = Math.max(most[column], codes[cell]);
  }
}

// Into `line`, the largest of the columns of each pixel.
function largestOfColumns(line, most, lefts, rights) {
  for (let x = 0; x < line.length; x += 1) {
    let largest = most[lefts[x]];
    for (let column = lefts[x] + 1; column < rights[x]; column += 1) largest = Math.max(largest, most[column]);
    line[x] = largest;
  }
}

// The head whose codes begin at `start` into the image; each pixel shows the largest of its cells, masked ones `hatch`.
function fillHead(image, codes, start, columns, [tops, bottoms], [lefts, rights], table, hatch) {
  const { width, height } = image;
  const pixels = new Uint32Array(image.data.buffer);
  const [most, line] = [columns, width].map((size) => new Uint16Array(size));
  for (let y = 0, at = 0; y < height; y += 1) {
    if (!y || tops[y] !== tops[y - 1]) {
      largestOfRows(most, codes, start + tops[y] * columns, bottoms[y] - tops[y]);
      largestOfColumns(line, most, lefts, rights);
    }
    const from = (y % HATCH) * HATCH;
    for (let x = 0; x < width; x += 1, at += 1) pixels[at] = line[x] ? table[line[x]] : hatch[from + (x % HATCH)];
  }
}

// The pixels of a tile of the hatching.
function hatchPixels(theme) {
  const pen = hatchTile(theme).getContext("2d");
  return new Uint32Array(pen.getImageData(0, 0, HATCH, HATCH).data.buffer);
}

function drawMosaic(canvas, view) {
  const { groups, layout, theme } = view;
  const pen = sizedCanvas(canvas, layout.width, layout.height);
  drawLabels(pen, groups, layout, theme);
  const [table, hatch] = [pixelTable(view), hatchPixels(theme)];
  const [width, height] = layout.pixels;
  const image = new ImageData(width, height);
  for (const group of groups) {
    const [rows, columns] = [group.queries.length, group.keys.length];
    const [down, across] = [pixelSpans(rows, height), pixelSpans(columns, width)];
    for (let index = 0; index < group.layers * group.heads; index += 1) {
      const [layer, head] = [Math.floor(index / group.heads), index % group.heads];
      fillHead(image, group.codes[layer], head * rows * columns, columns, down, across, table, hatch);
      const [x, y] = layout.corner({ group, layer, head }).map((side) => Math.round(side * layout.ratio));
      pen.putImageData(image, x, y);
    }
  }
  return pen;
}

function drawLabels(pen, groups, layout, theme) {
  pen.fillStyle = theme.text;
  pen.textBaseline = "middle";
  const [wide, fits] = [layout.left > 30, layout.tile.width > 48];
  for (const group of groups) {
    const { title, queries, keys, averaged, pool } = group;
    const [left] = layout.corner({ group, layer: 0, head: 0 });
    pen.textAlign = "left";
    pen.font = `600 13px ${theme.font}`;
    pen.fillText(title, left, group.top - 29);
    const start = left + pen.measureText(title).width + 10;
    pen.font = `12px ${theme.font}`;
    pen.globalAlpha = 0.75;
    const squares = pool > 1 ? `, ${tr("largest of each {pool} × {pool}", { pool })}` : "";
    const sizes = `${queries.length} × ${keys.length}${wide ? ` (${tr("queries × keys")})` : ""}${squares}`;
    pen.fillText(sizes, start, group.top - 29);
    pen.textAlign = "center";
    for (let head = 0; head < group.heads; head += 1) {
      const [x] = layout.corner({ group, layer: 0, head });
      const name = averaged ? tr("all heads") : tr("head {head}", { head });
      pen.fillText(fits ? name : String(head), x + layout.tile.width / 2, group.top - 9);
    }
    pen.textAlign = "right";
    for (let layer = 0; layer < group.layers; layer += 1) {
      const [, y] = layout.corner({ group, layer, head: 0 });
      pen.fillText(wide ? tr("layer {layer}", { layer }) : String(layer), layout.left - 6, y + layout.tile.height / 2);
    }
    pen.globalAlpha = 1;
  }
}
