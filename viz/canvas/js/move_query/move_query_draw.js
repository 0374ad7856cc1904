// Draws the plane of the move_query component: keys, queries, the moving query, and where the heaviest key changes.

const MARGIN = [14, 14, 34, 34]; // pixels: top, right, bottom, left
const BLOCKS = [3, 6]; // pixels from one point to the next where the heaviest key is looked up, for few keys and for many
const FEW_KEYS = 40;
const DOT = [3, 15]; // pixels: radius at weight 0, and what weight 1 adds
const MOST_LABELS = 40;

// Size and scale of the plane: keys and the arrow of the query have the same middle, the keys' mean. Where queries are
// much longer than the keys' spread, `factor` shortens them, and the axis says so.
function viewOf({ keys, queries }, width, height) {
  const reach = (points) => points.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
  const [spread, longest] = [reach(keys) || 1, reach(queries) || 1];
  const shorter = Math.max(1, Math.ceil(longest / (1.5 * spread)));
  const factor = 1 / shorter;
  const extent = 1.12 * Math.max(spread, longest * factor);
  const inner = [width - MARGIN[1] - MARGIN[3], height - MARGIN[0] - MARGIN[2]];
  const unit = Math.min(...inner) / (2 * extent);
  return { width, height, shorter, factor, extent, unit, middle: [MARGIN[3] + inner[0] / 2, MARGIN[0] + inner[1] / 2] };
}

function toPixels({ middle, unit }, [x, y], factor = 1) {
  return [middle[0] + x * factor * unit, middle[1] - y * factor * unit];
}

function fromPixels({ middle, unit, factor }, x, y) {
  return [(x - middle[0]) / unit / factor, (middle[1] - y) / unit / factor];
}

function radiusOf(weight) {
  return DOT[0] + DOT[1] * Math.sqrt(weight);
}

function keyPlaces({ keys, header, view }) {
  return header.keys.map((_, key) => toPixels(view, [keys[2 * key], keys[2 * key + 1]]));
}

// The key under the pointer; null if there is none.
function keyNear(picture, x, y) {
  const distances = keyPlaces(picture).map(([left, top], key) => {
    const away = Math.hypot(left - x, top - y) - radiusOf(picture.shown[key]);
    return away > 4 ? Infinity : away;
  });
  const nearest = Math.min(...distances);
  return nearest === Infinity ? null : distances.indexOf(nearest);
}

// Line segments [x, y, toX, toY] between blocks of pixels in which another key would get the largest weight.
function bordersOf(picture) {
  const { view } = picture;
  const block = BLOCKS[picture.header.keys.length > FEW_KEYS ? 1 : 0];
  const [across, down] = [Math.ceil(view.width / block), Math.ceil((view.height - MARGIN[2]) / block)];
  const winners = new Int32Array(across * down);
  for (let row = 0; row < down; row += 1) {
    for (let column = 0; column < across; column += 1) {
      const point = fromPixels(view, (column + 0.5) * block, (row + 0.5) * block);
      const scores = picture.scores(point);
      let best = 0;
      for (let key = 1; key < scores.length; key += 1) if (scores[key] > scores[best]) best = key;
      winners[row * across + column] = best;
    }
  }
  const segments = [];
  for (let row = 0; row < down; row += 1) {
    for (let column = 0; column < across; column += 1) {
      const here = winners[row * across + column];
      const [x, y] = [(column + 1) * block, (row + 1) * block];
      if (column + 1 < across && winners[row * across + column + 1] !== here) segments.push([x, y - block, x, y]);
      if (row + 1 < down && winners[(row + 1) * across + column] !== here) segments.push([x - block, y, x, y]);
    }
  }
  return segments;
}

function paintPlane(canvas, picture) {
  const { view, theme, header, at, shown, table } = picture;
  const pen = sizedCanvas(canvas, view.width, view.height);
  pen.fillStyle = theme.panel;
  pen.fillRect(0, 0, view.width, view.height - MARGIN[2] + 10);
  strokeSegments(pen, theme.text, 0.28, picture.borders);
  paintAxes(pen, picture);
  paintQueries(pen, picture);
  const places = keyPlaces(picture);
  const allowed = picture.part(picture.mask, at.row);
  const order = [...shown.keys()].sort((one, other) => shown[one] - shown[other]);
  for (const key of order) {
    const [x, y] = places[key];
    const radius = radiusOf(shown[key]);
    pen.beginPath();
    pen.roundRect(x - radius, y - radius, 2 * radius, 2 * radius, radius);
    pen.fillStyle = allowed[key] ? `rgb(${colourOf(table, shown[key], 0, 1).join(",")})` : theme.panel;
    pen.fill();
    pen.strokeStyle = theme.text;
    pen.globalAlpha = allowed[key] ? 0.8 : 0.35;
    pen.lineWidth = 1;
    pen.stroke();
    pen.globalAlpha = 1;
  }
  paintLabels(pen, picture, places, order.reverse());
  paintArrow(pen, picture);
  return [view.width, view.height];
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

function paintAxes(pen, { view, theme, header }) {
  const [x, y] = view.middle;
  const bottom = view.height - MARGIN[2] + 10;
  strokeSegments(pen, theme.text, 0.18, [[0, y, view.width, y], [x, 0, x, bottom]]);
  pen.fillStyle = theme.text;
  pen.font = `12px ${theme.font}`;
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  const [first, second] = header.shares.map(percentText);
  const queries = view.shorter > 1 ? `; ${tr("queries drawn at 1/{times} of their length", { times: view.shorter })}` : "";
  writeIn(pen, `${tr("1st component of the keys, {share} of variance", { share: first })}${queries}`, view.width - 8, view.width / 2, view.height - 10);
  pen.save();
  pen.translate(11, (view.height - MARGIN[2]) / 2);
  pen.rotate(-Math.PI / 2);
  pen.fillText(tr("2nd component, {share}", { share: second }), 0, 0);
  pen.restore();
}

// Where the run's other queries are: letting go there snaps to them.
function paintQueries(pen, { view, header, theme, queries }) {
  pen.strokeStyle = header.query_colour;
  pen.lineWidth = 1.5;
  pen.globalAlpha = 0.75;
  header.queries.forEach((_, row) => {
    const [x, y] = toPixels(view, [queries[2 * row], queries[2 * row + 1]], view.factor);
    pen.beginPath();
    pen.rect(x - 3, y - 3, 6, 6);
    pen.stroke();
  });
  pen.globalAlpha = 1;
  pen.fillStyle = theme.text;
}

function paintArrow(pen, { view, header, at, theme }) {
  const [x, y] = toPixels(view, at.point, view.factor);
  const [left, top] = view.middle;
  pen.strokeStyle = header.query_colour;
  pen.lineWidth = 3;
  pen.beginPath();
  pen.moveTo(left, top);
  pen.lineTo(x, y);
  pen.stroke();
  pen.fillStyle = header.query_colour;
  pen.fillRect(x - 6, y - 6, 12, 12);
  pen.strokeStyle = theme.background;
  pen.lineWidth = 1.5;
  pen.strokeRect(x - 6, y - 6, 12, 12);
  pen.font = `700 13px ${theme.font}`;
  pen.textBaseline = "middle";
  label(pen, theme, "q", [x + (x > view.width - 40 ? -18 : 11), y]);
}

// The names of the keys, the heaviest first, where there is room.
function paintLabels(pen, { view, theme, header, shown, at }, places, order) {
  pen.font = `12px ${theme.font}`;
  pen.textBaseline = "middle";
  const [across, up] = toPixels(view, at.point, view.factor);
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

// The saved picture: the plane, and beside it the bars of the weights.
function paintMoveQuery(picture, canvas, caption) {
  const { view, theme, header, matrix } = picture;
  const [line, label, track] = BAR;
  const inner = [view.width + 40 + label + track + 70, Math.max(view.height, 50 + line * header.keys.length)];
  const range = tr("attention weight: colours from 0 to 1, larger circles for larger weights; squares: queries");
  const titles = { title: `${header.title}, ${picture.badge.textContent}`, range, caption };
  const { pen, size, top } = startPicture(canvas, inner, theme, titles);
  drawLayer(pen, canvas, (layer) => paintPlane(layer, picture), EDGE, top, view.width, view.height);
  paintRow(pen, { shown: matrix, theme, row: picture.row }, [EDGE + view.width + 40, top]);
  return size;
}
