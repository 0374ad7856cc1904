// Changes to a run, with the names and fields of model/interventions: { type, ...fields }; a field left out means all.
// Each acts at its own hook points, in place; at the same point they compose in the order given.

const KINDS = { encoder_self: ["encoder", "self_attn"], decoder_self: ["decoder", "self_attn"], cross: ["decoder", "cross_attn"] };
const SUBLAYERS = { encoder: ["self_attn", "feed_forward"], decoder: ["self_attn", "cross_attn", "feed_forward"] };
const EMBEDDINGS = { source: "src_embedding", target: "tgt_embedding" };
const LIMITS = [1e-30, 1e30]; // of a temperature

// What model.interventions has and this page has not, and why; a test compares both lists with Python's.
export const MISSING = {
  Patch: "another text would have to run first",
  FrozenPattern: "weights of another run do not fit into a link",
  "PermutedAttention.seed": "its shuffling is defined by 64-bit hashes; an order can be given",
};

// `fields` beyond the address, those with a * must be given; `cached`: whether a cached step, which computes one query
// at a time, is changed in the same way; `edits`: list of [path, edit(values, shape, earlier), path that it reads].
const TYPES = {
  // softmax(x / tau) instead of softmax(x). Several temperatures multiply.
  AttentionTemperature: {
    fields: ["tau*", "kind", "layer", "head"],
    cached: () => true,
    edits: (change, model) => inAttentions("temperature", change, model, (tau) => {
      tau[0] = Math.min(Math.max(tau[0] * change.tau, LIMITS[0]), LIMITS[1]);
    }),
  },
  // softmax(q k^T) instead of softmax(q k^T / sqrt(d_k)).
  Unscaled: {
    fields: ["kind", "layer", "head"],
    cached: () => true,
    edits: (change, model) => inAttentions("scaled", change, model, (scaled) => multiply(scaled, Math.sqrt(model.d_k))),
  },
  // z times `gate`: 0 removes a head. With mode "mean" its mean over the sentence takes the place of what is removed; in
  // the decoder the mean up to the query's own position.
  HeadGate: {
    fields: ["gate*", "mode", "kind", "layer", "head"],
    cached: ({ mode = "zero" }) => mode === "zero",
    edits: ({ gate, mode = "zero", ...address }, model) => inAttentions("z", address, model, (z, [n, d_v], _, path) => {
      if (mode === "mean") (path.startsWith("encoder.") ? gateToMean : gateToMeanSoFar)(z, n, d_v, gate);
      else multiply(z, gate);
    }),
  },
  // Heads of a group share keys and values: the mean of theirs (Ainslie et al. 2023, section 2.1).
  SharedKeysValues: {
    fields: ["groups*", "kind", "layer"],
    cached: () => true,
    edits: ({ groups, ...address }, model) => {
      if (model.config.n_heads % groups) throw new Error(tr("{heads} heads cannot be divided into {groups} groups of the same size", { heads: model.config.n_heads, groups }));
      const share = (vectors, shape) => shareInGroups(vectors, shape, groups);
      return attentionPaths(address, model).flatMap((path) => [[`${path}.k`, share], [`${path}.v`, share]]);
    },
  },
  // Values of these key positions become 0: they keep their weights and contribute nothing.
  ValueZeroing: {
    fields: ["positions*", "kind", "layer", "head"],
    cached: ({ kind }) => kind === "encoder_self" || kind === "cross",
    edits: ({ positions, ...address }, model) => inAttentions("v", address, model, (v, [, d_v]) => {
      for (const position of positions) v.fill(0, position * d_v, (position + 1) * d_v);
    }),
  },
  // Single cells (query, key), forbidden or allowed before the softmax.
  MaskEdit: {
    fields: ["forbid", "allow", "kind", "layer", "head"],
    cached: ({ kind, allow = [] }) => kind === "encoder_self" && !allow.length,
    edits: ({ forbid = [], allow = [], ...address }, model) => inAttentions("mask", address, model, (mask, [n, m]) => {
      const put = (cells, seen) => cells.forEach(([query, key]) => query < n && key < m && (mask[query * m + key] = seen));
      put(forbid, 0);
      put(allow, 1);
    }),
  },
  // Hides these source positions from every query, in the encoder, in cross-attention, or in both.
  ForbidSource: {
    fields: ["positions*", "kind", "layer", "head"],
    cached: () => true,
    edits: ({ positions, ...address }, model) => inAttentions("mask", address, model, (mask, [n, m]) => {
      for (const position of positions) if (position < m) for (let i = 0; i < n; i += 1) mask[i * m + position] = 0;
    }, { kinds: ["encoder_self", "cross"] }),
  },
  // Sparse self-attention: keeps the keys of one of these patterns, and the query itself, as model/network/masks.py does.
  PatternMask: {
    fields: ["window", "stride", "global_tokens", "block", "kind", "layer"],
    cached: () => false,
    edits: ({ window, stride, global_tokens = [], block, ...address }, model) => {
      if (!window && !stride && !block && !global_tokens.length) throw new Error(tr("a pattern needs a window, a stride, global tokens or a block"));
      const kept = (i, j) => i === j
        || (window && Math.abs(i - j) < window)
        || (stride && (i - j) % stride === 0)
        || (block && Math.floor(i / block) === Math.floor(j / block))
        || global_tokens.includes(i) || global_tokens.includes(j);
      const edit = (mask, [, m]) => mask.forEach((_, cell) => kept(Math.floor(cell / m), cell % m) || (mask[cell] = 0));
      return inAttentions("mask", address, model, edit, { kinds: ["encoder_self", "decoder_self"] });
    },
  },
  // Each decoder row sees all target tokens, the later ones included.
  LiftCausalMask: {
    fields: ["layer"],
    cached: () => false,
    edits: (change, model) => inAttentions("mask", change, model, (mask, [n, m]) => {
      for (let j = 0; j < m; j += 1) {
        const any = mask.some((seen, cell) => seen && cell % m === j);
        for (let i = 0; i < n; i += 1) mask[i * m + j] = Number(any);
      }
    }, { kinds: ["decoder_self"] }),
  },
  // Row `query` gets these weights, key 0 first, normalised over its visible keys; keys beyond them get 0.
  PatternEdit: {
    fields: ["query*", "weights*", "kind", "layer", "head"],
    cached: () => false,
    edits: ({ query, weights, ...address }, model) => inAttentions("pattern", address, model, (pattern, [n, m], mask) => {
      if (query >= n) return;
      const largest = Math.max(...weights);
      const seen = Array.from({ length: m }, (_, key) => (mask[query * m + key] && key < weights.length ? weights[key] / largest : 0));
      const total = seen.reduce((sum, weight) => sum + weight, 0);
      if (total > 0) pattern.set(seen.map((weight) => weight / total), query * m);
    }, { reads: "mask" }),
  },
  // 1 / n for each of the n keys that a query may see.
  UniformAttention: {
    fields: ["kind", "layer", "head"],
    cached: () => true,
    edits: (change, model) => inAttentions("pattern", change, model, (pattern, [n, m], mask) => {
      for (let i = 0; i < n; i += 1) {
        const seen = mask.subarray(i * m, (i + 1) * m);
        const count = seen.reduce((sum, one) => sum + one, 0);
        pattern.set(Array.from(seen, (one) => one / Math.max(count, 1)), i * m);
      }
    }, { reads: "mask" }),
  },
  // Key k of every row gets the weight of key order[k]; a row that cannot see all of these keys stays as it is.
  PermutedAttention: {
    fields: ["order*", "kind", "layer", "head"],
    cached: () => true,
    edits: ({ order, ...address }, model) => inAttentions("pattern", address, model, (pattern, [n, m], mask) => {
      if (order.length > m) return;
      for (let start = 0; start < n * m; start += m) {
        const row = pattern.slice(start, start + m);
        if (order.every((_, key) => mask[start + key])) pattern.set(order.map((key) => row[key]), start);
      }
    }, { reads: "mask" }),
  },
  // No positional encoding is added on this side.
  PositionsOff: {
    fields: ["side"],
    cached: () => true,
    edits: ({ side }) => embeddingPaths(side).map((path) => [`${path}.positional`, (positional) => positional.fill(0)]),
  },
  // Position i gets the positional encoding of position order[i].
  PositionsShuffled: {
    fields: ["order*", "side"],
    cached: ({ side = "source" }) => side === "source",
    edits: ({ order, side = "source" }, { sinusoids, config: { d_model, max_len } }) => {
      if (order.length > max_len) throw new Error(tr("the order has {count} positions; the model has {most}", { count: order.length, most: max_len }));
      const shuffle = (positional, [n]) => {
        positional.set(sinusoids.subarray(0, n * d_model));
        order.slice(0, n).forEach((position, i) => positional.set(sinusoids.subarray(position * d_model, (position + 1) * d_model), i * d_model));
      };
      return embeddingPaths(side).map((path) => [`${path}.positional`, shuffle]);
    },
  },
  // The sub-layer's output becomes 0: LayerNorm(x + 0).
  SublayerOff: {
    fields: ["stack", "layer", "name"],
    cached: () => true,
    edits: (change, model) => sublayerPaths(change, model).map((path) => [`${path}.out`, (out) => out.fill(0)]),
  },
  // No residual connection: LayerNorm(Sublayer(x)).
  ResidualOff: {
    fields: ["stack", "layer", "name"],
    cached: () => true,
    edits: (change, model) => sublayerPaths(change, model).map((path) => [`${path}_residual.added`, (added, _, out) => added.set(out), `${path}.out`]),
  },
  // No norm: x + Sublayer(x).
  NormOff: {
    fields: ["stack", "layer", "name"],
    cached: () => true,
    edits: (change, model) => sublayerPaths(change, model).map((path) => [`${path}_residual.normed`, (normed, _, added) => normed.set(added), `${path}_residual.added`]),
  },
};

// Type -> names of its fields; those that must be given end with *.
export const FIELDS = Object.fromEntries(Object.entries(TYPES).map(([type, { fields }]) => [type, fields]));

// Path -> list of { edit, reads }, as a Run of network.js takes them. Throws an Error with a sentence where a change is
// not one of these, or has no place in the model.
export function editsOf(changes, model) {
  const edits = new Map();
  for (const change of changes) {
    check(change);
    for (const [path, edit, reads] of TYPES[change.type].edits(change, model)) {
      edits.set(path, [...(edits.get(path) ?? []), { edit, reads }]);
    }
  }
  return edits;
}

// Whether decoding may keep keys and values from step to step.
export function areCached(changes) {
  return changes.every((change) => TYPES[change.type].cached(change));
}

// An edit of each addressed attention at one of its points, head by head: edit(values, shape without heads, earlier, path).
function inAttentions(point, { kind, layer, head }, model, edit, { kinds = Object.keys(KINDS), reads } = {}) {
  const addressed = { kind: kind ?? null, layer, head };
  return attentionPaths(addressed, model, kinds).map((path) => {
    const inEachHead = (values, [heads, ...shape], earlier) => {
      for (let h = head ?? 0; h <= (head ?? heads - 1); h += 1) {
        const part = (all) => all?.subarray((h * all.length) / heads, ((h + 1) * all.length) / heads);
        edit(part(values), shape, part(earlier), path);
      }
    };
    return [`${path}.${point}`, inEachHead, reads && `${path}.${reads}`];
  });
}

function attentionPaths({ kind, layer, head }, { config }, kinds = Object.keys(KINDS)) {
  const paths = kinds.filter((each) => (kind ?? each) === each && (head ?? 0) < config.n_heads).flatMap((each) => {
    const [stack, name] = KINDS[each];
    return layersOf(stack, layer, config).map((number) => `${stack}.layers.${number}.${name}`);
  });
  if (!paths.length) throw new Error(tr("the model has no such attention: {place}", { place: JSON.stringify({ kind, layer, head }) }));
  return paths;
}

function sublayerPaths({ stack, layer, name }, { config }) {
  const paths = Object.entries(SUBLAYERS).filter(([each]) => (stack ?? each) === each).flatMap(([each, names]) =>
    layersOf(each, layer, config).flatMap((number) => names.filter((one) => (name ?? one) === one).map((one) => `${each}.layers.${number}.${one}`)),
  );
  if (!paths.length) throw new Error(tr("the model has no such sub-layer: {place}", { place: JSON.stringify({ stack, layer, name }) }));
  return paths;
}

function layersOf(stack, layer, config) {
  return Array.from({ length: config[`n_${stack}_layers`] }, (_, number) => number).filter((number) => (layer ?? number) === number);
}

function embeddingPaths(side) {
  return Object.entries(EMBEDDINGS).filter(([each]) => (side ?? each) === each).map(([, path]) => path);
}

function multiply(values, factor) {
  for (let i = 0; i < values.length; i += 1) values[i] *= factor;
}

// gate z + (1 - gate) mean(z) for a head's z, (position, d_v).
function gateToMean(z, n, d_v, gate) {
  for (let c = 0; c < d_v; c += 1) {
    let sum = 0;
    for (let i = 0; i < n; i += 1) sum += z[i * d_v + c];
    for (let i = 0; i < n; i += 1) z[i * d_v + c] = gate * z[i * d_v + c] + ((1 - gate) * sum) / n;
  }
}

function gateToMeanSoFar(z, n, d_v, gate) {
  for (let c = 0; c < d_v; c += 1) {
    let sum = 0;
    for (let i = 0; i < n; i += 1) {
      sum += z[i * d_v + c];
      z[i * d_v + c] = gate * z[i * d_v + c] + ((1 - gate) * sum) / (i + 1);
    }
  }
}

function shareInGroups(vectors, [heads, n, width], groups) {
  const together = heads / groups;
  for (let first = 0; first < heads; first += together) {
    for (let at = 0; at < n * width; at += 1) {
      let sum = 0;
      for (let h = first; h < first + together; h += 1) sum += vectors[h * n * width + at];
      for (let h = first; h < first + together; h += 1) vectors[h * n * width + at] = sum / together;
    }
  }
}

const isPosition = (value) => Number.isInteger(value) && value >= 0;
const arePositions = (values) => Array.isArray(values) && values.every(isPosition);
const areCells = (cells) => Array.isArray(cells) && cells.every((cell) => arePositions(cell) && cell.length === 2);
const isSize = (value) => isPosition(value) && value > 0;
const isOneOf = (...names) => (value) => names.includes(value);
const CHECKS = {
  tau: (tau) => typeof tau === "number" && tau >= LIMITS[0] && tau <= LIMITS[1],
  gate: (gate) => typeof gate === "number" && gate >= 0 && gate <= 1,
  mode: isOneOf("zero", "mean"),
  groups: isSize,
  positions: arePositions,
  forbid: areCells,
  allow: areCells,
  window: isSize,
  stride: isSize,
  block: isSize,
  global_tokens: arePositions,
  query: isPosition,
  weights: (weights) => Array.isArray(weights) && weights.every((weight) => Number.isFinite(weight) && weight >= 0) && weights.some(Boolean),
  order: (order) => arePositions(order) && order.every((_, i) => order.includes(i)),
  kind: isOneOf(...Object.keys(KINDS)),
  stack: isOneOf("encoder", "decoder"),
  name: isOneOf("self_attn", "cross_attn", "feed_forward"),
  side: isOneOf("source", "target"),
  layer: isPosition,
  head: isPosition,
};

function check({ type, ...values }) {
  if (!Object.hasOwn(TYPES, type)) throw new Error(tr("this page has no change {type}; it has {names}", { type: JSON.stringify(type), names: Object.keys(TYPES).join(", ") }));
  const names = FIELDS[type].map((field) => field.replace("*", ""));
  const lacking = FIELDS[type].filter((field) => field.endsWith("*")).map((field) => field.slice(0, -1)).find((field) => values[field] === undefined);
  if (lacking) throw new Error(tr("{type} lacks its {lacking}", { type, lacking }));
  for (const [name, value] of Object.entries(values)) {
    if (!names.includes(name)) throw new Error(tr("{type} takes no {name} in this page; it takes {names}", { type, name, names: names.join(", ") }));
    if (value !== null && !CHECKS[name](value)) throw new Error(tr("{type} cannot have {name}={value}", { type, name, value: JSON.stringify(value) }));
  }
}
