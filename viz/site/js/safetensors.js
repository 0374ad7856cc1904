// A checkpoint's weights: reads a .safetensors file, half precision widened to float32.

// Name -> Float32Array, row by row as PyTorch stores it. Throws an Error for other types of numbers than F16 and F32.
export function readSafetensors(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const tensors = new Map();
  for (const [name, { dtype, data_offsets: [start, end] }] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    if (dtype !== "F16" && dtype !== "F32") throw new Error(`${name} is of type ${dtype}; F16 and F32 can be read`);
    const Type = dtype === "F16" ? Uint16Array : Float32Array;
    const place = 8 + length + start;
    // A file whose numbers are not aligned has to be copied.
    const whole = place % Type.BYTES_PER_ELEMENT ? new Type(buffer.slice(place, 8 + length + end)) : new Type(buffer, place, (end - start) / Type.BYTES_PER_ELEMENT);
    tensors.set(name, dtype === "F16" ? widened(whole) : whole);
  }
  return tensors;
}

let table = null; // float32 of each of the 65,536 half-precision numbers, made when the first is read

// Half-precision numbers, as 16 bits each, in float32.
export function widened(halves) {
  table ??= Float32Array.from({ length: 65536 }, (_, bits) => halfPrecision(bits));
  const values = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i += 1) values[i] = table[halves[i]];
  return values;
}

// The number that 16 bits stand for (IEEE 754 binary16): a sign, 5 bits of exponent, 10 of fraction.
function halfPrecision(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * (1 + fraction / 1024) * 2 ** (exponent - 15) : sign * fraction * 2 ** -24;
}
