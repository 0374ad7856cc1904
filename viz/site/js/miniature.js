// All heads of an attention, each as small as a box of the whole model has room for.

// (heads, query, key) -> the weights with NaN where they are masked, at most `most` along each side: the largest of blocks.
export function inMiniature({ values, shape: [heads, n, m] }, mask, most) {
  const [rows, columns] = [Math.min(n, most), Math.min(m, most)];
  const small = new Float32Array(heads * rows * columns).fill(NaN);
  const blockOf = Array.from({ length: Math.max(n, m) }, (_, at) => [blockIn(n, rows, at), blockIn(m, columns, at)]);
  for (let at = 0; at < values.length; at += 1) {
    if (!mask.values[at]) continue;
    const [head, i, j] = [Math.floor(at / (n * m)), Math.floor(at / m) % n, at % m];
    const cell = (head * rows + blockOf[i][0]) * columns + blockOf[j][1];
    if (!(small[cell] >= values[at])) small[cell] = values[at];
  }
  return { values: small, shape: [heads, rows, columns] };
}

// The block of `count` that position `at` of `size` falls into: block b begins at floor(b size / count).
function blockIn(size, count, at) {
  return Math.floor(((at + 1) * count - 1) / size);
}
