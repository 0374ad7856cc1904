// From logits to a translation: greedy decoding and beam search, as model/generation/search.py has them. Each is a
// generator that yields after every token, so that whoever runs it can show the prefix, or stop.

import { Cache, Run } from "./network.js";
import { BOS, EOS } from "./tokenizer.js";

export const ALPHA = 0.6; // of the length penalty, in the paper
const EXTRA_LENGTH = 50; // a translation may be at most this much longer than its source (section 6.1)
const N_BARRED = 3; // <pad>, <unk> and <s> are never written

// lp(Y) = ((5 + |Y|) / 6)^alpha, Wu et al. (2016), equation 14.
export function lengthPenalty(length, alpha) {
  return ((5 + length) / 6) ** alpha;
}

// Growing prefixes, and log p of the token that follows each of them.
class Steps {
  // `cached`: false computes the whole prefix anew at every step, for changes that depend on positions.
  constructor(model, source, { edits, cached = true }) {
    this.model = model;
    this.run = new Run({ edits });
    this.memory = model.encode(source, this.run);
    this.cache = cached ? new Cache(model, this.memory, this.run) : null;
    this.prefixes = [[BOS]];
    this.limit = Math.min(source.length + EXTRA_LENGTH, model.config.max_len - 1);
  }

  // Tokens written so far.
  get length() {
    return this.prefixes[0].length - 1;
  }

  // log p(next token) of each row, the softmax taken over the whole vocabulary; barred tokens have -Infinity. The arrays
  // are written over by the next step.
  next() {
    return this.logits().map((logits) => toLogProbabilities(logits).fill(-Infinity, 0, N_BARRED));
  }

  logits() {
    const { vocab_size } = this.model.config;
    if (!this.cache) return this.prefixes.map((prefix) => this.model.decode(prefix, this.memory, this.run).slice(-vocab_size));
    const newest = this.prefixes.map((prefix) => prefix.at(-1));
    const all = this.model.decodeNext(newest, this.cache, this.run);
    return newest.map((_, row) => all.subarray(row * vocab_size, (row + 1) * vocab_size));
  }

  // Appends one token to each of the prefixes `rows`, which may be chosen more than once.
  extend(tokens, rows) {
    this.prefixes = rows.map((row, i) => [...this.prefixes[row], tokens[i]]);
    this.cache?.reorder(rows);
  }
}

function toLogProbabilities(logits) {
  let largest = -Infinity;
  let sum = 0;
  for (let i = 0; i < logits.length; i += 1) if (logits[i] > largest) largest = logits[i];
  for (let i = 0; i < logits.length; i += 1) sum += Math.exp(logits[i] - largest);
  const shift = largest + Math.log(sum);
  for (let i = 0; i < logits.length; i += 1) logits[i] -= shift;
  return logits;
}

// The most probable token at every step. Yields { tokens }, the prefix; returns { tokens, logProbability }.
export function* greedy(model, source, options = {}) {
  const steps = new Steps(model, source, options);
  let logProbability = 0;
  for (;;) {
    const [following] = steps.next();
    let token = N_BARRED;
    for (let i = token; i < following.length; i += 1) if (following[i] > following[token]) token = i;
    logProbability += following[token];
    steps.extend([token], [0]);
    const tokens = steps.prefixes[0].slice(1);
    yield { tokens };
    if (token === EOS || steps.length >= steps.limit) return { tokens, logProbability };
  }
}

// Yields { tokens }, the best prefix; returns the best translations found, { tokens, logProbability, score }, best first.
// The paper: beam 4.
export function* beamSearch(model, source, { size = 4, alpha = ALPHA, ...options } = {}) {
  const finished = [];
  for (const { prefixes, candidates } of beamSteps(model, source, { size, ...options })) {
    for (const { row, token, logProbability, fate } of candidates) {
      if (fate !== "finished") continue;
      const tokens = [...prefixes[row], token];
      finished.push({ tokens, logProbability, score: logProbability / lengthPenalty(tokens.length, alpha) });
    }
    yield { tokens: [...prefixes[candidates[0].row], candidates[0].token] };
  }
  return finished.sort((one, other) => other.score - one.score).slice(0, size);
}

// The search itself, one step at a time. Yields the prefixes without <s>, and the 2 * size most probable candidates, best
// first, { row, token, logProbability, fate }. A fate is one of
//   kept: grows on; finished: ended, by </s> or at the length limit; pruned: not among the best;
//   left: among the best, but enough sentences were finished.
export function* beamSteps(model, source, { size = 4, ...options } = {}) {
  const steps = new Steps(model, source, options);
  let totals = [0];
  let missing = size;
  for (;;) {
    const candidates = mostProbable(steps.next(), totals, 2 * size);
    decide(candidates, missing, size, steps.length + 1 >= steps.limit);
    missing -= candidates.filter(({ fate }) => fate === "finished").length;
    yield { prefixes: steps.prefixes.map((prefix) => prefix.slice(1)), candidates };
    const kept = candidates.filter(({ fate }) => fate === "kept");
    if (!kept.length) return;
    totals = kept.map(({ logProbability }) => logProbability);
    steps.extend(kept.map(({ token }) => token), kept.map(({ row }) => row));
  }
}

// The `count` most probable pairs of a prefix and a token, best first.
function mostProbable(following, totals, count) {
  const best = [];
  following.forEach((logProbabilities, row) => {
    for (let token = N_BARRED; token < logProbabilities.length; token += 1) {
      const logProbability = totals[row] + logProbabilities[token];
      if (best.length === count && logProbability <= best[count - 1].logProbability) continue;
      if (best.length === count) best.pop();
      let place = best.length;
      while (place && best[place - 1].logProbability < logProbability) place -= 1;
      best.splice(place, 0, { row, token, logProbability });
    }
  });
  return best;
}

// Writes each candidate's fate. An end counts if it is among the first `size` candidates; of the others the first `size`
// are kept. The search is over when nothing is kept, or once `missing` more have finished.
function decide(candidates, missing, size, atLimit) {
  let growing = 0;
  for (const [rank, candidate] of candidates.entries()) {
    if (candidate.token === EOS) {
      candidate.fate = rank < size ? "finished" : "pruned";
      continue;
    }
    growing += 1;
    candidate.fate = growing > size ? "pruned" : atLimit ? "finished" : "kept";
  }
  if (candidates.filter(({ fate }) => fate === "finished").length < missing) return;
  for (const candidate of candidates) if (candidate.fate === "kept") candidate.fate = "left";
}

// What a search returns, run to its end at once.
export function finish(search) {
  for (;;) {
    const { done, value } = search.next();
    if (done) return value;
  }
}
