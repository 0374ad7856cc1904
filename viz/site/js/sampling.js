// Sampling, as model/generation/sampling.py has it: the same seed draws the tokens that torch draws.

import { Steps } from "./decoding.js";
import { EOS } from "./tokenizer.js";

// Probabilities after temperature, then top-k, then top-p, renormalised after each; of log p or of logits.
export function samplingDistribution(logits, { temperature = 1, topK = 0, topP = 1 }) {
  const largest = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
  const p = Float64Array.from(logits, (logit) => Math.exp((logit - largest) / temperature));
  const renormalise = () => {
    const sum = p.reduce((all, each) => all + each, 0);
    p.forEach((each, i) => (p[i] = each / sum));
  };
  renormalise();
  if (!topK && topP === 1) return p;
  const order = Array.from(p.keys()).sort((a, b) => p[b] - p[a] || a - b);
  if (topK) {
    for (const i of order.slice(topK)) p[i] = 0;
    renormalise();
  }
  let before = 0; // a token stays while those before it have less than topP
  if (topP < 1) {
    for (const i of order) {
      const own = p[i];
      if (before >= topP) p[i] = 0;
      before += own;
    }
  }
  renormalise();
  return p;
}

// torch.Generator of a CPU: MT19937.
export class Generator {
  constructor(seed) {
    this.state = new Uint32Array(624);
    this.state[0] = seed;
    for (let i = 1; i < 624; i += 1) this.state[i] = Math.imul(1812433253, this.state[i - 1] ^ (this.state[i - 1] >>> 30)) + i;
    this.at = 624;
  }

  next() {
    const { state } = this;
    if (this.at === 624) {
      for (let i = 0; i < 624; i += 1) {
        const y = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7fffffff);
        state[i] = state[(i + 397) % 624] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      this.at = 0;
    }
    let y = state[this.at];
    this.at += 1;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }
}

// torch.multinomial(p, 1): the largest p / e, each e drawn from Exp(1) with 53 bits of the generator.
export function draw(p, generator) {
  let best = 0;
  let most = -1;
  for (let i = 0; i < p.length; i += 1) {
    const u = ((generator.next() & 0x1fffff) * 2 ** 32 + generator.next()) / 2 ** 53;
    const score = p[i] / -Math.log1p(-u);
    if (score > most) [best, most] = [i, score];
  }
  return best;
}

// Yields { tokens }; returns them, without </s>, as LanguageModel.continue_text has them. `skip`: draws that the seed has
// made before, so that a text in several parts is the text in one.
export function* sample(model, prompt, { seed = 0, temperature, topK, topP, skip = 0, ...options } = {}) {
  const steps = new Steps(model, prompt, options);
  const generator = new Generator(seed);
  for (let i = 0; i < 2 * skip * model.config.vocab_size; i += 1) generator.next();
  const tokens = () => steps.prefixes[0].slice(steps.begin);
  while (steps.length < steps.limit) {
    const token = draw(samplingDistribution(steps.next()[0], { temperature, topK, topP }), generator);
    if (token === EOS) return { tokens: tokens() };
    steps.extend([token], [0]);
    yield { tokens: tokens() };
  }
  return { tokens: tokens() };
}
