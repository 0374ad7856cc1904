// The Transformer of 2017, one equation a line, as model/network has it: encoder and decoder, both with post-norm.
// Every result passes a hook point with the path that it has in Python (`encoder.layers.0.self_attn.pattern`), where a
// run may change it and may keep it. Rows are positions, or the prefixes of a beam; arrays are row by row.

import { add, affine, dotProducts, joinHeads, layerNorm, softmax, splitHeads, weightedSums } from "./products.js";
import { BOS } from "./tokenizer.js";

const NORM_EPS = 1e-5;

// What one run keeps and changes. Unless it keeps them, the arrays of a step are written over by the next step.
export class Run {
  // `edits`: path -> list of { edit, reads }, as `editsOf` of interventions.js gives them; `keep`: all arrays, in `kept`.
  constructor({ edits = new Map(), keep = false } = {}) {
    this.edits = edits;
    this.kept = keep ? new Map() : null;
    this.read = new Set([...edits.values()].flat().map(({ reads }) => reads));
    this.earlier = new Map(); // path -> array, of the hook points that edits further on read
    this.buffers = new Map();
  }

  // The result at a hook point: `equation(out)` fills an array of this shape, and edits change it in place.
  point(path, shape, equation, Type = Float32Array) {
    const size = shape.reduce((product, side) => product * side, 1);
    const values = this.kept ? new Type(size) : this.buffer(path, size, Type);
    equation(values);
    for (const { edit, reads } of this.edits.get(path) ?? []) edit(values, shape, this.earlier.get(reads));
    if (this.read.has(path)) this.earlier.set(path, values);
    this.kept?.set(path, { shape, values });
    return values;
  }

  // An array for results that no later step reads: the same one each time, as long as it is large enough.
  buffer(name, size, Type = Float32Array) {
    if (!(this.buffers.get(name)?.length >= size)) this.buffers.set(name, new Type(this.buffers.has(name) ? 2 * size : size));
    return this.buffers.get(name).subarray(0, size);
  }
}

export class Transformer {
  // `config`: `model` of config.json; `weights`: of readSafetensors. Throws an Error for another network than the paper's.
  constructor(config, weights) {
    const { norm, positions, activation, tie_embeddings, d_model, n_heads, d_ff, vocab_size } = config;
    if (norm !== "post" || positions !== "sinusoidal" || activation !== "relu" || !tie_embeddings) {
      throw new Error("only the network of the paper can be run: post-norm, sinusoids, ReLU, tied embeddings");
    }
    if ([d_model, d_ff, vocab_size].some((size) => size % 4)) throw new Error("only sizes that divide by 4 can be run");
    this.config = config;
    this.d_k = d_model / n_heads;
    this.weights = weights;
    this.embeddings = weights.get("src_embedding.tokens.weight");
    this.sinusoids = sinusoids(config.max_len, d_model);
  }

  // The memory: (source position, d_model).
  encode(source, run) {
    const { n_heads, n_encoder_layers, d_model } = this.config;
    const n = source.length;
    const everything = (mask) => mask.fill(1);
    let x = this.embed("src_embedding", source, (i) => i, run);
    for (let layer = 0; layer < n_encoder_layers; layer += 1) {
      const path = `encoder.layers.${layer}`;
      x = this.residual(`${path}.self_attn`, x, run, (x) => this.attention(`${path}.self_attn`, x, x, everything, run));
      x = this.residual(`${path}.feed_forward`, x, run, (x) => this.feedForward(`${path}.feed_forward`, x, run));
    }
    return run.point("memory", [n, d_model], (out) => out.set(x));
  }

  // Logits (target position, vocabulary) of each next token, all positions at once.
  decode(target, memory, run) {
    const { n_decoder_layers } = this.config;
    const n = target.length;
    const everything = (mask) => mask.fill(1);
    const upToQuery = (mask) => mask.forEach((_, cell) => (mask[cell] = Number(cell % n <= Math.floor(cell / n) % n)));
    let x = this.embed("tgt_embedding", target, (i) => i, run);
    for (let layer = 0; layer < n_decoder_layers; layer += 1) {
      const path = `decoder.layers.${layer}`;
      x = this.residual(`${path}.self_attn`, x, run, (x) => this.attention(`${path}.self_attn`, x, x, upToQuery, run));
      x = this.residual(`${path}.cross_attn`, x, run, (x) => this.attention(`${path}.cross_attn`, x, memory, everything, run));
      x = this.residual(`${path}.feed_forward`, x, run, (x) => this.feedForward(`${path}.feed_forward`, x, run));
    }
    return this.output(x, run);
  }

  // One cached step: logits (row, vocabulary) after one more token in each row; all stand at the same position.
  decodeNext(tokens, cache, run) {
    const { n_decoder_layers } = this.config;
    let x = this.embed("tgt_embedding", tokens, () => cache.length, run);
    for (let layer = 0; layer < n_decoder_layers; layer += 1) {
      const path = `decoder.layers.${layer}`;
      x = this.residual(`${path}.self_attn`, x, run, (x) => {
        cache.append(layer, this.keysAndValues(`${path}.self_attn`, x, run));
        return this.attend(`${path}.self_attn`, x, cache.own(layer), (mask) => mask.fill(1), run);
      });
      x = this.residual(`${path}.cross_attn`, x, run, (x) =>
        this.attend(`${path}.cross_attn`, x, cache.ofMemory(layer), (mask) => mask.fill(1), run),
      );
      x = this.residual(`${path}.feed_forward`, x, run, (x) => this.feedForward(`${path}.feed_forward`, x, run));
    }
    cache.length += 1;
    return this.output(x, run);
  }

  // Embedding(token) sqrt(d_model) + PE(position), sections 3.4 and 3.5; row i stands at `position(i)`.
  embed(path, tokens, position, run) {
    const { d_model } = this.config;
    const shape = [tokens.length, d_model];
    const scale = Math.sqrt(d_model);
    const rowsOf = (table, index) => (out) => out.forEach((_, at) => (out[at] = table[index(Math.floor(at / d_model)) * d_model + (at % d_model)]));
    const embedding = run.point(`${path}.embedding`, shape, (out) => {
      rowsOf(this.embeddings, (i) => tokens[i])(out);
      for (let at = 0; at < out.length; at += 1) out[at] *= scale;
    });
    const positional = run.point(`${path}.positional`, shape, rowsOf(this.sinusoids, position));
    return run.point(`${path}.sum`, shape, (out) => add(embedding, positional, out));
  }

  // LayerNorm(x + Sublayer(x)), section 3.1.
  residual(path, x, run, sublayer) {
    const shape = [x.length / this.config.d_model, this.config.d_model];
    const { gamma, beta } = this.norm(`${path}_residual.norm`);
    const before = run.point(`${path}_residual.before`, shape, (out) => out.set(x));
    const update = sublayer(before);
    const added = run.point(`${path}_residual.added`, shape, (out) => add(before, update, out));
    return run.point(`${path}_residual.normed`, shape, (out) => layerNorm(added, gamma, beta, NORM_EPS, out));
  }

  // Attention from each position of `x` to the positions of `source` that `mask` allows, all computed anew.
  attention(path, x, source, mask, run) {
    const { k, v } = this.keysAndValues(path, source, run);
    return this.attend(path, x, { keys: () => k, values: () => v, m: k.length }, mask, run);
  }

  // K = source W_K + b_K and V = source W_V + b_V: a vector (heads * d_k) for each position.
  keysAndValues(path, source, run) {
    const { n_heads, d_model } = this.config;
    const shape = [n_heads, source.length / d_model, this.d_k];
    const project = (name) => run.point(`${path}.${name}`, shape, (out) => splitHeads(this.linear(`${path}.w_${name}`, source, run), n_heads, this.d_k, out));
    const vectors = (split) => {
      const joined = new Float32Array(split.length); // not a buffer: a cache keeps them
      joinHeads(split, n_heads, this.d_k, joined);
      return Array.from({ length: shape[1] }, (_, i) => joined.subarray(i * d_model, (i + 1) * d_model));
    };
    return { k: vectors(project("k")), v: vectors(project("v")) };
  }

  // Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, equation 1, step by step, all heads at once.
  attend(path, x, { keys, values, m }, allow, run) {
    const { n_heads, d_model } = this.config;
    const { d_k } = this;
    const n = x.length / d_model;
    const vectors = [n_heads, n, d_k];
    const square = [n_heads, n, m];
    const q = run.point(`${path}.q`, vectors, (out) => splitHeads(this.linear(`${path}.w_q`, x, run), n_heads, d_k, out));
    const scores = run.point(`${path}.scores`, square, (out) => dotProducts(q, keys, square, d_k, out));
    const mask = run.point(`${path}.mask`, square, allow, Uint8Array);
    const scaled = run.point(`${path}.scaled`, square, (out) => scores.forEach((score, cell) => (out[cell] = score / Math.sqrt(d_k))));
    const masked = run.point(`${path}.masked`, square, (out) => scaled.forEach((score, cell) => (out[cell] = mask[cell] ? score : -Infinity)));
    const tau = run.point(`${path}.temperature`, [n_heads, 1, 1], (out) => out.fill(1));
    const pattern = run.point(`${path}.pattern`, square, (out) => softmax(masked, tau, square, out));
    const z = run.point(`${path}.z`, vectors, (out) => weightedSums(pattern, values, square, d_k, out));
    const concat = run.buffer("concat", x.length);
    joinHeads(z, n_heads, d_k, concat);
    return run.point(`${path}.out`, [n, d_model], (out) => this.project(`${path}.w_o`, concat, out));
  }

  // FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation 2.
  feedForward(path, x, run) {
    const { d_model, d_ff } = this.config;
    const n = x.length / d_model;
    const read = this.linear(`${path}.w_1`, x, run);
    const hidden = run.point(`${path}.hidden`, [n, d_ff], (out) => read.forEach((value, at) => (out[at] = Math.max(0, value))));
    return run.point(`${path}.out`, [n, d_model], (out) => this.project(`${path}.w_2`, hidden, out));
  }

  // The tied embeddings again: x E^T.
  output(x, run) {
    const { d_model, vocab_size } = this.config;
    const n = x.length / d_model;
    const final = run.point("final", [n, d_model], (out) => out.set(x));
    return run.point("logits", [n, vocab_size], (out) => affine(final, this.embeddings, null, d_model, out));
  }

  // x W^T + b in a buffer, for whoever reads it at once.
  linear(name, x, run) {
    const { length } = this.weights.get(`${name}.bias`);
    const out = run.buffer(`linear ${length}`, (x.length / this.widthInto(name)) * length);
    this.project(name, x, out);
    return out;
  }

  project(name, x, out) {
    affine(x, this.weights.get(`${name}.weight`), this.weights.get(`${name}.bias`), this.widthInto(name), out);
  }

  widthInto(name) {
    return this.weights.get(`${name}.weight`).length / this.weights.get(`${name}.bias`).length;
  }

  norm(name) {
    return { gamma: this.weights.get(`${name}.weight`), beta: this.weights.get(`${name}.bias`) };
  }

  // One teacher-forced run with everything inside: path -> { shape, values }. `target` ends with </s>.
  trace(source, target, edits) {
    const run = new Run({ edits, keep: true });
    const memory = this.encode(source, run);
    this.decode([BOS, ...target.slice(0, -1)], memory, run);
    return run.kept;
  }
}

// Keys and values that the decoder has already projected: of each row's growing target, and once of the memory. A row's
// are lists of vectors, so that a beam is reordered by copying lists.
export class Cache {
  constructor(model, memory, run) {
    const layers = Array.from({ length: model.config.n_decoder_layers }, (_, layer) => layer);
    this.length = 0; // positions that it holds
    this.rows = layers.map(() => [{ k: [], v: [] }]);
    this.memory = layers.map((layer) => model.keysAndValues(`decoder.layers.${layer}.cross_attn`, memory, run));
  }

  // Gives each row the key and the value of its newest token.
  append(layer, { k, v }) {
    this.rows[layer].forEach((row, i) => {
      row.k.push(k[i]);
      row.v.push(v[i]);
    });
  }

  own(layer) {
    const rows = this.rows[layer];
    return { keys: (i) => rows[i].k, values: (i) => rows[i].v, m: rows[0].k.length };
  }

  ofMemory(layer) {
    const { k, v } = this.memory[layer];
    return { keys: () => k, values: () => v, m: k.length };
  }

  // Keeps only these rows, in this order; a row may be chosen more than once.
  reorder(chosen) {
    this.rows = this.rows.map((rows) => chosen.map((row) => ({ k: [...rows[row].k], v: [...rows[row].v] })));
  }
}

// PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i+1) = cos of the same, section 3.5: (length, d_model).
function sinusoids(length, d_model) {
  return Float32Array.from({ length: length * d_model }, (_, at) => {
    const position = Math.floor(at / d_model);
    const c = at % d_model;
    const angle = position * 10_000 ** (-(c - (c % 2)) / d_model);
    return c % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}
