// What a component draws: a header, and a run's arrays by name. In the app, in notebooks and in saved files they come as
// bytes from viz.drawing.Drawing.pack. A page that computes them itself gives an object in their place,
//
//   mount({
//     parentElement,            // an element or shadow root with <div class="mosaic component"></div>
//     data: { header, arrays }, // arrays: { "decoder.layers.1.cross_attn.pattern": { values, shape }, ... }
//     setTriggerValue(event, value) {}, // what a person chose: the same events as in the app
//     setStateValue() {},
//   });
//
// with `mount` of js/shared/mount.js, the default export of the script that viz.drawing.sources(name) puts together;
// calling it again with other data draws again. `values` is a Float32Array, of a mask a Uint8Array of 0 and 1, `shape` its
// sizes: as in the trace of Python. What a component asks for by a part of a path, `path[3]`, is cut from the whole array
// if that is there. The Python function that packs a component's data says in its docstring which arrays it takes, and
// what the header has.

// { header, arrays }; where there are no arrays, `data` may be the header.
function unpack(data) {
  if (!(data instanceof ArrayBuffer) && !ArrayBuffer.isView(data)) return data.arrays ? data : { header: data, arrays: {} };
  const { buffer } = new Uint8Array(data);
  let place = 4 + new DataView(buffer).getUint32(0, true);
  const [header, described] = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, place - 4)));
  const arrays = described.map(([name, type, shape, unit]) => {
    const size = lengthOf(shape);
    const [Type, length] = type === "bits" ? [Uint8Array, Math.ceil(size / 8)] : [TYPES[type], size];
    const sent = new Type(buffer, place, length);
    place += 4 * Math.ceil(sent.byteLength / 4);
    return [name, decoded(sent, type, shape, unit)];
  });
  return { header, arrays: Object.fromEntries(arrays) };
}

const TYPES = { f4: Float32Array, u1: Uint8Array, u2: Uint16Array };

function lengthOf(shape) {
  return shape.reduce((all, side) => all * side, 1);
}

// Bits and codes stay as they are until their values are asked for.
function decoded(sent, type, shape, unit) {
  if (type === "bits") return withValues({ bits: sent, shape }, numbersOf);
  return unit === undefined ? { values: sent, shape } : withValues({ codes: sent, unit, shape }, valuesOf);
}

// The array with `values`, which are made when they are first asked for.
function withValues(array, make) {
  const get = () => Object.defineProperty(array, "values", { value: make(array) }).values;
  return Object.defineProperty(array, "values", { get, configurable: true });
}

// The eight bits of each byte, the lowest first, as two numbers of four bytes, which are copied faster than bit by bit.
const BITS = new Uint32Array(Uint8Array.from({ length: 2048 }, (_, at) => (at >> 3 >> (at & 7)) & 1).buffer);

function numbersOf({ bits, shape }) {
  const numbers = new Uint32Array(2 * bits.length);
  for (let at = 0; at < bits.length; at += 1) {
    numbers[2 * at] = BITS[2 * bits[at]];
    numbers[2 * at + 1] = BITS[2 * bits[at] + 1];
  }
  return new Uint8Array(numbers.buffer, 0, lengthOf(shape));
}

function valuesOf({ codes, unit }) {
  const values = new Float32Array(codes.length);
  for (let at = 0; at < codes.length; at += 1) values[at] = codes[at] ? (codes[at] - 1) * unit : NaN;
  return values;
}

// The name of an array at `path`, or of its part at `index`.
function named(path, name, ...index) {
  return `${path && `${path}.`}${name}${index.length ? `[${index.join(", ")}]` : ""}`;
}

// The array of that name: a path, a part of a path in NumPy's notation, `path[3]`, `path[3, 7]` or `path[:, 7]`, or the
// product of two, `path[3] @ path[3]`.
function arrayAt(arrays, name) {
  if (arrays[name]) return arrays[name];
  if (name.includes(" @ ")) return productOf(...name.split(" @ ").map((factor) => arrayAt(arrays, factor)));
  const [path, index] = name.split(/[[\]]/);
  if (!arrays[path] || !index) throw new Error(`The array ${name} is not there.`);
  return index.split(", ").reduce(index.startsWith(":") ? columnOf : partOf, arrays[path]);
}

// Of two matrices, summed in double precision.
function productOf({ values: a, shape: [n, inner] }, { values: b, shape: [, m] }) {
  const product = new Float32Array(n * m);
  const sums = new Float64Array(m);
  for (let i = 0; i < n; i += 1) {
    sums.fill(0);
    for (let k = 0; k < inner; k += 1) for (let j = 0; j < m; j += 1) sums[j] += a[i * inner + k] * b[k * m + j];
    product.set(sums, i * m);
  }
  return { values: product, shape: [n, m] };
}

function partOf({ values, shape: [count, ...shape] }, index) {
  const size = values.length / count;
  return { values: values.subarray(Number(index) * size, (Number(index) + 1) * size), shape };
}

// array[:, index]; the colon itself leaves an array as it is.
function columnOf(array, index) {
  if (index === ":") return array;
  const { values, shape: [count, rows, columns] } = array;
  const found = new values.constructor(count * columns);
  for (let at = 0; at < count; at += 1) {
    const start = (at * rows + Number(index)) * columns;
    found.set(values.subarray(start, start + columns), at * columns);
  }
  return { values: found, shape: [count, columns] };
}

// Codes of `bits` bits of arrays that have no negative numbers, one unit for all: 0 where `mask` has 0 or the value is NaN,
// code c for the value (c - 1) * unit. A mask that is smaller than its array holds for each part of it.
function encode(parts, bits = 16) {
  const [{ array }] = parts;
  const same = array.unit && parts.every((part) => part.array.unit === array.unit);
  const unit = same ? array.unit : (largestOf(parts) || 1) / (2 ** bits - 2);
  return { unit, codes: parts.map((part) => codesOf(part, same, unit, bits)) };
}

function codesOf({ array, mask }, same, unit, bits) {
  const hides = mask && hidesAny(mask);
  if (same && !hides) return array.codes;
  const codes = same ? array.codes.slice() : new (bits === 8 ? Uint8Array : Uint16Array)(array.values.length);
  if (!same) {
    const { values } = array;
    const factor = Math.fround(1 / unit);
    for (let at = 0; at < codes.length; at += 1) codes[at] = Math.fround(Math.fround(values[at] * factor) + 1.5); // of NaN: 0
  }
  if (!hides) return codes;
  const { values } = mask;
  for (let part = 0; part < codes.length; part += values.length) {
    for (let at = 0; at < values.length; at += 1) if (!values[at]) codes[part + at] = 0;
  }
  return codes;
}

// Whether a mask has a 0: most have none, and their bits need not be taken apart. The last byte is filled up with zeros.
function hidesAny(mask) {
  const { bits, shape } = mask;
  if (!bits) return mask.values.includes(0);
  const size = lengthOf(shape);
  const whole = size >> 3;
  for (let at = 0; at < whole; at += 1) if (bits[at] !== 255) return true;
  return size % 8 > 0 && bits[whole] !== 2 ** (size % 8) - 1;
}

// At least 1. Of a million codes, `reduce` takes ten times as long.
function largestCode(codes) {
  let largest = 1;
  for (let at = 0; at < codes.length; at += 1) if (codes[at] > largest) largest = codes[at];
  return largest;
}

function largestOf(parts) {
  return parts.reduce((most, { array: { values }, mask }) => {
    for (let at = 0; at < values.length; at += 1) {
      if (values[at] > most && (!mask || mask.values[at % mask.values.length])) most = values[at];
    }
    return most;
  }, 0);
}
