// needs: shared/grid.js matrices/equations.js matrices/matrices_layout.js
// Draws a matrix on a canvas: cells, numbers where they fit, hatching; labels and marks on a second canvas.

const FONT_SIZE = 11;
const SLANT = Math.PI / 3.4;
const HOW = tr("Arrow keys go from cell to cell, Page up and Page down to the other matrices, Enter chooses the cell.");

// Each row's softmax(values / tau).
function softmaxRows({ values, rows, columns }, tau) {
  const weights = new Float32Array(values.length);
  for (let row = 0; row < rows.size; row += 1) {
    const scores = values.subarray(row * columns.size, (row + 1) * columns.size);
    const largest = scores.reduce((one, other) => Math.max(one, other), -Infinity);
    if (largest === -Infinity) continue;
    const powers = Float64Array.from(scores, (score) => Math.exp((score - largest) / tau));
    const sum = powers.reduce((total, power) => total + power, 0);
    weights.set(powers.map((power) => power / sum), row * columns.size);
  }
  return weights;
}

// "W_Q" and "K^T" in parts: subscripts and superscripts have a mark.
function symbolParts(symbol) {
  return [...symbol.matchAll(/([_^]?)([^_^]+)/g)].map(([, mark, text]) => ({ mark, text }));
}

function plainSymbol(symbol) {
  return symbolParts(symbol).map(({ text }) => text).join("");
}

function symbolNode(symbol) {
  const parts = symbolParts(symbol).map(({ mark, text }) => element({ _: "sub", "^": "sup" }[mark] || "span", "", text));
  return element("span", "", ...parts);
}

function prepare(canvas, matrix) {
  const { left, top, right, bottom } = matrix.margins;
  const width = Math.ceil(left + matrix.cellWidth * matrix.columns.size + right);
  return sizedCanvas(canvas, width, Math.ceil(top + matrix.cellHeight * matrix.rows.size + bottom));
}

function drawMatrix(canvas, matrix, tables, theme) {
  const pen = prepare(canvas, matrix);
  drawCells(pen, matrix, tables, theme);
  if (matrix.masked) hatch(pen, matrix, theme);
  drawGrid(pen, matrix, theme);
  if (matrix.scale !== "mask") drawNumbers(pen, matrix, tables);
  drawGroups(pen, matrix, theme);
}

function cellArea({ layout: { left, top, width, height, rows, columns } }) {
  return [left, top, width * columns, height * rows];
}

function drawCells(pen, matrix, tables, theme) {
  const area = cellArea(matrix);
  pen.fillStyle = theme.panel;
  pen.fillRect(...area);
  if (matrix.scale === "mask") return tick(pen, matrix, theme);
  const colours = packedColours(tables[matrix.scale]);
  const { values, low, high } = matrix;
  const colourAt = (cell) => (hasNumber(matrix, cell) ? colours[colourStep(values[cell], low, high)] : 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(imageOf(matrix.columns.size, matrix.rows.size, colourAt), ...area);
}

function hasNumber({ values, masked, allowed }, cell) {
  return Number.isFinite(values[cell]) && (!masked || allowed[cell]);
}

// A mask has no numbers: visible cells have a tick, the others are hatched.
function tick(pen, matrix, theme) {
  if (Math.min(matrix.cellWidth, matrix.cellHeight) < 10) return;
  labelPen(pen, theme);
  pen.textAlign = "center";
  matrix.allowed.forEach((allowed, cell) => {
    const [x, y, width, height] = cellBox(matrix, Math.floor(cell / matrix.columns.size), cell % matrix.columns.size);
    if (allowed) pen.fillText("✓", x + width / 2, y + height / 2);
  });
}

function hatch(pen, matrix, theme) {
  pen.beginPath();
  matrix.allowed.forEach((allowed, cell) => {
    if (!allowed) pen.rect(...cellBox(matrix, Math.floor(cell / matrix.columns.size), cell % matrix.columns.size));
  });
  pen.fillStyle = hatching(pen, theme);
  pen.fill();
}

function cellBox(matrix, row, column) {
  return boxOf(matrix.layout, [row, column]);
}

function drawGrid(pen, matrix, theme) {
  const [left, top, width, height] = cellArea(matrix);
  pen.fillStyle = theme.background;
  pen.globalAlpha = 0.6;
  if (matrix.cellWidth >= 6) {
    for (let column = 1; column < matrix.columns.size; column += 1) {
      pen.fillRect(left + column * matrix.cellWidth - 0.5, top, 1, height);
    }
  }
  if (matrix.cellHeight >= 9) {
    for (let row = 1; row < matrix.rows.size; row += 1) {
      pen.fillRect(left, top + row * matrix.cellHeight - 0.5, width, 1);
    }
  }
  pen.strokeStyle = theme.text;
  pen.globalAlpha = 0.35;
  pen.lineWidth = 1;
  pen.strokeRect(left - 0.5, top - 0.5, width + 1, height + 1);
  pen.globalAlpha = 1;
}

function drawNumbers(pen, matrix, tables) {
  const size = Math.min(FONT_SIZE + 1, matrix.cellHeight - 4);
  if (size < (roomOf(pen.canvas) === null ? 9 : FONT_SIZE)) return;
  pen.font = `${size}px ${matrix.font}`;
  const finite = [...matrix.values].filter(Number.isFinite);
  const largest = Math.max(...finite.map(Math.abs), 0);
  const [most, least] = matrix.scale === "viridis" ? [2, 2] : [largest < 10 ? 2 : 1, 1];
  // Digits are equally wide, so that few of the numbers have to be measured.
  const widest = (decimals) => {
    const alike = new Set(finite.map((value) => value.toFixed(decimals).replace(/\d/g, "0")));
    return Math.max(...Array.from(alike, (text) => pen.measureText(text).width));
  };
  let decimals = most;
  while (decimals > least && widest(decimals) > matrix.cellWidth - 4) decimals -= 1;
  if (!finite.length || widest(decimals) > matrix.cellWidth - 4) return;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  matrix.values.forEach((value, cell) => {
    if (!hasNumber(matrix, cell)) return;
    const [x, y, width, height] = cellBox(matrix, Math.floor(cell / matrix.columns.size), cell % matrix.columns.size);
    pen.fillStyle = inkOn(colourOf(tables[matrix.scale], value, matrix.low, matrix.high));
    pen.fillText(fixed(value, decimals).replace(/^−(0[.,]0+)$/, "$1"), x + width / 2, y + height / 2 + 0.5);
  });
}

// The blocks of a concatenation: lines between them, their names, a frame around the one of this head.
function drawGroups(pen, matrix, theme) {
  const [left, top, width, height] = cellArea(matrix);
  for (const axis of [matrix.columns, matrix.rows]) {
    const across = axis === matrix.columns;
    const block = (across ? width : height) / (axis.groups.length || 1);
    const box = (index) =>
      across ? [left + index * block, top, block, height] : [left, top + index * block, width, block];
    for (let index = 1; index < axis.groups.length; index += 1) frame(pen, box(index), theme.background, 1);
    if (axis.lit !== null) frame(pen, box(axis.lit), theme.primary, 3);
    nameGroups(pen, axis, across, block, [left, top], theme);
  }
}

function nameGroups(pen, axis, across, block, [left, top], theme) {
  pen.textAlign = "center";
  pen.textBaseline = "bottom";
  axis.groups.forEach((name, index) => {
    const lit = index === axis.lit;
    pen.font = `${lit ? "600 " : ""}${FONT_SIZE - 1}px ${theme.font}`;
    const text = pen.measureText(name).width < block - 2 ? name : String(index);
    pen.fillStyle = lit ? theme.primary : theme.text;
    pen.save();
    if (across) pen.translate(left + (index + 0.5) * block, top - 3);
    else {
      pen.translate(left - 24, top + (index + 0.5) * block);
      pen.rotate(-Math.PI / 2);
    }
    pen.fillText(text, 0, 0);
    pen.restore();
  });
}

// { axis name: position } of the token whose label is at a point, beside a row or, slanted, above a column; or null.
function labelAt({ layout, cellWidth, cellHeight, rows, columns }, [x, y]) {
  const [across, down] = [x - layout.left, y - layout.top];
  const [axis, at] =
    across < 0 ? [rows, Math.floor(down / cellHeight)] : [columns, Math.floor((across + down / Math.tan(SLANT)) / cellWidth)];
  const outside = across < 0 ? down >= 0 : down < 0;
  return outside && axis.name && axisKind(axis) === "token" && at >= 0 && at < axis.size ? { [axis.name]: at } : null;
}

// Its rows and columns, for screen readers.
function sizesOf({ rows, columns }) {
  const facts = { rows: rows.size, down: rows.title, columns: columns.size, across: columns.title };
  return tr("{rows} {down} by {columns} {across}", facts);
}

// The two canvases of a matrix: `cells`, and above it `marks` with its grid; `picture` has what is its own.
function matrixLayers(matrix, view, picture) {
  matrix.cells = element("canvas", "cells");
  matrix.cells.setAttribute("aria-hidden", "true");
  matrix.grid = new Grid(view, Object.defineProperty(picture, "layout", { get: () => matrix.layout }));
  matrix.marks = matrix.grid.marks;
  return element("div", "layers", matrix.cells, matrix.marks);
}

// Label every n-th position, so that each label has `room` pixels; for dimensions n is a power of two.
function stride(cell, room, binary) {
  const least = Math.max(1, Math.ceil(room / cell));
  return binary ? 2 ** Math.ceil(Math.log2(least)) : least;
}

function labelPen(pen, theme, bold) {
  pen.font = `${bold ? "600 " : ""}${FONT_SIZE}px ${theme.font}`;
  pen.fillStyle = theme.text;
  pen.textBaseline = "middle";
}

// [position, marked] of the labels to draw: evenly spaced ones, except those too near to a marked one.
function labelledPositions(size, step, marked) {
  const clear = (position) => marked.every((other) => Math.abs(other - position) >= step);
  const regular = Array.from({ length: Math.ceil(size / step) }, (_, index) => index * step).filter(clear);
  return [...regular.map((position) => [position, false]), ...marked.map((position) => [position, true])];
}

function drawRowLabels(pen, matrix, marked, theme) {
  const { left, top } = matrix.margins;
  const kind = axisKind(matrix.rows);
  if (kind === "single") return;
  const tokens = kind === "token";
  const step = stride(matrix.cellHeight, tokens ? FONT_SIZE : 20, !tokens);
  pen.textAlign = "right";
  for (const [row, bold] of labelledPositions(matrix.rows.size, step, tokens ? marked : [])) {
    labelPen(pen, theme, bold);
    pen.globalAlpha = tokens ? 1 : 0.7;
    const text = tokens ? matrix.rows.labels[row] : String(row);
    writeIn(pen, text, left - 8, left - 5, top + (row + 0.5) * matrix.cellHeight);
  }
  labelPen(pen, theme);
  pen.globalAlpha = 0.7;
  const title = `${matrix.rows.title} ↓`;
  if (tokens) pen.fillText(title, Math.max(left - 5, pen.measureText(title).width), top - 9);
  pen.globalAlpha = 1;
}

function drawColumnLabels(pen, matrix, marked, theme) {
  const [left] = cellArea(matrix);
  if (axisKind(matrix.columns) !== "token") return drawColumnNumbers(pen, matrix, theme);
  const step = stride(matrix.cellWidth, FONT_SIZE + 2);
  for (const [column, bold] of labelledPositions(matrix.columns.size, step, marked)) {
    slantedLabel(pen, matrix, column, bold, theme);
  }
  labelPen(pen, theme);
  pen.globalAlpha = 0.7;
  pen.textAlign = "left";
  pen.fillText(`${matrix.columns.title} →`, left, 8);
  pen.globalAlpha = 1;
}

function drawColumnNumbers(pen, matrix, theme) {
  const [left, top, width, height] = cellArea(matrix);
  labelPen(pen, theme);
  pen.globalAlpha = 0.7;
  pen.textAlign = "center";
  const step = stride(matrix.cellWidth, 24, true);
  for (let column = 0; column < matrix.columns.size; column += step) {
    pen.fillText(String(column), left + (column + 0.5) * matrix.cellWidth, top + height + 10);
  }
  const half = pen.measureText(columnTitle(matrix)).width / 2;
  pen.fillText(columnTitle(matrix), Math.max(left + width / 2, half), top + height + 24);
  pen.globalAlpha = 1;
}

function slantedLabel(pen, matrix, column, bold, theme) {
  const { left, top, slanted } = matrix.margins;
  labelPen(pen, theme, bold);
  pen.textAlign = "left";
  writeSlanted(pen, matrix.columns.labels[column], slanted, [left + (column + 0.5) * matrix.cellWidth, top - 5], SLANT);
}

// Labels, and outlines of the rows and columns that are chosen (thick) or under the pointer (thin). Both are given by
// axis name, so every matrix with that axis shows them.
function drawMarks(canvas, matrix, chosen, hovered, theme) {
  const pen = prepare(canvas, matrix);
  const marked = (axis) => [...new Set([chosen[axis.name], hovered[axis.name]])].filter((place) => place < axis.size);
  drawRowLabels(pen, matrix, marked(matrix.rows), theme);
  drawColumnLabels(pen, matrix, marked(matrix.columns), theme);
  for (const [positions, thickness] of [[hovered, 1], [chosen, 2]]) {
    const [row, column] = [positions[matrix.rows.name], positions[matrix.columns.name]];
    const [left, top, width, height] = cellArea(matrix);
    const bands = [];
    if (row < matrix.rows.size) bands.push([left, top + row * matrix.cellHeight, width, matrix.cellHeight]);
    if (column < matrix.columns.size) bands.push([left + column * matrix.cellWidth, top, matrix.cellWidth, height]);
    for (const band of bands) outline(pen, band, thickness, theme);
    if (bands.length === 2) outline(pen, cellBox(matrix, row, column), thickness + 1, theme);
  }
}
