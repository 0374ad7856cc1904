// Draws the two planes of the own_vectors component: keys and queries, with where the heaviest key changes; values, with z.

const MARGIN = [20, 14, 24, 24]; // pixels: top, right, bottom, left
const BLOCKS = [3, 6]; // pixels from one point to the next where the heaviest key is looked up, for few keys and for many
const FEW_KEYS = 40;
const DOT = [3, 12]; // pixels: radius at weight 0, and what weight 1 adds
const MOST_LABELS = 40;
const FIRST_POWER = -2.5; // of ten: where the path of z over τ begins; it ends at its opposite
const PATH_STEPS = 60;

// Size and scale of the plane of keys: keys and the arrow of the query have the same middle. Where queries are much longer
// than the keys' spread, `factor` shortens them, and the axis says so.
function viewOfKeys({ k, q, axes, middle, header }, width, height) {
  const reach = (points) => Math.max(...points.flat().map(Math.abs));
  const keys = k.map((key) => inPlane(axes.k, key).map((each, axis) => each - middle[axis]));
  const [spread, longest] = [reach(keys) || 1, reach(q.map((query) => inPlane(axes.k, query)))];
  const shorter = Math.max(1, Math.ceil(longest / ((header.typed ? 4 : 1.5) * spread)));
  const extent = 1.15 * Math.max(spread, longest / shorter);
  return { shorter, factor: 1 / shorter, extent, ...placed(width, height, 2 * extent, 2 * extent, [0, 0]) };
}

// The same of the plane of values, in which zero is seen, too.
function viewOfValues({ valuePoints }, width, height) {
  const points = [[0, 0], ...valuePoints];
  const [low, high] = [Math.min, Math.max].map((end) => [0, 1].map((axis) => end(...points.map((point) => point[axis]))));
  const [across, up] = [0, 1].map((axis) => high[axis] - low[axis]);
  const least = 0.2 * Math.max(across, up) || 1;
  return placed(width, height, 1.3 * Math.max(across, least), 1.3 * Math.max(up, least), [0, 1].map((axis) => (low[axis] + high[axis]) / 2));
}

// What is `across` by `up` around `centre`, on so many pixels; `middle` is where [0, 0] is.
function placed(width, height, across, up, centre) {
  const inner = [width - MARGIN[1] - MARGIN[3], height - MARGIN[0] - MARGIN[2]];
  const unit = Math.min(inner[0] / across, inner[1] / up);
  const middle = [MARGIN[3] + inner[0] / 2 - centre[0] * unit, MARGIN[0] + inner[1] / 2 + centre[1] * unit];
  return { width, height, unit, middle };
}

function toPixels({ middle, unit }, [x, y], factor = 1) {
  return [middle[0] + x * factor * unit, middle[1] - y * factor * unit];
}

function fromPixels({ middle, unit }, x, y, factor) {
  return [(x - middle[0]) / unit / factor, (middle[1] - y) / unit / factor];
}

function radiusOf(weight) {
  return DOT[0] + DOT[1] * Math.sqrt(weight);
}

function valuePlaces({ valuePoints, valueView }) {
  return valuePoints.map((point) => toPixels(valueView, point));
}

// Which of the places is at a point, within `reach(place)` of it; null if there is none.
function nearest(places, [x, y], reach) {
  const distances = places.map(([left, top]) => Math.hypot(left - x, top - y));
  const within = [...distances.keys()].filter((one) => distances[one] <= reach(one));
  return within.length ? within.reduce((best, one) => (distances[one] < distances[best] ? one : best)) : null;
}

// Line segments [x, y, toX, toY] beyond which another key would get the largest weight: every few pixels the heaviest
// key is looked up, and between two points with different ones the line goes where both would weigh the same.
function bordersOf(picture) {
  const { view, at, axes, products } = picture;
  const places = at.keys.map((key) => inPlane(axes.k, key));
  const here = inPlane(axes.k, at.q);
  const rests = places.map((place, key) => products[key] - dot(here, place));
  const block = BLOCKS[places.length > FEW_KEYS ? 1 : 0];
  const [across, down] = [Math.ceil(view.width / block) + 1, Math.ceil(view.height / block) + 1];
  const points = Array.from({ length: across * down }, (_, number) => {
    const pixel = [(number % across) * block, Math.floor(number / across) * block];
    const [x, y] = fromPixels(view, ...pixel, view.factor);
    const reads = picture.readsOf(rests.map((rest, key) => rest + x * places[key][0] + y * places[key][1]));
    return { pixel, reads, heaviest: reads.reduce((best, read, key) => (read > reads[best] ? key : best), 0) };
  });
  const segments = [];
  for (let row = 0; row + 1 < down; row += 1) {
    for (let column = 0; column + 1 < across; column += 1) {
      const first = row * across + column;
      const corners = [first, first + 1, first + across + 1, first + across].map((number) => points[number]);
      if (corners.every(({ heaviest }) => heaviest === corners[0].heaviest)) continue;
      const met = corners.map((corner, number) => evenPoint(corner, corners[(number + 1) % 4])).filter(Boolean);
      // Where three keys meet, their borders do, too.
      const middle = [0, 1].map((axis) => met.reduce((sum, point) => sum + point[axis], 0) / met.length);
      if (met.length === 2) segments.push([...met[0], ...met[1]]);
      else for (const point of met) segments.push([...point, ...middle]);
    }
  }
  return segments;
}

// Where on the way from one point to another the heaviest keys of both weigh the same; null if they are one key.
function evenPoint(from, to) {
  const [one, other] = [from.heaviest, to.heaviest];
  if (one === other) return null;
  const [ahead, behind] = [from.reads[one] - from.reads[other], to.reads[other] - to.reads[one]];
  const way = ahead / (ahead + behind || 1);
  return from.pixel.map((place, axis) => place + way * (to.pixel[axis] - place));
}

function strokeSegments(pen, colour, alpha, segments) {
  pen.strokeStyle = colour;
  pen.globalAlpha = alpha;
  pen.lineWidth = 1;
  pen.beginPath();
  for (const [x, y, toX, toY] of segments) {
    pen.moveTo(x, y);
    pen.lineTo(toX, toY);
  }
  pen.stroke();
  pen.globalAlpha = 1;
}

function paintKeys(canvas, picture) {
  const { view, header, theme } = picture;
  const pen = paper(canvas, view, theme, tr("q and the keys"));
  strokeSegments(pen, theme.text, 0.28, picture.borders);
  paintAxes(pen, view, theme, axisTitle(header.shares[0], tr("1st component of the keys, {share} of variance"), view));
  paintQueries(pen, picture);
  const places = picture.keyPlaces;
  // Where zero is in the middle, keys are arrows from it, too.
  if (!header.shares[0].length) strokeSegments(pen, header.roles.k, 0.7, places.map((place) => [...view.middle, ...place]));
  paintArrow(pen, picture, places, view, toPixels(view, picture.placeOf(), view.factor), "q");
}

// The hull of the values that the query sees, the values, the way of z over τ from the heaviest value to their mean, and z.
function paintValues(canvas, picture) {
  const { valueView: view, header, theme, axes } = picture;
  const pen = paper(canvas, view, theme, tr("the values, and z in their hull"));
  const places = valuePlaces(picture);
  const allowed = picture.part(picture.mask);
  const seen = places.filter((_, key) => allowed[key]);
  // What a sink takes goes to zero.
  const hull = hullOf(header.sink === null ? seen : [...seen, view.middle]);
  pen.fillStyle = pen.strokeStyle = header.roles.v;
  for (const [alpha, paint] of [[0.12, "fill"], [0.6, "stroke"]]) {
    pen.globalAlpha = alpha;
    pen.lineWidth = 1;
    pen.beginPath();
    [...hull, ...hull.slice(0, 1)].forEach(([x, y], at) => (at ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen[paint]();
  }
  pen.globalAlpha = 1;
  paintAxes(pen, view, theme, axisTitle(header.shares[1], tr("1st component of the values, {share} of variance"), view));
  paintPath(pen, picture);
  picture.root.hull = hull;
  picture.root.place = toPixels(view, inPlane(axes.v, picture.mixed));
  paintArrow(pen, picture, places, view, picture.root.place, "z");
}

function paintPath(pen, picture) {
  const { valueView: view, theme, valuePoints, reads } = picture;
  const powers = Array.from({ length: PATH_STEPS + 1 }, (_, at) => FIRST_POWER * (1 - (2 * at) / PATH_STEPS));
  const path = powers.map((power) => toPixels(view, picture.mix(picture.weightsAt(reads, 10 ** power), valuePoints)));
  pen.setLineDash([2, 4]);
  strokeSegments(pen, theme.text, 0.8, path.slice(1).map((place, at) => [...path[at], ...place]));
  pen.setLineDash([]);
  pen.fillStyle = theme.text;
  const [x, y] = path.at(-1);
  strokeSegments(pen, theme.text, 0.9, [[x - 4, y, x + 4, y], [x, y - 4, x, y + 4]]);
}

function paper(canvas, view, theme, title) {
  const pen = sizedCanvas(canvas, view.width, view.height);
  pen.fillStyle = theme.panel;
  pen.fillRect(0, 0, view.width, view.height);
  pen.fillStyle = theme.text;
  pen.font = `600 12px ${theme.font}`;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  writeIn(pen, title, view.width - 12, 6, 11);
  return pen;
}

function axisTitle([first, second], text, { shorter = 1 }) {
  const plain = tr("1st component");
  const queries = shorter > 1 ? `; ${tr("queries drawn at 1/{times} of their length", { times: shorter })}` : "";
  if (first === undefined) return [`${plain}${queries}`, tr("2nd component")];
  return [`${text.replace("{share}", percentText(first))}${queries}`, tr("2nd component, {share}", { share: percentText(second) })];
}

function paintAxes(pen, view, theme, [across, up]) {
  const [x, y] = view.middle;
  strokeSegments(pen, theme.text, 0.18, [[0, y, view.width, y], [x, 0, x, view.height]]);
  pen.fillStyle = theme.text;
  pen.font = `12px ${theme.font}`;
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  writeIn(pen, across, view.width - 8, view.width / 2, view.height - 10);
  pen.save();
  pen.translate(10, view.height / 2);
  pen.rotate(-Math.PI / 2);
  writeIn(pen, up, view.height - 40, 0, 0);
  pen.restore();
}

// Dots for keys or values, the lightest first, and their names.
function paintDots(pen, picture, places, view, end) {
  const { shown, theme, colours } = picture;
  const allowed = picture.part(picture.mask);
  const order = [...shown.keys()].sort((one, other) => shown[one] - shown[other]);
  for (const key of order) {
    const [x, y] = places[key];
    const radius = radiusOf(shown[key]);
    pen.beginPath();
    pen.roundRect(x - radius, y - radius, 2 * radius, 2 * radius, radius);
    pen.fillStyle = allowed[key] ? `rgb(${colourOf(colours, shown[key], 0, 1).join(",")})` : theme.panel;
    pen.fill();
    pen.strokeStyle = theme.text;
    pen.globalAlpha = allowed[key] ? 0.8 : 0.35;
    pen.lineWidth = 1;
    pen.stroke();
    pen.globalAlpha = 1;
  }
  paintLabels(pen, picture, places, order.reverse(), view, end);
}

// Of q or z, from the middle, below the dots; its end above them.
function paintArrow(pen, picture, places, view, [x, y], name) {
  const { theme, header } = picture;
  pen.strokeStyle = header.roles[name === "z" ? "v" : name];
  pen.lineWidth = 3;
  pen.beginPath();
  pen.moveTo(...view.middle);
  pen.lineTo(x, y);
  pen.stroke();
  paintDots(pen, picture, places, view, [x, y]);
  pen.fillStyle = header.roles[name === "z" ? "v" : name];
  pen.fillRect(x - 6, y - 6, 12, 12);
  pen.strokeStyle = theme.background;
  pen.lineWidth = 1.5;
  pen.strokeRect(x - 6, y - 6, 12, 12);
  pen.font = `700 13px ${theme.font}`;
  pen.textBaseline = "middle";
  label(pen, theme, name, [x + (x > view.width - 40 ? -18 : 11), y]);
}

// Where the other queries are: letting go there chooses them.
function paintQueries(pen, { view, header, theme, q, axes }) {
  pen.strokeStyle = header.roles.q;
  pen.lineWidth = 1.5;
  pen.globalAlpha = 0.75;
  for (const query of q) {
    const [x, y] = toPixels(view, inPlane(axes.k, query), view.factor);
    pen.beginPath();
    pen.rect(x - 3, y - 3, 6, 6);
    pen.stroke();
  }
  pen.globalAlpha = 1;
  pen.fillStyle = theme.text;
}

// The names of the keys, the heaviest first, where there is room.
function paintLabels(pen, { theme, header, shown }, places, order, view, [across, up]) {
  pen.font = `12px ${theme.font}`;
  pen.textBaseline = "middle";
  const taken = [[across - 8, up - 10, across + 26, up + 10]];
  for (const key of order) {
    if (taken.length >= MOST_LABELS) return;
    const text = pen.canvas.forFile ? header.keys[key] : shortened(pen, header.keys[key], 110);
    const wide = pen.measureText(text).width;
    const [x, y] = places[key];
    const away = radiusOf(shown[key]) + 4;
    const left = x + away + wide > view.width - 2 ? x - away - wide : x + away;
    const box = [left - 2, y - 8, left + wide + 2, y + 8];
    const free = taken.every((other) => box[0] > other[2] || box[2] < other[0] || box[1] > other[3] || box[3] < other[1]);
    if (!free) continue;
    taken.push(box);
    label(pen, theme, text, [left, y]);
  }
}

// Text that stays readable on points and lines.
function label(pen, theme, text, [x, y]) {
  pen.textAlign = "left";
  pen.globalAlpha = 0.75;
  pen.fillStyle = theme.panel;
  pen.fillRect(x - 2, y - 8, pen.measureText(text).width + 4, 16);
  pen.globalAlpha = 1;
  pen.fillStyle = theme.text;
  pen.fillText(text, x, y);
}

// The corners of the smallest convex shape around points, in order (Andrew 1979).
function hullOf(points) {
  const order = [...points].sort(([a, b], [c, d]) => a - c || b - d);
  const turn = ([a, b], [c, d], [x, y]) => (c - a) * (y - b) - (d - b) * (x - a);
  const hull = [];
  for (const all of [order, [...order].reverse()]) {
    const start = hull.length + 1;
    for (const point of all) {
      while (hull.length > start && turn(hull.at(-2), hull.at(-1), point) <= 0) hull.pop();
      hull.push(point);
    }
    hull.pop();
  }
  return hull.length ? hull : order;
}

// The saved picture: both planes, and beside them the numbers.
function paintOwnVectors(picture, canvas, caption) {
  const { view, theme, header, table } = picture;
  const start = view.width + BETWEEN;
  const inner = [2 * start + table.offsetWidth, Math.max(view.height, table.offsetHeight)];
  const range = tr("attention weight: colours from 0 to 1, larger circles for larger weights; squares: queries");
  const titles = { title: `${header.title}, ${picture.tau.textContent}, ${picture.badge.textContent}`, range, caption };
  const { pen, size, top } = startPicture(canvas, inner, theme, titles);
  [paintKeys, paintValues].forEach((paint, at) => drawLayer(pen, canvas, (layer) => paint(layer, picture), EDGE + at * start, top, view.width, view.height));
  paintTable(pen, picture, [EDGE + 2 * start, top]);
  return size;
}
