// Where everything stands in the picture of the whole model: bottom to top, encoder left, decoder right, as in figure 1.

// Pixels at scale 1; how an attention is drawn depends on the zoom.
const HEIGHTS = { embedding: 24, positions: 20, feed_forward: 26, norm: 16, norm_first: 16, norm_after: 16, add_norm: 17, add: 14, output: 24, softmax: 22 };
const HEADS_BESIDE = 32; // height of an attention with its heads beside its name
const HEADS_BELOW = 46; // with its heads below its name
const STEP_UP = 8; // between two boxes
const AROUND = 8; // between a layer's frame and its boxes
const TOKENS = 46; // below a stack, for its tokens
const ROW_OF_WORDS = 19; // from line to line in an opened box
const CANDIDATE = 17; // from candidate to candidate
const MEMORY = 26; // above the encoder, for what it hands over
const AROUND_CANDIDATES = 42; // their title, and log p
const [MOST_CANDIDATES, MOST_PRESENTED] = [5, 3];
const ABOVE = 190; // of the page above the picture
const SMALLEST = 0.56; // scale
const PHONE = 560; // narrower pictures have short names
const LEAST_LABEL = 11; // pixels: in Present, where a picture is enlarged, 16
const THIN = 6; // in Present the norms are lines without a name

const [FIT, BOXES, LAYER] = [0, 1, 2];
const ZOOMS = [tr("The whole model"), tr("The whole model, larger"), tr("One layer")];

// Boxes of the same layer as `box`; outside the layers, those before the first layer or after the last one.
function groupOf(boxes, box) {
  const own = boxes.filter(({ stack }) => stack === box.stack);
  const firstLayer = own.findIndex(({ layer }) => layer !== null);
  const isInput = (each) => own.indexOf(each) < firstLayer;
  return own.filter((each) => each.layer === box.layer && (box.layer !== null || isInput(each) === isInput(box)));
}

function layOutModel(view) {
  const whole = layOutAt(view, 1);
  if (view.zoom !== FIT) return whole;
  const { room } = view;
  const most = room === null ? innerHeight - ABOVE : room - AROUND;
  const scale = clamp((most - TOKENS) / (whole.height - TOKENS), room === null ? SMALLEST : 0, 1);
  return scale === 1 ? whole : layOutAt(view, scale);
}

function layOutAt({ room, boxes, header, width, zoom, box }, scale) {
  const presents = room !== null;
  const narrow = width < PHONE && !presents;
  const opened = zoom === LAYER;
  const shown = opened ? groupOf(boxes, box) : boxes;
  const stacks = header.rows.filter(({ name }) => shown.some(({ stack }) => stack === name));
  const two = stacks.length === 2;
  const gutter = two ? (narrow ? 24 : clamp(width * 0.12, 60, 120)) : 0;
  const loop = narrow ? 20 : 40;
  const inner = shown.some(({ beside }) => beside) ? 0.6 * loop : AROUND; // for the line past a parallel sub-layer
  const alone = !two && !narrow && !opened;
  const [aside, beside] = alone ? [0.34 * width, 44] : [0, 2]; // for a single stack's candidates, and its token
  const column = Math.min((width - gutter - aside - beside) / stacks.length, opened ? 680 : 430);
  const left = (width - stacks.length * column - gutter - aside - beside) / 2 + aside;
  const most = presents ? MOST_PRESENTED : MOST_CANDIDATES;
  const layout = { narrow, presents, most, opened, zoom, scale, width, gutter, loop, inner, aside };
  Object.assign(layout, { places: new Map(), frames: [], columns: new Map() });
  stacks.forEach(({ name }, index) => {
    const outer = index ? 1 : -1; // the side of the residual connections
    const start = left + index * (column + gutter);
    const inside = [start + (outer < 0 ? loop : inner), column - loop - inner];
    const place = { name, outer, left: start, width: column, inside, middle: inside[0] + inside[1] / 2 };
    layout.columns.set(name, place);
    stackUp(layout, place, shown.filter(({ stack }) => stack === name));
  });
  if (two) layout.columns.get("encoder").top -= MEMORY;
  placeCandidates(layout, shown);
  const top = Math.min(...[...layout.columns.values()].map((each) => each.top), layout.candidates?.top ?? 0);
  shiftDown(layout, 6 - top);
  return { ...layout, height: 6 - top };
}

// From the bottom, y = 0, upwards.
function stackUp(layout, column, boxes) {
  const [between, around] = [STEP_UP * layout.scale, AROUND * layout.scale];
  let [y, frame] = [-TOKENS, null];
  for (const box of boxes) {
    if (box.layer !== (frame?.layer ?? null)) {
      if (frame) y -= around;
      frame = box.layer === null ? null : { layer: box.layer, column, bottom: y };
      if (frame) {
        layout.frames.push(frame);
        y -= around;
      }
    }
    const place = { x: column.inside[0], width: column.inside[1], ...sizeInLayout(layout, box, column.inside[1]) };
    y -= place.height;
    layout.places.set(box.name, { ...place, y });
    if (frame) frame.top = y - around;
    y -= between;
  }
  column.top = y - (frame ? around : 0);
}

// The height of a box, and whether its heads are below its name.
function sizeInLayout({ opened, narrow, presents, zoom, scale }, box, width) {
  if (opened) {
    const words = ROW_OF_WORDS * (box.words.length * (narrow ? 2 : 1) + 1 + purposeLines(box, width).length);
    return { height: 30 + words + (box.heads ? headSide(box, width) + 22 : 0) };
  }
  if (presents && isSmall(box)) return { below: false, height: scale * THIN };
  const below = Boolean(box.heads) && zoom === BOXES && width < 300;
  return { below, height: scale * (below ? HEADS_BELOW : box.heads ? HEADS_BESIDE : HEIGHTS[box.part]) };
}

function isSmall({ part }) {
  return /norm|add/.test(part);
}

// What an opened box is for, a line at a time.
function purposeLines({ purpose }, width) {
  const most = Math.floor((width - 24) / 6.8); // letters of 13 pixels
  return purpose.split(" ").reduce((lines, word) => {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    return longer.length <= most ? [...lines.slice(0, -1), longer] : [...lines, word];
  }, []);
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
  const prediction = layout.most * CANDIDATE + AROUND_CANDIDATES;
  const [first, column] = [[...layout.columns.values()][0], layout.columns.get(last.stack)];
  const beside = layout.aside > 0 || (first !== column && first.top - place.y > prediction);
  const [start, room] = first === column ? [column.left - layout.aside, layout.aside - 20] : [first.left, first.width - 4];
  layout.candidates = beside
    ? { left: start, width: room, top: place.y - 4, beside }
    : { left: place.x, width: place.width, top: place.y - prediction - 12, beside };
}

function shiftDown(layout, by) {
  for (const place of layout.places.values()) place.y += by;
  for (const frame of layout.frames) [frame.top, frame.bottom] = [frame.top + by, frame.bottom + by];
  for (const column of layout.columns.values()) [column.top, column.bottom] = [column.top + by, by];
  if (layout.candidates) layout.candidates.top += by;
}

// The rectangle around the boxes of a group.
function boundsOf(layout, boxes) {
  const places = boxes.map(({ name }) => layout.places.get(name)).filter(Boolean);
  const [x, y] = ["x", "y"].map((side) => Math.min(...places.map((place) => place[side])));
  const [right, bottom] = [["x", "width"], ["y", "height"]].map(([side, size]) => {
    return Math.max(...places.map((place) => place[side] + place[size]));
  });
  return { x, y, width: right - x, height: bottom - y };
}

// A box in the picture, or a token of a stack.
function findPlace(view, x, y) {
  const inside = (place) => x >= place.x && x <= place.x + place.width && y >= place.y && y <= place.y + place.height;
  const box = view.boxes.find(({ name }) => view.layout.places.has(name) && inside(view.layout.places.get(name)));
  if (box) return { box };
  const token = view.chips?.find(inside);
  return token ? { token } : null;
}
