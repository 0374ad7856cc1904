// The plane of the two leading principal components of a head's keys or values, as model/analysis/heads/key_plane.py has
// it; in double precision.

// { axes: an array (2, width); shares: each one's of the variance } of a head's rows, `{ values, shape }`.
export function principalAxes({ values, shape: [, n, d] }, head) {
  const rows = Array.from({ length: n }, (_, i) => values.subarray((head * n + i) * d, (head * n + i + 1) * d));
  const centre = Float64Array.from({ length: d }, (_, c) => rows.reduce((sum, row) => sum + row[c], 0) / n);
  const { axes, variances } = turnedAxes(rows.map((row) => Float64Array.from(row, (value, c) => value - centre[c])), d);
  const total = variances.reduce((sum, each) => sum + each, 0);
  const shares = variances.slice(0, 2).map((variance) => (total ? variance / total : 0));
  return { axes: { values: Float32Array.from(axes.flatMap((axis) => [...axis])), shape: [2, d] }, shares };
}

function dot(a, b) {
  let sum = 0;
  for (let c = 0; c < a.length; c += 1) sum += a[c] * b[c];
  return sum;
}

// The two directions in which the rows vary most, and the squares along all directions, the largest first: turns the
// axes in pairs until no two vary together (Jacobi 1846).
function turnedAxes(rows, d) {
  const columns = Array.from({ length: d }, (_, c) => Float64Array.from(rows, (row) => row[c]));
  const axes = Array.from({ length: d }, (_, c) => Float64Array.from({ length: d }, (_, at) => Number(at === c)));
  const all = columns.reduce((sum, column) => sum + dot(column, column), 0);
  for (let turned = true; turned; ) {
    turned = false;
    for (let a = 1; a < d; a += 1) {
      for (let b = 0; b < a; b += 1) {
        const [aa, bb, ab] = [dot(columns[a], columns[a]), dot(columns[b], columns[b]), dot(columns[a], columns[b])];
        if (Math.abs(ab) <= 1e-13 * all) continue;
        turned = true;
        const angle = Math.atan((2 * ab) / (bb - aa)) / 2;
        for (const pair of [columns, axes]) turn(pair[a], pair[b], Math.cos(angle), Math.sin(angle));
      }
    }
  }
  const order = columns.map((column, c) => [dot(column, column), c]).sort((one, other) => other[0] - one[0]);
  return { axes: order.slice(0, 2).map(([, c]) => axes[c]), variances: order.map(([variance]) => variance) };
}

function turn(a, b, cos, sin) {
  for (let at = 0; at < a.length; at += 1) {
    const x = a[at];
    a[at] = cos * x - sin * b[at];
    b[at] = sin * x + cos * b[at];
  }
}
