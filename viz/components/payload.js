// What viz.matrices.encode sends, read back; and the softmax of its scores at another temperature.

function decode(data) {
  const bytes = new Uint8Array(data);
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  for (const matrix of header.equations.flat().filter((part) => part.rows)) {
    const cells = matrix.rows.size * matrix.columns.size;
    matrix.values = new Float32Array(bytes.buffer, 4 + length + matrix.offset, cells);
    if (matrix.masked) matrix.allowed = bytes.subarray(4 + length + matrix.allowed_offset).subarray(0, cells);
  }
  return header;
}

function softmaxRows({ values, rows, columns }, tau) {
  const weights = new Float32Array(values.length);
  for (let row = 0; row < rows.size; row += 1) {
    const start = row * columns.size;
    const scores = values.subarray(start, start + columns.size);
    const largest = Math.max(...scores);
    if (largest === -Infinity) continue;
    const powers = [...scores].map((score) => Math.exp((score - largest) / tau));
    const sum = powers.reduce((total, power) => total + power, 0);
    weights.set(powers.map((power) => power / sum), start);
  }
  return weights;
}
