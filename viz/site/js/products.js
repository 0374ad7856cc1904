// Sums over arrays, row by row; each function fills its last argument, `out`. A weight matrix is (out, in), as PyTorch
// stores it.
//
// Sums are in double precision, as JavaScript's numbers are; each result is rounded to float32 once. In the inner loops
// there is no Math.fround and no destructuring: each of them makes a loop three times slower.

const ROWS = 4; // rows multiplied together, so that a weight is read once for all of them
let doubles = new Float64Array(0); // the rows at hand in double precision; nothing is left in it between calls

// x W^T + b: (rows, in) times (out, in) gives (rows, out). `bias` may be null; the number of outputs must divide by 4.
export function affine(x, weight, bias, n_in, out) {
  const rows = x.length / n_in;
  const n_out = weight.length / n_in;
  if (doubles.length < ROWS * n_in) doubles = new Float64Array(ROWS * n_in);
  let row = 0;
  for (; row + ROWS <= rows; row += ROWS) fourRows(x, weight, n_in, n_out, out, row);
  for (; row < rows; row += 1) oneRow(x, weight, n_in, n_out, out, row);
  if (bias) for (let at = 0, j = 0; at < out.length; at += 1, j = j + 1 === n_out ? 0 : j + 1) out[at] += bias[j];
}

function fourRows(x, weight, n_in, n_out, y, row) {
  for (let i = 0; i < n_in; i += 1) {
    for (let r = 0; r < 4; r += 1) doubles[4 * i + r] = x[(row + r) * n_in + i];
  }
  for (let out = 0; out < n_out; out += 2) {
    const w0 = out * n_in, w1 = w0 + n_in;
    let a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
    for (let i = 0, at = 0; i < n_in; i += 1, at += 4) {
      const u = weight[w0 + i], v = weight[w1 + i];
      const x0 = doubles[at], x1 = doubles[at + 1], x2 = doubles[at + 2], x3 = doubles[at + 3];
      a0 += x0 * u; a1 += x1 * u; a2 += x2 * u; a3 += x3 * u;
      b0 += x0 * v; b1 += x1 * v; b2 += x2 * v; b3 += x3 * v;
    }
    const at = row * n_out + out;
    y[at] = a0; y[at + n_out] = a1; y[at + 2 * n_out] = a2; y[at + 3 * n_out] = a3;
    y[at + 1] = b0; y[at + n_out + 1] = b1; y[at + 2 * n_out + 1] = b2; y[at + 3 * n_out + 1] = b3;
  }
}

function oneRow(x, weight, n_in, n_out, y, row) {
  for (let i = 0; i < n_in; i += 1) doubles[i] = x[row * n_in + i];
  for (let out = 0; out < n_out; out += 4) {
    const w0 = out * n_in, w1 = w0 + n_in, w2 = w1 + n_in, w3 = w2 + n_in;
    let a0 = 0, a1 = 0, a2 = 0, a3 = 0;
    for (let i = 0; i < n_in; i += 1) {
      const s = doubles[i];
      a0 += s * weight[w0 + i]; a1 += s * weight[w1 + i]; a2 += s * weight[w2 + i]; a3 += s * weight[w3 + i];
    }
    const at = row * n_out + out;
    y[at] = a0; y[at + 1] = a1; y[at + 2] = a2; y[at + 3] = a3;
  }
}

export function add(a, b, out) {
  for (let i = 0; i < out.length; i += 1) out[i] = a[i] + b[i];
}

// Q K^T: (heads, query, key). `q`: (heads, query, d_k); `keys(i)`: the keys that query i has, each (heads * d_k).
export function dotProducts(q, keys, [heads, n, m], d_k, out) {
  for (let i = 0; i < n; i += 1) {
    const k = keys(i);
    for (let j = 0; j < m; j += 1) {
      const key = k[j];
      for (let h = 0; h < heads; h += 1) {
        const start = (h * n + i) * d_k;
        let sum = 0;
        for (let c = 0; c < d_k; c += 1) sum += q[start + c] * key[h * d_k + c];
        out[(h * n + i) * m + j] = sum;
      }
    }
  }
}

// softmax(x / tau) of each row of (heads, query, key); a row of -Infinity alone gives zeros. `tau`: one for each head.
export function softmax(masked, tau, [heads, n, m], out) {
  for (let row = 0; row < heads * n; row += 1) {
    const start = row * m;
    const t = tau[Math.floor(row / n)];
    let largest = -Infinity;
    for (let j = start; j < start + m; j += 1) {
      out[j] = masked[j] / t;
      if (out[j] > largest) largest = out[j];
    }
    let sum = 0;
    for (let j = start; j < start + m; j += 1) sum += out[j] = largest === -Infinity ? 0 : Math.exp(out[j] - largest);
    for (let j = start; j < start + m; j += 1) out[j] /= sum || 1;
  }
}

// Weights times values: (heads, query, d_v). `values(i)`: the values that query i has, each (heads * d_v).
export function weightedSums(pattern, values, [heads, n, m], d_v, out) {
  const sums = new Float64Array(d_v);
  for (let i = 0; i < n; i += 1) {
    const v = values(i);
    for (let h = 0; h < heads; h += 1) {
      sums.fill(0);
      for (let j = 0; j < m; j += 1) {
        const weight = pattern[(h * n + i) * m + j];
        const value = v[j];
        for (let c = 0; c < d_v; c += 1) sums[c] += weight * value[h * d_v + c];
      }
      out.set(sums, (h * n + i) * d_v);
    }
  }
}

// gamma (x - mean) / sqrt(variance + eps) + beta, row by row (Ba et al. 2016).
export function layerNorm(x, gamma, beta, eps, out) {
  const width = gamma.length;
  for (let start = 0; start < x.length; start += width) {
    let mean = 0;
    let variance = 0;
    for (let c = 0; c < width; c += 1) mean += x[start + c] / width;
    for (let c = 0; c < width; c += 1) variance += (x[start + c] - mean) ** 2 / width;
    const scale = 1 / Math.sqrt(variance + eps);
    for (let c = 0; c < width; c += 1) out[start + c] = gamma[c] * (x[start + c] - mean) * scale + beta[c];
  }
}

// (position, heads * d_k) -> (heads, position, d_k)
export function splitHeads(x, heads, d_k, out) {
  const n = x.length / heads / d_k;
  for (let h = 0, at = 0; h < heads; h += 1) {
    for (let i = 0; i < n; i += 1) {
      for (let c = 0; c < d_k; c += 1, at += 1) out[at] = x[(i * heads + h) * d_k + c];
    }
  }
}

// Concat: (heads, position, d_v) -> (position, heads * d_v)
export function joinHeads(z, heads, d_v, out) {
  const n = z.length / heads / d_v;
  for (let h = 0, at = 0; h < heads; h += 1) {
    for (let i = 0; i < n; i += 1) {
      for (let c = 0; c < d_v; c += 1, at += 1) out[(i * heads + h) * d_v + c] = z[at];
    }
  }
}

// Each of `count` matrices (rows, columns), transposed.
export function transpose(x, [count, rows, columns], out) {
  for (let matrix = 0, at = 0; matrix < count; matrix += 1) {
    for (let i = 0; i < rows; i += 1) {
      for (let j = 0; j < columns; j += 1, at += 1) out[(matrix * columns + j) * rows + i] = x[at];
    }
  }
}
