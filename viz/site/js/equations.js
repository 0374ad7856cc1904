// The matrices of each picture of the story: arrays of a run by hook path, with labels and ranges, as viz/steps/equations.py
// arranges them.

import { axis } from "./adapter.js";

export const KINDS = {
  encoder_self: { title: "Encoder self-attention", stack: "encoder", name: "self_attn", queries: "source", keys: "source" },
  decoder_self: { title: "Decoder self-attention", stack: "decoder", name: "self_attn", queries: "target", keys: "target" },
  cross: { title: "Cross-attention", stack: "decoder", name: "cross_attn", queries: "target", keys: "source" },
};
const NAMED = /^(?:(?:<0x..>)+|<\/?(?:s|pad|unk|mask|bos|eos|cls|sep)>|<\|[^|]+\|>|\[[A-Z]+\])$/;

// "The" begins a word, "-t" continues one (viz/tokens.py).
export function labels(pieces) {
  return pieces.map((piece) => {
    const continues = !piece.startsWith("\u2581") && !NAMED.test(piece) && /[\p{L}\p{N}]/u.test(piece);
    const word = piece.replace(/^\u2581/, "").replaceAll("\u2581", "\u2423") || "\u2423";
    return continues ? `-${visible(piece)}` : visible(word);
  });
}

function visible(text) {
  const code = (letter) => `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  return text.replace(/[\p{Cc}\p{Cf}\p{Cn}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, code);
}

function quoted(label) {
  return /[\p{L}\p{N}]/u.test(label) || label.length > 1 ? label : `“${label}”`;
}

// Names of the rows of a stack: of the decoder's what each reads and what it predicts, "Zwei → Männer".
export function rowNames({ source, target, next }, stack) {
  if (stack === "source") return labels(source);
  const predicts = labels(next);
  return labels(target).map((read, i) => `${quoted(read)} → ${quoted(predicts[i])}`);
}

// Path of an attention, "decoder.layers.2.cross_attn".
export function pathOf({ kind, layer }) {
  return `${KINDS[kind].stack}.layers.${layer}.${KINDS[kind].name}`;
}

// One head of a run as plain matrices. `run`: { arrays, tokens }; `weights`: w_q, b_q, ... of its attention, (out, in), or
// null for steps that show none.
export class Head {
  constructor(run, place, weights, { n_heads: heads, d_model }, colours) {
    const { queries, keys } = KINDS[place.kind];
    this.colours = colours;
    this.index = place.head;
    this.heads = heads;
    this.path = pathOf(place);
    this.arrays = run.arrays;
    this.weights = weights;
    this.crosses = place.kind === "cross";
    this.d_model = d_model;
    this.d_k = d_model / heads;
    this.queries = axis("query", "queries", rowNames(run.tokens, queries));
    this.keys = axis("key", "keys", labels(run.tokens[keys]));
    this.dimensions = axis("dimension", "dimensions of the head", this.d_k);
    this.model = axis("model", "dimensions of the model", this.d_model);
  }

  whole(path) {
    return this.arrays.get(path).values;
  }

  // This head's part of an array of the attention.
  part(name) {
    const all = this.whole(`${this.path}.${name}`);
    const size = all.length / this.heads;
    return all.subarray(this.index * size, (this.index + 1) * size);
  }

  // What queries are computed from, and what keys and values are.
  get before() {
    return this.whole(`${this.path}_residual.before`);
  }

  get memory() {
    return this.crosses ? this.whole("memory") : this.before;
  }

  get mask() {
    return this.part("mask");
  }

  get masked() {
    return this.part("scaled").map((score, cell) => (this.mask[cell] ? score : -Infinity));
  }

  get tau() {
    return this.part("temperature")[0];
  }

  // (d_model, d_k), as the formula has it.
  learned(name) {
    const size = this.d_k * this.d_model;
    return transposed(this.weights.get(`w_${name}`).subarray(this.index * size, (this.index + 1) * size), this.d_k, this.d_model);
  }

  bias(name) {
    return this.weights.get(`b_${name}`).subarray(this.index * this.d_k, (this.index + 1) * this.d_k);
  }

  matrixOfWeights(values = this.part("pattern"), more = {}) {
    return matrix("weights", values, this.queries, this.keys, [0, 1], { scale: "viridis", allowed: this.mask, ...more });
  }

  matrixOfMasked(more = {}) {
    return matrix("masked", this.masked, this.queries, this.keys, symmetric(this.part("scaled")), { allowed: this.mask, ...more });
  }
}

// The seven steps: head -> equations.
export const STEPS = [projection, scores, scaling, masking, softmaxStep, weightedSum, output];

function projection(h) {
  const parts = ["q", "k", "v"];
  const learned = robust(...parts.flatMap((name) => [h.learned(name), h.bias(name)]));
  return parts.map((name) => {
    const symbol = name.toUpperCase();
    const rows = name === "q" ? h.queries : h.keys;
    const x = name === "q" ? h.before : h.memory;
    const product = h.part(name);
    const colour = h.colours[symbol];
    return [
      matrix(h.crosses && name !== "q" ? "Y" : "X", x, rows, h.model, robust(x)), "×",
      matrix(`W_${symbol}`, h.learned(name), h.model, h.dimensions, learned, { colour, family: "W, b" }), "+",
      matrix(`b_${symbol}`, h.bias(name), axis("", "", 1), h.dimensions, learned, { colour, family: "W, b" }), "=",
      matrix(symbol, product, rows, h.dimensions, robust(product), { colour, result: true }),
    ];
  });
}

function scores(h) {
  const keys = transposed(h.part("k"), h.keys.size, h.d_k);
  const result = matrix("scores", h.part("scores"), h.queries, h.keys, symmetric(h.part("scores")), { result: true });
  const q = matrix("Q", h.part("q"), h.queries, h.dimensions, robust(h.part("q")), { colour: h.colours.Q });
  return [[q, "×", matrix("K^T", keys, h.dimensions, h.keys, robust(keys), { colour: h.colours.K }), "=", result]];
}

function scaling(h) {
  const range = symmetric(h.part("scores"));
  const result = matrix("scaled", h.part("scaled"), h.queries, h.keys, range, { result: true });
  return [[matrix("scores", h.part("scores"), h.queries, h.keys, range), `÷ ${Math.sqrt(h.d_k).toFixed(2)}`, "=", result]];
}

function masking(h) {
  const scaled = matrix("scaled", h.part("scaled"), h.queries, h.keys, symmetric(h.part("scaled")));
  const mask = matrix("mask", Float32Array.from(h.mask), h.queries, h.keys, [0, 1], { scale: "mask", allowed: h.mask });
  return [[scaled, "with", mask, "=", h.matrixOfMasked({ result: true })]];
}

// `values`: the weights at another temperature than the run's.
export function softmaxStep(h, values = h.part("pattern")) {
  return [["softmax (", h.matrixOfMasked(), "÷ τ )", "=", h.matrixOfWeights(values, { result: true })]];
}

function weightedSum(h) {
  const v = h.part("v");
  const z = h.part("z");
  const range = robust(v, z);
  const result = matrix(`z_${h.index}`, z, h.queries, h.dimensions, range, { result: true });
  return [[h.matrixOfWeights(), "×", matrix("V", v, h.keys, h.dimensions, range, { colour: h.colours.V }), "=", result]];
}

function output(h) {
  const z = h.whole(`${h.path}.z`);
  const concat = joined(z, h.heads, h.d_k);
  const w_o = transposed(h.weights.get("w_o"), h.d_model, h.d_model);
  const b_o = h.weights.get("b_o");
  const out = h.whole(`${h.path}.out`);
  const names = Array.from({ length: h.heads }, (_, head) => `head ${head}`);
  const blocks = { ...axis("", `dimensions: ${h.heads} × ${h.d_k}`, h.d_model), groups: names, lit: h.index };
  const learned = robust(w_o, b_o);
  return [[
    matrix("concat(z)", concat, h.queries, blocks, robust(concat)), "×",
    matrix("W_O", w_o, blocks, h.model, learned), "+",
    matrix("b_O", b_o, axis("", "", 1), h.model, learned), "=",
    matrix("out", out, h.queries, h.model, robust(out), { result: true }),
  ]];
}

// Embedding + position = what the encoder reads.
export function embeddings(run) {
  const rows = axis("query", "tokens", labels(run.tokens.source));
  const d_model = run.arrays.get("src_embedding.embedding").values.length / rows.size;
  const columns = axis("model", "dimensions of the model", d_model);
  const part = (symbol, name, more) => {
    const { values } = run.arrays.get(`src_embedding.${name}`);
    return matrix(symbol, values, rows, columns, robust(values), more);
  };
  return [[part("embedding √d_model", "embedding"), "+", part("position", "positional"), "=", part("sum", "sum", { result: true })]];
}

function matrix(symbol, values, rows, columns, [low, high], more = {}) {
  return { symbol, values, rows, columns, low, high, ...more };
}

// (-m, m) with m the largest magnitude.
function symmetric(values) {
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return [-largest || -1, largest || 1];
}

// The same, but a few outliers are clipped: the 99.5 % quantile of the magnitudes.
function robust(...arrays) {
  const sizes = new Float32Array(arrays.reduce((sum, { length }) => sum + length, 0));
  arrays.reduce((start, array) => {
    for (let i = 0; i < array.length; i += 1) sizes[start + i] = Math.abs(array[i]);
    return start + array.length;
  }, 0);
  sizes.sort();
  const place = 0.995 * (sizes.length - 1);
  const low = sizes[Math.floor(place)];
  const limit = low + (sizes[Math.min(Math.floor(place) + 1, sizes.length - 1)] - low) * (place % 1);
  return sizes.at(-1) > 1.5 * limit && limit > 0 ? [-limit, limit] : symmetric(sizes.subarray(-1));
}

function transposed(values, rows, columns) {
  const turned = new Float32Array(values.length);
  for (let i = 0; i < rows; i += 1) for (let j = 0; j < columns; j += 1) turned[j * rows + i] = values[i * columns + j];
  return turned;
}

// (head, position, width) -> (position, heads * width)
function joined(z, heads, width) {
  const n = z.length / heads / width;
  const concat = new Float32Array(z.length);
  for (let at = 0; at < z.length; at += 1) {
    const i = Math.floor(at / width) % n;
    concat[(i * heads + Math.floor(at / width / n)) * width + (at % width)] = z[at];
  }
  return concat;
}
