// Figure 1 in numbers: what each box of the model does to every token, as model/analysis/stream/whole_model.py has it.
// Lengths are Euclidean, entropies in bits, log p in nats; all in double precision, from a run's arrays by hook path.

const SUBLAYERS = { encoder: ["self_attn", "feed_forward"], decoder: ["self_attn", "cross_attn", "feed_forward"] };
const EMBEDDINGS = { encoder: "src_embedding", decoder: "tgt_embedding" };
const MOST_CANDIDATES = 5; // of a row

// Path -> { shape: [value, position], values }: `decoder.1.cross_attn.values` and so on, the values in Python's order.
export function boxArrays(kept, { d_model, n_encoder_layers, n_decoder_layers }, rows) {
  const boxes = new Map();
  const lengthsAt = (path) => lengths(kept.get(path));
  for (const [stack, layers] of [["encoder", n_encoder_layers], ["decoder", n_decoder_layers]]) {
    const [embedding, added, sum] = ["embedding", "positional", "sum"].map((name) => lengthsAt(`${EMBEDDINGS[stack]}.${name}`));
    boxes.set(`${stack}.embedding`, [embedding.map((length) => length / Math.sqrt(d_model)), embedding]);
    boxes.set(`${stack}.positions`, [embedding, added, sum]);
    for (let layer = 0; layer < layers; layer += 1) {
      for (const name of SUBLAYERS[stack]) {
        const path = `${stack}.layers.${layer}.${name}`;
        const [before, sum, after] = ["before", "added", "normed"].map((point) => lengthsAt(`${path}_residual.${point}`));
        const update = lengthsAt(`${path}.out`);
        const share = update.map((length, i) => length / (before[i] + length));
        const inside = name === "feed_forward" ? ofFeedForward(kept, path) : ofAttention(kept, path);
        boxes.set(`${stack}.${layer}.${name}`, [before, update, share, ...inside]);
        boxes.set(`${stack}.${layer}.${name}.add_norm`, [before, update, sum, share, after]);
      }
    }
  }
  const logits = lengthsAt("logits");
  boxes.set("decoder.output", [lengthsAt("final"), rows.map(({ largest }) => largest), rows.map(({ text }) => text), logits]);
  boxes.set("decoder.softmax", [logits, ...["best", "probability", "entropy", "nats"].map((name) => rows.map((row) => row[name]))]);
  return Object.fromEntries([...boxes].map(([name, values]) => {
    return [`${name}.values`, { shape: [values.length, values[0].length], values: Float32Array.from(values.flat()) }];
  }));
}

// What the output says at each position about the next token, `target`; `candidates`: [id, probability], the best first.
export function predictions({ values, shape: [, size] }, target) {
  return target.map((token, i) => {
    const logits = values.subarray(i * size, (i + 1) * size);
    const largest = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
    const shares = Float64Array.from(logits, (logit) => Math.exp(logit - largest));
    const sum = shares.reduce((all, share) => all + share, 0);
    const probabilities = shares.map((share) => share / sum);
    const nats = logits[token] - largest - Math.log(sum);
    const candidates = best(probabilities).map((id) => [id, probabilities[id]]);
    return { largest, text: logits[token], best: 1 / sum, probability: probabilities[token], entropy: entropy(probabilities), nats, candidates };
  });
}

// Of each query: lengths of its joined q and z, mean length of keys and values, where its largest weight is.
function ofAttention(kept, path) {
  const at = (name) => kept.get(`${path}.${name}`);
  const { values, shape: [heads, n, m] } = at("pattern");
  const largest = Array.from({ length: n }, () => ({ head: 0, key: 0, weight: -1 }));
  const bits = new Array(n).fill(0);
  for (let head = 0; head < heads; head += 1) {
    for (let i = 0; i < n; i += 1) {
      const row = values.subarray((head * n + i) * m, (head * n + i + 1) * m);
      row.forEach((weight, key) => weight > largest[i].weight && (largest[i] = { head, key, weight }));
      bits[i] += entropy(row) / heads;
    }
  }
  const everywhere = (name) => {
    const each = joined(at(name));
    return new Array(n).fill(each.reduce((sum, length) => sum + length, 0) / each.length);
  };
  const where = ["head", "key", "weight"].map((name) => largest.map((one) => one[name]));
  return [joined(at("q")), everywhere("k"), everywhere("v"), ...where, bits, joined(at("z"))];
}

function ofFeedForward(kept, path) {
  const { values, shape: [n, d_ff] } = kept.get(`${path}.hidden`);
  const active = Array.from({ length: n }, (_, i) => values.subarray(i * d_ff, (i + 1) * d_ff).filter((number) => number > 0).length);
  return [lengths({ values, shape: [n, d_ff] }), active];
}

// ||x|| of each row.
function lengths({ values, shape: [n, width] }) {
  return Array.from({ length: n }, (_, i) => Math.sqrt(values.subarray(i * width, (i + 1) * width).reduce((sum, x) => sum + x * x, 0)));
}

// The same of vectors (head, position, d_k) whose heads stand side by side.
function joined({ values, shape: [heads, n, width] }) {
  const sums = new Array(n).fill(0);
  for (let at = 0; at < heads * n * width; at += 1) sums[Math.floor(at / width) % n] += values[at] * values[at];
  return sums.map(Math.sqrt);
}

function entropy(probabilities) {
  return Math.max(probabilities.reduce((sum, p) => (p > 0 ? sum - p * Math.log2(p) : sum), 0), 0);
}

// Indices of the largest, the largest first.
function best(probabilities) {
  const found = [];
  for (let rank = 0; rank < Math.min(MOST_CANDIDATES, probabilities.length); rank += 1) {
    let next = -1;
    probabilities.forEach((p, id) => !found.includes(id) && (next < 0 || p > probabilities[next]) && (next = id));
    found.push(next);
  }
  return found;
}
