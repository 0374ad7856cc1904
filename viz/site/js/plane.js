// A head's keys in the plane of their two leading principal components, and its queries split by that plane, as
// model/analysis/heads/key_plane.py has them; in double precision.

// { keys, queries, rest: arrays; mean, shares, outside } of a head. `q`, `k`: (head, position, d_k); `scale` of scores.
export function keyPlane(q, k, head, scale) {
  const d = q.shape[2];
  const rowsOf = ({ values, shape: [, n] }) => Array.from({ length: n }, (_, i) => values.subarray((head * n + i) * d, (head * n + i + 1) * d));
  const [queries, keys] = [rowsOf(q), rowsOf(k)];
  const centre = Float64Array.from({ length: d }, (_, c) => keys.reduce((sum, key) => sum + key[c], 0) / keys.length);
  const varied = keys.map((key) => Float64Array.from(key, (value, c) => value - centre[c]));
  const { axes, variances } = principalAxes(varied, d);
  const inPlane = (vector) => axes.map((axis) => dot(vector, axis));
  const points = queries.map(inPlane);
  const outside = queries.map((query, i) => Float64Array.from(query, (value, c) => value - points[i][0] * axes[0][c] - points[i][1] * axes[1][c]));
  const total = variances.reduce((sum, each) => sum + each, 0);
  const array = (rows) => ({ values: Float32Array.from(rows.flat()), shape: [rows.length, rows[0].length] });
  return {
    arrays: {
      "plane.keys": array(varied.map(inPlane)),
      "plane.queries": array(points),
      "plane.rest": array(outside.map((rest) => keys.map((key) => scale * dot(rest, key)))),
    },
    mean: inPlane(centre),
    shares: variances.slice(0, 2).map((variance) => (total ? variance / total : 0)),
    outside: outside.map((rest) => Math.sqrt(dot(rest, rest))),
  };
}

function dot(a, b) {
  let sum = 0;
  for (let c = 0; c < a.length; c += 1) sum += a[c] * b[c];
  return sum;
}

// The two directions in which the rows vary most, and the squares along all directions, the largest first: turns the
// axes in pairs until no two vary together (Jacobi 1846).
function principalAxes(rows, d) {
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
