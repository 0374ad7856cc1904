// The one place that knows what today's picture scripts take: bytes of viz.drawing.Drawing.pack, made of a run's arrays by
// hook path. Once the scripts take the arrays themselves, this file goes.

const LARGEST_CODE = 2 ** 16 - 1;

// Header length, header, arrays, each filled up to four bytes.
function pack(header, arrays) {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const aligned = (size) => 4 * Math.ceil(size / 4);
  const start = 4 + aligned(text.length);
  const sizes = arrays.map(({ byteLength }) => aligned(byteLength));
  const bytes = new Uint8Array(start + sizes.reduce((sum, size) => sum + size, 0)).fill(32, 4, start);
  new DataView(bytes.buffer).setUint32(0, start - 4, true);
  bytes.set(text, 4);
  arrays.reduce((place, { buffer, byteOffset, byteLength }, i) => {
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), place);
    return place + sizes[i];
  }, start);
  return bytes.buffer;
}

// All heads. `groups`: { kind, title, queries, keys, patterns, masks }, arrays a layer.
export function mosaicData(groups, heads, chosen, title, scale) {
  let largest = 0;
  for (const { patterns, masks } of groups) {
    patterns.forEach((pattern, layer) => pattern.forEach((weight, i) => masks[layer][i] && weight > largest && (largest = weight)));
  }
  const unit = (largest || 1) / (LARGEST_CODE - 1);
  const codes = groups.map(({ patterns, masks }) => {
    const size = patterns[0].length;
    const all = new Uint16Array(size * patterns.length);
    patterns.forEach((pattern, layer) => pattern.forEach((weight, i) => masks[layer][i] && (all[layer * size + i] = weight / unit + 1.5)));
    return all;
  });
  const described = groups.map(({ kind, title: name, queries, keys, patterns, masks }) => {
    const masked = masks.some((mask) => mask.includes(0));
    return { kind, title: name, layers: patterns.length, heads, averaged: false, pool: 1, queries, keys, masked };
  });
  return pack({ groups: described, unit, chosen, high: 1, largest, measure: "attention weight", title, opens: "", scale }, codes);
}

// Matrices with operators between them, `equations` one below the other. A matrix: { symbol, values, rows, columns,
// low, high }, and where they differ from the start: colour, scale, allowed, family, note, result.
export function matricesData(equations, header, scales) {
  const isMatrix = (part) => typeof part !== "string";
  const arrays = equations.flat().filter(isMatrix).flatMap(({ values, allowed }) => [values, ...(allowed ? [Uint8Array.from(allowed)] : [])]);
  const described = equations.map((parts) => parts.map((part) => (isMatrix(part) ? description(part) : part)));
  return pack({ ...header, equations: described, scales }, arrays);
}

function description({ values, allowed, ...matrix }) {
  return { colour: "", scale: "RdBu_r", family: matrix.symbol, note: "", result: false, ...matrix, masked: Boolean(allowed) };
}

// The rows or columns of a matrix; `of`: their labels, or how many there are.
export function axis(name, title, of, notes = []) {
  const named = Array.isArray(of);
  return { name, title, size: named ? of.length : of, labels: named ? of : [], notes, groups: [], lit: null };
}
