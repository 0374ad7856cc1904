// needs: shared/payload.js shared/words.js
// Makes matrices of a table of equations and a run's arrays. viz/steps/table.py says what the rows of the table mean; the
// header has `equations` and `ranges`, the `axes` that they name, with `labels` and `notes`, and the `facts`.

const SAID = { with: tr("with"), "what head {head} adds": tr("what head {head} adds") }; // words of the table

// Equations in which each row has become a matrix: { symbol, values, rows, columns, low, high, allowed, ... }.
function equationsOf(header, arrays) {
  const { equations, ranges = {}, facts = {} } = header;
  const at = (name) => arrayAt(arrays, name.split(" @ ").map((part) => named(header.path || "", part)).join(" @ "));
  const limits = Object.entries(filled(ranges, facts)).map(([name, shared]) => [name, rangeOf(shared, at)]);
  const table = { ...header, limits: Object.fromEntries(limits), at };
  const kept = equations.map((parts) => parts.filter((part) => holds(part, facts)).map((part) => filled(part, facts)));
  return kept.map((parts) => parts.map((part) => (part.array ? matrixOf(part, table) : part.operator ?? part)));
}

// Of several equations, which share the height of a screen, the rows of the chosen tokens; one stays whole.
function ofChosenTokens(equations, places) {
  if (equations.length === 1) return equations;
  const cut = (part) => (places[part.rows?.name] === undefined ? part : rowOf(part, places[part.rows.name]));
  return equations.map((parts) => parts.map(cut));
}

function rowOf(matrix, row) {
  const [{ rows, columns }, end] = [matrix, row + 1];
  // Without a name: a click on it chooses no token.
  const axis = { ...rows, name: "", size: 1, labels: rows.labels.slice(row, end), notes: rows.notes.slice(row, end) };
  const cells = (values) => values?.subarray(row * columns.size, end * columns.size);
  return { ...matrix, rows: axis, values: cells(matrix.values), allowed: cells(matrix.allowed) };
}

function holds(part, facts) {
  return (part.if === undefined || facts[part.if]) && !(part.unless && facts[part.unless]);
}

// The part of the table with facts in place of their names in braces.
function filled(part, facts) {
  if (typeof part === "string") return (SAID[part] ?? part).replace(/\{(\w+)\}/g, (_, name) => facts[name]);
  if (Array.isArray(part)) return part.map((each) => filled(each, facts));
  if (typeof part !== "object" || part === null) return part;
  return Object.fromEntries(Object.entries(part).map(([name, value]) => [name, filled(value, facts)]));
}

function matrixOf(row, table) {
  const [array, mask] = [table.at(row.array), row.mask && table.at(row.mask)];
  const { values, shape } = MAKES[row.made]?.(array, mask) ?? flat(array);
  const [low, high] = limitsOf(row, table, values);
  return {
    symbol: row.symbol,
    values: row.scale === "mask" ? Float32Array.from(values) : values,
    rows: axisOf(row.rows, shape[0], table, row.place),
    columns: axisOf(row.columns, shape[1], table),
    colour: table.colours?.[row.colour] ?? row.colour ?? "",
    scale: row.scale || "RdBu_r",
    ...{ low, high },
    masked: Boolean(mask),
    allowed: mask?.values,
    family: row.family || row.symbol,
    note: row.note || "",
    result: Boolean(row.result),
  };
}

function limitsOf({ scale, range }, { limits, at }, values) {
  if (scale && !range) return [0, 1];
  if (Array.isArray(range)) return typeof range[0] === "number" ? range : symmetricRange(range.map((name) => at(name).values));
  return limits[range] || symmetricRange([values]);
}

// An axis of a matrix; `place` is the position that its only row stands for.
function axisOf(name, size, { axes, labels = {}, notes = {}, facts = {} }, place) {
  const axis = filled(axes[name], facts);
  const all = { labels: labels[name] || [], notes: notes[name] || [] };
  const own = place === undefined ? all : { labels: all.labels.slice(place, place + 1), notes: [] };
  const groups = axis.heads ? Array.from({ length: facts.n_heads }, (_, head) => tr("head {head}", { head })) : [];
  return { name: axis.name ?? name, title: axis.title, size, ...own, groups, lit: axis.heads ? facts.head : null };
}

const MAKES = { transposed, joined, masked };

// As (rows, columns): a vector has one row, and blocks of rows stand below each other.
function flat({ values, shape }) {
  const columns = shape.at(-1);
  return { values, shape: [values.length / columns, columns] };
}

function transposed({ values, shape: [rows, columns] }) {
  const turned = new Float32Array(values.length);
  for (let i = 0; i < rows; i += 1) for (let j = 0; j < columns; j += 1) turned[j * rows + i] = values[i * columns + j];
  return { values: turned, shape: [columns, rows] };
}

// (head, position, width) -> (position, heads * width)
function joined({ values, shape: [heads, n, width] }) {
  const side = new Float32Array(values.length);
  for (let head = 0; head < heads; head += 1) {
    for (let i = 0; i < n; i += 1) {
      const start = (head * n + i) * width;
      side.set(values.subarray(start, start + width), (i * heads + head) * width);
    }
  }
  return { values: side, shape: [n, heads * width] };
}

function masked(array, mask) {
  const { values, shape } = flat(array);
  return { values: values.map((score, cell) => (mask.values[cell] ? score : -Infinity)), shape };
}

function rangeOf({ whole, robust }, at) {
  const arrays = (whole || robust).map((name) => at(name).values);
  return whole ? symmetricRange(arrays) : robustRange(arrays);
}

// From -m to m, with m the largest magnitude.
function symmetricRange(arrays) {
  let largest = 0;
  for (const values of arrays) for (const value of values) largest = Math.max(largest, Math.abs(value));
  return [-largest || -1, largest || 1];
}

// The same, but a few outliers are clipped, as the legend says: some dimensions of a Transformer's vectors are many times
// larger than all others, which would turn pale. The limit is then the 99.5 % quantile.
function robustRange(arrays) {
  const sizes = new Float32Array(arrays.reduce((sum, { length }) => sum + length, 0));
  let start = 0;
  for (const values of arrays) {
    sizes.set(values, start);
    start += values.length;
  }
  sizes.forEach((value, at) => (sizes[at] = Math.abs(value)));
  sizes.sort();
  const place = 0.995 * (sizes.length - 1);
  const [low, high] = [sizes[Math.floor(place)], sizes[Math.min(Math.floor(place) + 1, sizes.length - 1)]];
  const limit = low + (high - low) * (place % 1);
  return sizes.at(-1) > 1.5 * limit && limit > 0 ? [-limit, limit] : symmetricRange([sizes.subarray(-1)]);
}
