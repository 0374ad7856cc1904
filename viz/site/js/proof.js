// Five claims about a run, each computed again in double precision from the arrays of the step before (claims 3 and 5 of
// the app's page Verification). An error is the largest difference, relative to the array's largest number.

const TOLERANCE = 5e-5; // of steps in single precision, as in model/trace.py
const TOLERANCES = { rows: 1e-6, masked: 0 };

// [{ name, error, holds }], of a run without changes: path -> { shape, values }, as Transformer.trace keeps them.
export function claims(kept) {
  const paths = [...kept.keys()].filter((path) => path.endsWith(".pattern")).map((path) => path.slice(0, -".pattern".length));
  const residuals = [...kept.keys()].filter((path) => path.endsWith("_residual.added")).map((path) => path.slice(0, -"_residual.added".length));
  const at = (path) => (name) => kept.get(`${path}.${name}`);
  const worst = (places, errorAt) => Math.max(...places.map((path) => errorAt(at(path), path)));
  const errors = {
    rows: worst(paths, sumsOfRows),
    masked: worst(paths, weightsOfMasked),
    scores: worst(paths, scoresAgain),
    values: worst(paths, mixturesAgain),
    sums: worst(residuals, (_, path) => {
      const [before, update, added] = [`${path}_residual.before`, `${path}.out`, `${path}_residual.added`].map((name) => kept.get(name).values);
      return difference(added, (cell) => before[cell] + update[cell]);
    }),
  };
  return Object.entries(errors).map(([name, error]) => ({ name, error, holds: error <= (TOLERANCES[name] ?? TOLERANCE) }));
}

// Each row of weights sums to 1.
function sumsOfRows(at) {
  const { values, shape: [heads, n, m] } = at("pattern");
  return difference(new Float64Array(heads * n).fill(1), (row) => sum(m, (key) => values[row * m + key]));
}

// What is masked has a weight of exactly 0.
function weightsOfMasked(at) {
  const mask = at("mask").values;
  return at("pattern").values.reduce((most, weight, cell) => (mask[cell] ? most : Math.max(most, weight)), 0);
}

// q . k of every query and every key.
function scoresAgain(at) {
  const { values: scores, shape: [, n, m] } = at("scores");
  const [q, k] = [at("q"), at("k")];
  const d = q.shape[2];
  return difference(scores, (cell) => {
    const [head, i, j] = [Math.floor(cell / (n * m)), Math.floor(cell / m) % n, cell % m];
    return sum(d, (c) => q.values[(head * n + i) * d + c] * k.values[(head * m + j) * d + c]);
  });
}

// The values, weighted and added up.
function mixturesAgain(at) {
  const { values: z, shape: [, n, d] } = at("z");
  const [pattern, v] = [at("pattern"), at("v")];
  const m = pattern.shape[2];
  return difference(z, (cell) => {
    const [head, i, c] = [Math.floor(cell / (n * d)), Math.floor(cell / d) % n, cell % d];
    return sum(m, (j) => pattern.values[(head * n + i) * m + j] * v.values[(head * m + j) * d + c]);
  });
}

function sum(count, term) {
  let all = 0;
  for (let index = 0; index < count; index += 1) all += term(index);
  return all;
}

function difference(shown, again) {
  let [error, largest] = [0, 1];
  for (let cell = 0; cell < shown.length; cell += 1) {
    error = Math.max(error, Math.abs(shown[cell] - again(cell)));
    largest = Math.max(largest, Math.abs(shown[cell]));
  }
  return error / largest;
}
