// Half precision, in which files keep numbers.

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
