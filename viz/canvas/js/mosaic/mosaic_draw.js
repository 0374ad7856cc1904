// The pixels of the mosaic. Weights arrive in thousandths (viz/canvas/mosaic.py), a masked cell counts as less than none; so
// the largest of several cells is found, and coloured, as it is.

const MASKED = -1;
const HALF_BYTE = 15;
const ONE_BYTE = 252;
const MOST = HALF_BYTE + ONE_BYTE + 4 * 256 - 1;
const HATCH = 6; // pixels of the screen from one slanted line to the next
const GAP = 4; // between tiles
const TITLE = 40; // above a group's tiles: its title and the numbers of its heads
const BELOW = 14; // below a group

function weightOf(thousandths, power) {
  return (thousandths / 1000) * 10 ** power;
}

// As many decimals as there are.
function inDecimals(thousandths, power) {
  const decimals = Math.max(3 - power, 0);
  return thousandths ? weightOf(thousandths, power).toFixed(decimals) : `under ${5 * 10 ** (power - 4)}`;
}

// The thousandths that all but the largest hundredth of the weights that no mask hides stay below.
function largestHundredth(groups) {
  const counts = new Uint32Array(MOST + 1);
  let left = 0;
  for (const { weights } of groups) {
    for (const weight of weights) if (weight !== MASKED) counts[weight] += 1;
  }
  for (const count of counts) left += count / 100;
  let most = MOST;
  while (most > 0 && left > counts[most]) left -= counts[most--];
  return most;
}

// A group's cells as thousandths, or MASKED, from its parts; `before` is an array to write into, if it is long enough.
function weightsOf({ layers, heads, queries, keys, masks }, [halves, first, second, mask], before) {
  const cells = layers * heads * queries.length * keys.length;
  if (!masks) return unpacked(halves, first, second, reused(before, cells));
  const weights = reused(before, cells).fill(MASKED);
  const dense = unpacked(halves, first, second, new Int16Array(2 * halves.length));
  const places = openPlaces(mask, masks);
  for (let start = 0, next = 0; start < cells; start += masks) {
    for (let place = 0; place < places.length; place += 1, next += 1) weights[start + places[place]] = dense[next];
  }
  return weights;
}

// The cells whose bit is not set.
function openPlaces(mask, cells) {
  const places = new Int32Array(cells);
  let found = 0;
  for (let cell = 0; cell < cells; cell += 1) if (!((mask[cell >> 3] >> (cell & 7)) & 1)) places[found++] = cell;
  return places.subarray(0, found);
}

// Memory that is taken anew at every move would be cleared away in the middle of one.
function reused(before, cells) {
  return before?.length === cells ? before : new Int16Array(cells);
}

// Two cells a byte, into `into`; a last half byte too many falls beyond its end.
function unpacked(halves, first, second, into) {
  let [next, last] = [0, 0];
  const longer = () => {
    const excess = first[next++];
    return HALF_BYTE + (excess < ONE_BYTE ? excess : ONE_BYTE + ((excess - ONE_BYTE) << 8) + second[last++]);
  };
  for (let byte = 0, cell = 0; byte < halves.length; byte += 1, cell += 2) {
    const low = halves[byte] & 15;
    const high = halves[byte] >> 4;
    into[cell] = low < HALF_BYTE ? low : longer();
    into[cell + 1] = high < HALF_BYTE ? high : longer();
  }
  return into;
}

// Pixels (red first in memory) of MASKED, which has no colour, and of every number of thousandths after it, with colours
// from 0 to `high`.
function pixelTable(table, high, power) {
  const [pixels, colours] = [new Uint32Array(MOST + 1 - MASKED), packedColours(table)];
  for (let count = 0; count <= MOST; count += 1) {
    pixels[count - MASKED] = colours[colourStep(weightOf(count, power), 0, high)];
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

function spanAt(cells, pixels, pixel) {
  const { starts, ends } = spans(cells, pixels);
  const inside = Math.min(pixel, pixels - 1);
  return [starts[inside], ends[inside]];
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

// The larger of two small integers. A comparison would be guessed wrong by the processor as often as not, and then be
// the slowest part of the picture.
function larger(one, other) {
  const less = one - other;
  return one - (less & (less >> 31));
}

// The largest of each column of the cells from row `top` up to row `bottom`, of the head that begins at `start`.
function tallest(weights, start, top, bottom, found) {
  const columns = found.length;
  const one = start + top * columns;
  const other = bottom > top + 1 ? one + columns : one;
  for (let column = 0; column < columns; column += 1) {
    found[column] = larger(weights[one + column], weights[other + column]);
  }
  for (let row = top + 2; row < bottom; row += 1) {
    const next = start + row * columns;
    for (let column = 0; column < columns; column += 1) found[column] = larger(found[column], weights[next + column]);
  }
}

// A row of pixels that each stand for one cell or several, and show the largest; masked ones show the slanted lines.
function paintNarrow({ cells, starts, ends, lines }, table, pixels, y) {
  const [width, from] = [starts.length, y % HATCH];
  for (let x = 0, at = y * width; x < width; x += 1, at += 1) {
    const last = ends[x] - 1;
    let most = larger(cells[starts[x]], cells[last]);
    for (let column = starts[x] + 1; column < last; column += 1) most = larger(most, cells[column]);
    pixels[at] = table[most - MASKED] || lines[from + x];
  }
}

// A row of pixels, of cells that are each at least one wide.
function paintWide({ cells, colours, starts, lines }, table, pixels, y) {
  const [columns, width, from] = [cells.length, starts.length, y % HATCH];
  for (let column = 0; column < columns; column += 1) colours[column] = table[cells[column] - MASKED];
  for (let x = 0, at = y * width; x < width; x += 1, at += 1) pixels[at] = colours[starts[x]] || lines[from + x];
}

// The head that begins at `start` into `pixels`.
function paintHead(pixels, { weights, masks }, start, down, across, table) {
  const [width, height] = [across.starts.length, down.starts.length];
  for (let y = 0; y < height; y += 1) {
    const [at, top] = [y * width, down.starts[y]];
    if (!masks && y && top === down.starts[y - 1]) pixels.copyWithin(at, at - width, at);
    else {
      tallest(weights, start, top, down.ends[y], across.cells);
      if (across.cells.length > width) paintNarrow(across, table, pixels, y);
      else paintWide(across, table, pixels, y);
    }
  }
}

// What hatches a row of pixels, from any of its first places on.
function hatchLines(width, colour, thickness) {
  return Uint32Array.from({ length: width + HATCH }, (_, x) => (x % HATCH < thickness ? colour : 0));
}

function paintTiles(pen, groups, layout, table, theme) {
  const [width, height] = [layout.tile.width, layout.tile.height].map((side) => Math.round(side * layout.ratio));
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const masked = groups.some(({ masks }) => masks);
  const lines = masked ? hatchLines(width, hatchPixel(theme.text), Math.ceil(layout.ratio)) : null;
  for (const group of groups) {
    const [queries, keys] = [group.queries.length, group.keys.length];
    const down = spans(queries, height);
    const across = { ...spans(keys, width), cells: new Int16Array(keys), colours: new Uint32Array(keys), lines };
    for (const [index, [layer, head]] of placesOf(group).entries()) {
      paintHead(pixels, group, index * queries * keys, down, across, table);
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

const hatches = new Map();

// The text colour of the theme, two fifths opaque.
function hatchPixel(colour) {
  if (!hatches.has(colour)) hatches.set(colour, readHatchPixel(colour));
  return hatches.get(colour);
}

function readHatchPixel(colour) {
  // Read back at once: on a canvas that the browser would draw later that waits for all drawing before it.
  const pen = element("canvas").getContext("2d", { willReadFrequently: true });
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
  return ((102 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

// The canvas in the layout's size, empty.
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

// As .outline.chosen is drawn: two tones, so that the line is seen on every colour of the scale.
function outlineTile(pen, [x, y], { width, height }, { background, primary }) {
  for (const [colour, thickness] of [[background, 5], [primary, 3]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = thickness;
    pen.strokeRect(x - 1.5, y - 1.5, width + 3, height + 3);
  }
}

function paintMosaic(view, canvas, caption) {
  const { layout, theme, groups, header } = view;
  const says = { title: header.title, range: view.rangeInWords(), caption };
  const { pen, whole, top } = startPicture(canvas, [layout.width, layout.height], theme, says);
  const tiles = canvasLike(canvas);
  const inner = sized(tiles, layout);
  writeLabels(inner, groups, layout, theme);
  paintTiles(inner, groups, layout, view.pixels, theme);
  if (view.chosen) {
    const { group, layer, head } = view.chosen;
    outlineTile(inner, layout.place(group, layer, head), layout.tile, theme);
  }
  pen.drawImage(tiles, EDGE, top, layout.width, layout.height);
  return whole;
}
