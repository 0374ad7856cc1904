// What viz.canvas.matrices.encode sends, read back; and the softmax of its scores at another temperature.

function decode(data) {
  const { header, bytes, start } = unpackedHeader(data);
  for (const matrix of header.equations.flat().filter((part) => part.rows)) {
    const cells = matrix.rows.size * matrix.columns.size;
    matrix.values = new Float32Array(bytes.buffer, start + matrix.offset, cells);
    if (matrix.masked) matrix.allowed = bytes.subarray(start + matrix.allowed_offset).subarray(0, cells);
  }
  return header;
}

// Written without arrays in between: it runs at every move of a finger.
function softmaxRows({ values, rows, columns }, tau) {
  const weights = new Float32Array(values.length);
  for (let row = 0; row < rows.size; row += 1) {
    const [start, end] = [row * columns.size, (row + 1) * columns.size];
    let [largest, sum] = [-Infinity, 0];
    for (let cell = start; cell < end; cell += 1) largest = Math.max(largest, values[cell]);
    if (largest === -Infinity) continue;
    const power = (cell) => Math.exp((values[cell] - largest) / tau);
    for (let cell = start; cell < end; cell += 1) sum += power(cell);
    for (let cell = start; cell < end; cell += 1) weights[cell] = power(cell) / sum;
  }
  return weights;
}
