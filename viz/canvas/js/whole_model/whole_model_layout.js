// Where everything stands in the picture of the whole model: bottom to top, encoder left, decoder right, as in figure 1.

const HEIGHTS = { embedding: 24, positions: 20, feed_forward: 26, norm: 16, add_norm: 16, add: 14, output: 24, softmax: 22 };
const HEADS_BESIDE = 32; // pixels, height of an attention with its heads beside its name
const HEADS_BELOW = 42; // with its heads below its name
const STEP_UP = 8; // pixels between two boxes
const AROUND = 8; // pixels between a layer's frame and its boxes
const TOKENS = 46; // pixels below a stack, for its tokens
const ROW_OF_WORDS = 19; // pixels from line to line in an opened box
const CANDIDATE = 17; // pixels from candidate to candidate
const PHONE = 560; // pixels: narrower pictures have short names

// Boxes of the same layer as `box`; outside the layers, those before the first layer or after the last one.
function groupOf(boxes, box) {
  const own = boxes.filter(({ stack }) => stack === box.stack);
  const firstLayer = own.findIndex(({ layer }) => layer !== null);
  const isInput = (each) => own.indexOf(each) < firstLayer;
  return own.filter((each) => each.layer === box.layer && (box.layer !== null || isInput(each) === isInput(box)));
}

function layOutModel({ boxes, header, width, zoomed, box }) {
  const narrow = width < PHONE;
  const shown = zoomed ? groupOf(boxes, box) : boxes;
  const stacks = header.rows.filter(({ name }) => shown.some(({ stack }) => stack === name));
  const two = stacks.length === 2;
  const gutter = two ? (narrow ? 24 : clamp(width * 0.1, 50, 110)) : 0;
  const loop = narrow ? 20 : 40;
  const widest = two ? 430 : zoomed ? 680 : 560;
  const column = Math.min((width - gutter) / stacks.length, widest);
  const left = (width - stacks.length * column - gutter) / 2;
  const layout = { narrow, zoomed, places: new Map(), frames: [], columns: new Map(), gutter, loop };
  stacks.forEach(({ name }, index) => {
    const outer = index ? 1 : -1; // the side of the residual connections
    const start = left + index * (column + gutter);
    const inside = [start + (outer < 0 ? loop : AROUND), column - loop - AROUND];
    const place = { name, outer, left: start, width: column, inside, middle: inside[0] + inside[1] / 2 };
    layout.columns.set(name, place);
    stackUp(layout, place, shown.filter(({ stack }) => stack === name));
  });
  placeCandidates(layout, shown);
  const top = Math.min(...[...layout.columns.values()].map((each) => each.top), layout.candidates?.top ?? 0);
  shiftDown(layout, 6 - top);
  return { ...layout, width, height: 6 - top };
}

// From the bottom, y = 0, upwards.
function stackUp(layout, column, boxes) {
  let [y, frame] = [-TOKENS, null];
  for (const box of boxes) {
    if (box.layer !== (frame?.layer ?? null)) {
      if (frame) y -= AROUND;
      frame = box.layer === null ? null : { layer: box.layer, column, bottom: y };
      if (frame) {
        layout.frames.push(frame);
        y -= AROUND;
      }
    }
    const height = heightOfBox(layout, box, column);
    y -= height;
    layout.places.set(box.name, { x: column.inside[0], y, width: column.inside[1], height });
    if (frame) frame.top = y - AROUND;
    y -= STEP_UP;
  }
  column.top = y - (frame ? AROUND : 0);
}

function heightOfBox({ zoomed, narrow }, box, column) {
  if (zoomed) return 30 + ROW_OF_WORDS * (linesOf(box, narrow) + 1) + (box.heads ? headSide(box, column.inside[1]) + 22 : 0);
  if (!box.heads) return HEIGHTS[box.part];
  return column.inside[1] < 250 ? HEADS_BELOW : HEADS_BESIDE;
}

// On a phone the formula and what it gives are two lines.
function linesOf({ words }, narrow) {
  return words.length * (narrow ? 2 : 1);
}

// Of a head in an opened box.
function headSide({ heads }, width) {
  return clamp(Math.floor((width - 24) / heads.count) - 5, 10, 76);
}

// The most probable next tokens: over the encoder, if there is room, else over the softmax.
function placeCandidates(layout, shown) {
  const last = shown.at(-1);
  if (last.part !== "softmax") return;
  const place = layout.places.get(last.name);
  const column = layout.columns.get(last.stack);
  const encoder = layout.columns.get("encoder");
  const height = 5 * CANDIDATE + 20;
  const beside = encoder && encoder !== column && encoder.top - (place.y + place.height) > height - 60;
  layout.candidates = beside
    ? { left: encoder.left, width: encoder.width - 4, top: place.y - 4, height, beside }
    : { left: place.x, width: place.width, top: place.y - height - 14, height, beside };
}

function shiftDown(layout, by) {
  for (const place of layout.places.values()) place.y += by;
  for (const frame of layout.frames) [frame.top, frame.bottom] = [frame.top + by, frame.bottom + by];
  for (const column of layout.columns.values()) [column.top, column.bottom] = [column.top + by, by];
  if (layout.candidates) layout.candidates.top += by;
}

// A box in the picture, or a token of a stack.
function findPlace(view, x, y) {
  const inside = (place) => x >= place.x && x <= place.x + place.width && y >= place.y && y <= place.y + place.height;
  const box = view.boxes.find(({ name }) => view.layout.places.has(name) && inside(view.layout.places.get(name)));
  if (box) return { box };
  const token = view.chips?.find(inside);
  return token ? { token } : null;
}
