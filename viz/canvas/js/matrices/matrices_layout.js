// Sizes of the matrices: the cells of all equations grow together until they fill the width.

// [smallest, preferred] pixels of a cell, by what its axis counts; results are larger than operands.
const CELL_WIDTH = {
  token: [1.6, 34],
  tokenResult: [3, 52],
  dimension: [1.5, 7],
  dimensionResult: [2, 12],
  model: [0.5, 2.4],
};
const CELL_HEIGHT = { token: [4, 46], dimension: [1.5, 9], model: [0.25, 2], single: [14, 14] };
const MOST_PIXELS = 12e6; // of one canvas: a limit to zooming, before a browser runs out of memory
const CAPTION = 26;
const GAP = 10;
const LABEL_HEIGHT = 12;
const MOST_LABEL = 84;
// What gives way where a matrix would else be cut off.
const COMPACT = { label: 48, cell: 0.4 };

function axisKind(axis) {
  if (axis.size === 1 && !axis.name && !axis.labels.length) return "single";
  if (axis.labels.length) return "token";
  return axis.name === "model" || axis.groups.length ? "model" : "dimension";
}

// Room for labels around the cells of each matrix: {left, top, right, bottom}.
function marginsOf(matrix, pen) {
  const most = matrix.compact ? COMPACT.label : MOST_LABEL;
  const [rows, columns] = [axisKind(matrix.rows), axisKind(matrix.columns)];
  const widest = (labels) => Math.min(Math.max(...labels.map((label) => pen.measureText(label).width), 12), most);
  const number = () => pen.measureText(String(matrix.rows.size)).width + 9;
  const titled = () => Math.max(widest(matrix.rows.labels), pen.measureText(`${matrix.rows.title} ↓`).width) + 8;
  const left = { token: titled, single: () => 4 }[rows] || number;
  const slanted = columns === "token" ? widest(matrix.columns.labels) : 0;
  const groups = matrix.columns.groups.length ? 16 : 0;
  return {
    left: left() + (matrix.rows.groups.length ? 14 : 0),
    slanted,
    top: (slanted ? slanted * 0.8 + 14 : 0) + (columns === "token" || rows === "token" ? 16 : 4) + groups,
    right: slanted ? 6 + beyondCells(matrix.columns.labels, most, pen) : 6,
    bottom: columns === "token" ? 6 : 32,
  };
}

// How far slanted labels reach beyond the last column, at most `most` long each, if its cells are as narrow as they may be.
function beyondCells(labels, most, pen) {
  const narrow = CELL_WIDTH.token[0];
  const reach = (label, column) => Math.min(pen.measureText(label).width, most) * Math.cos(SLANT) - (labels.length - column - 0.5) * narrow;
  return Math.max(...labels.map(reach), 0);
}

// Sets cellWidth, cellHeight and margins on each matrix of the equations; `compact`: with less room for words.
function layOut(equations, width, stageHeight, zoom, pen, compact = false, whole = false) {
  const ratio = devicePixelRatio;
  for (const parts of equations) {
    for (const matrix of parts.filter((part) => part.rows)) matrix.compact = compact;
    shareMargins(parts, pen);
    markLarge(parts);
  }
  const fraction = Math.min(...equations.map((parts) => widthFraction(parts, width, pen)));
  for (const parts of equations) {
    const matrices = parts.filter((part) => part.rows);
    const around = CAPTION + GAP + matrices[0].margins.top + matrices[0].margins.bottom;
    const room = stageHeight / equations.length - around;
    const widest = Math.max(...matrices.map((matrix) => preferredWidth(matrix, fraction)));
    for (const matrix of matrices) {
      const kind = axisKind(matrix.rows);
      const [least, most] = CELL_HEIGHT[kind];
      const tallest = kind === "token" ? Math.max(Math.min(most, 2 * widest), LABEL_HEIGHT) : most;
      matrix.cellWidth = snapped(preferredWidth(matrix, fraction) * zoom);
      // Several equations share the height of a screen: there a matrix of weights may be a strip.
      const smallest = kind === "model" && whole ? least / 4 : least;
      const height = Math.min(Math.max(room / matrix.rows.size, smallest), tallest);
      matrix.cellHeight = snapped(kind === "single" ? height : height * zoom);
    }
    if (zoom === 1) growInto(parts, width, pen);
    for (const matrix of matrices) {
      const area = matrix.cellWidth * matrix.cellHeight * matrix.rows.size * matrix.columns.size * ratio * ratio;
      if (area > MOST_PIXELS) {
        const shrink = Math.sqrt(MOST_PIXELS / area);
        matrix.cellWidth *= shrink;
        matrix.cellHeight *= shrink;
      }
      fitTitle(matrix, pen);
      const { margins: { left, top }, cellWidth: width, cellHeight: height, rows: { size: rows }, columns: { size: columns } } = matrix;
      matrix.layout = { left, top, width, height, rows, columns };
    }
  }
}

function columnTitle(matrix) {
  return matrix.compact ? "" : `${matrix.columns.size} ${matrix.columns.title}`;
}

// The title under a narrow matrix may be wider than its cells.
function fitTitle(matrix, pen) {
  if (axisKind(matrix.columns) === "token") return;
  const half = pen.measureText(columnTitle(matrix)).width / 2;
  const { margins } = matrix;
  const width = matrix.cellWidth * matrix.columns.size;
  margins.right = Math.max(margins.right, Math.max(margins.left + width / 2, half) + half - margins.left - width);
}

// Cells of one equation start at the same height, so that the rows of its matrices line up.
function shareMargins(parts, pen) {
  const matrices = parts.filter((part) => part.rows);
  for (const matrix of matrices) matrix.margins = marginsOf(matrix, pen);
  const top = Math.max(...matrices.map((matrix) => matrix.margins.top));
  const bottom = Math.max(...matrices.map((matrix) => matrix.margins.bottom));
  for (const matrix of matrices) Object.assign(matrix.margins, { top, bottom });
}

// A result is drawn larger, and so is what has the same cells, for comparison.
function markLarge(parts) {
  const matrices = parts.filter((part) => part.rows);
  const { rows, columns } = matrices.at(-1);
  const alike = (matrix) => matrix.rows.size === rows.size && matrix.columns.size === columns.size;
  for (const matrix of matrices) matrix.large = matrix.result || matrices.every(alike);
}

function widthLimits(matrix) {
  const kind = axisKind(matrix.columns);
  const [smallest, preferred] = CELL_WIDTH[matrix.large ? `${kind}Result` : kind] || CELL_WIDTH[kind];
  return [matrix.compact ? smallest * COMPACT.cell : smallest, preferred];
}

// Widens the cells of a matrix by one device pixel where rounding down left room, the result first.
function growInto(parts, width, pen) {
  const pixel = 1 / devicePixelRatio;
  const matrices = parts.filter((part) => part.rows).sort((one, other) => other.result - one.result);
  const used = matrices.reduce((sum, { cellWidth, columns }) => sum + cellWidth * columns.size, 0);
  let room = width - fixedWidth(parts, pen) - used;
  for (const matrix of matrices) {
    const needed = pixel * matrix.columns.size;
    if (needed > room || matrix.cellWidth + pixel > widthLimits(matrix)[1]) continue;
    matrix.cellWidth += pixel;
    room -= needed;
  }
}

function fixedWidth(parts, pen) {
  const room = (part) => (part.rows ? part.margins.left + part.margins.right : pen.measureText(part).width * 1.6 + 16);
  return parts.reduce((sum, part) => sum + room(part), 0);
}

function preferredWidth(matrix, fraction) {
  const [smallest, preferred] = widthLimits(matrix);
  return smallest + fraction * (preferred - smallest);
}

// 0: every matrix has its smallest width; 1: its preferred width.
function widthFraction(parts, width, pen) {
  const matrices = parts.filter((part) => part.rows);
  const total = (limit) => matrices.reduce((sum, matrix) => sum + widthLimits(matrix)[limit] * matrix.columns.size, 0);
  const [smallest, preferred] = [total(0), total(1)];
  return clamp((width - fixedWidth(parts, pen) - smallest) / (preferred - smallest), 0, 1);
}

// Whole device pixels, for sharp edges and equal cells.
function snapped(pixels) {
  const ratio = devicePixelRatio;
  if (pixels >= 4) return Math.floor(pixels);
  return pixels * ratio >= 1 ? Math.floor(pixels * ratio) / ratio : pixels;
}
