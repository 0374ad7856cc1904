// The model in a thread of its own. A question is { id, ask, topic, ... }; an answer { id, answer }, { id, error } or, if a
// newer question of the same topic or a new sentence came first, { id, superseded: true }. Without a topic it is what is
// asked. Whatever writes sends { id, progress } after each token.

import { share, transpose } from "./products.js";
import { readSafetensors } from "./safetensors.js";
import { BOS, EOS, Tokenizer } from "./tokenizer.js";
import { Transformer } from "./network.js";
import { ALPHA, Steps, beamSearch, beamSteps, greedy, lengthPenalty } from "./decoding.js";
import { sample, samplingDistribution } from "./sampling.js";
import { areCached, editsOf } from "./interventions.js";
import { boxArrays, predictions } from "./boxes.js";
import { claims } from "./proof.js";

const MOST_TOKENS = 256; // of a source, as in the app, and of all that a language model reads here
const MOST_NEXT = 12; // candidates that are listed

const SENTENCE = "sentence"; // topic of a new sentence, which every question about the old one gives way to
const OF_THE_MODEL = ["load", "weights"]; // questions about no sentence

class Superseded extends Error {}

function topicOf({ ask, topic }) {
  return topic ?? ask;
}

export class Answers {
  // `send(message, buffers)` reaches the page.
  constructor(send) {
    this.send = send;
    this.queue = [];
    this.newest = new Map(); // topic -> id of the newest question
    this.working = false;
  }

  async receive(question) {
    this.newest.set(topicOf(question), question.id);
    this.queue.push(question);
    if (this.working) return;
    this.working = true;
    while (this.queue.length) await this.reply(this.queue.shift());
    this.working = false;
  }

  async reply(question) {
    const { id, ask } = question;
    try {
      if (this.isSuperseded(question)) throw new Superseded();
      const { answer, buffers = [] } = await this[ask](question);
      this.send({ id, answer }, buffers);
    } catch (error) {
      this.send(error instanceof Superseded ? { id, superseded: true } : { id, error: error.message });
    }
  }

  isSuperseded(question) {
    const { ask, id } = question;
    const sentence = OF_THE_MODEL.includes(ask) ? -1 : (this.newest.get(SENTENCE) ?? -1);
    return this.newest.get(topicOf(question)) !== id || id < sentence;
  }

  // `weights` and `vocabulary`: ArrayBuffers of model.safetensors and tokenizer.model; `config`: `model` of config.json.
  async load({ weights, vocabulary, config }) {
    this.model = new Transformer(config, readSafetensors(weights));
    this.tokenizer = new Tokenizer(new Uint8Array(vocabulary));
    return { answer: {} };
  }

  // A line of text, translated under these changes.
  async translate(question) {
    const { text, beam, changes } = question;
    const source = this.idsOf(text);
    const options = { edits: editsOf(changes, this.model), cached: areCached(changes), size: beam };
    const search = beam > 1 ? beamSearch(this.model, source, options) : greedy(this.model, source, options);
    const value = await this.carryOut(search, question);
    const { tokens, logProbability } = beam > 1 ? value[0] : value;
    return { answer: { source, tokens, logProbability, text: this.tokenizer.decode(tokens) } };
  }

  // The tree of a beam search: for each step the prefixes and the candidates, with their scores and texts.
  async tree(question) {
    const { text, beam, changes } = question;
    const steps = [];
    const options = { edits: editsOf(changes, this.model), cached: areCached(changes), size: beam };
    const search = beamSteps(this.model, this.idsOf(text), options);
    for (let { done, value } = search.next(); !done; { done, value } = search.next()) {
      for (const candidate of value.candidates) candidate.score = candidate.logProbability / lengthPenalty(steps.length + 1, ALPHA);
      steps.push(value);
      await this.pause(question);
    }
    const ids = steps.flatMap(({ candidates }) => candidates.map(({ token }) => token));
    return { answer: { steps, pieces: Object.fromEntries(ids.map((id) => [id, this.tokenizer.tokens([id])[0]])) } };
  }

  // A text that goes on, greedily where `drawn` has a temperature of 0, else as its seed draws. From `text`, or from `ids`
  // of which the first `count` are a person's. Answers with all ids, <s> first, and both parts as text.
  async write(question) {
    const { text, ids = this.promptOf(text), count = ids.length, drawn, changes } = question;
    const most = Math.min(question.most, MOST_TOKENS - ids.length);
    if (question.most && most < 1) throw new Error(tr("There is no room for another token: {most} can be read here.", { most: MOST_TOKENS }));
    const options = { edits: editsOf(changes, this.model), cached: areCached(changes), most };
    const search = drawn.temperature ? sample(this.model, ids, { ...options, ...drawn, skip: ids.length - count }) : greedy(this.model, ids, options);
    const { tokens } = most ? await this.carryOut(search, question) : { tokens: [] };
    const all = [...ids, ...tokens.filter((token) => token !== EOS)];
    const prompt = this.tokenizer.decode(all.slice(0, count));
    return { answer: { ids: all, count, prompt, written: this.tokenizer.decode(all).slice(prompt.length), ended: tokens.at(-1) === EOS } };
  }

  // What may follow: the most probable tokens, each with its probability of the model and of the draw.
  async next({ ids, drawn, changes }) {
    const steps = new Steps(this.model, ids, { edits: editsOf(changes, this.model), cached: areCached(changes) });
    const [logs] = steps.next();
    const shares = samplingDistribution(logs, { ...drawn, temperature: drawn.temperature || 1 });
    const order = Array.from(logs.keys()).sort((one, other) => logs[other] - logs[one]);
    const candidates = order.slice(0, MOST_NEXT).map((id) => {
      return { id, piece: this.tokenizer.tokens([id])[0], model: Math.exp(logs[id]), drawn: drawn.temperature ? shares[id] : Math.exp(logs[id]) };
    });
    const count = drawn.temperature ? shares.reduce((sum, share) => sum + Number(share > 0), 0) : 1;
    return { answer: { candidates, count, all: logs.length, text: this.tokenizer.decode(ids) } };
  }

  // One teacher-forced run: every array by hook path, the pieces that each stack reads and predicts, and log p of the
  // target in nats, as trained and with the changes. The arrays move to the page; they are not copied.
  async trace({ source, target, changes }) {
    const kept = this.model.trace(source, target, editsOf(changes, this.model));
    const rows = predictions(kept.get("logits"), target);
    const boxes = boxArrays(kept, this.model.config, rows);
    const buffers = [...kept.values(), ...Object.values(boxes)].map(({ values }) => values.buffer);
    const pieces = (ids) => this.tokenizer.tokens(ids);
    const tokens = { source: pieces(source ?? []), target: pieces([BOS, ...target.slice(0, -1)]), next: pieces(target) };
    const candidates = rows.map(({ candidates }) => candidates.map(([id, probability]) => [pieces([id])[0], probability]));
    const after = logProbability(rows);
    const score = { before: changes.length ? this.asTrained(source, target) : after, after };
    return { answer: { arrays: { ...Object.fromEntries(kept), ...inputsOf(kept, this.model), ...boxes }, tokens, candidates, score }, buffers };
  }

  // log p of the target without changes; of one sentence it is computed once.
  asTrained(source, target) {
    const key = `${source} | ${target}`;
    if (this.trained?.key !== key) this.trained = { key, nats: logProbability(predictions(this.model.trace(source, target).get("logits"), target)) };
    return this.trained.nats;
  }

  // The claims, of the run without changes.
  async prove({ source, target }) {
    return { answer: claims(this.model.trace(source, target)) };
  }

  // Learned arrays of the attention at `path`, by hook path, cut into its heads.
  async weights({ path }) {
    const { n_heads: heads, d_model } = this.model.config;
    const { d_k } = this.model;
    const at = (name) => this.model.weights.get(`${path}.${name}`);
    const bias = (name, size) => at(`${name}.bias`)?.slice() ?? new Float32Array(size);
    const turned = (name, cut, shape) => {
      const values = new Float32Array(at(`${name}.weight`).length);
      transpose(at(`${name}.weight`), cut, values);
      return { values, shape };
    };
    const found = { w_o: turned("w_o", [1, d_model, d_model], [heads, d_k, d_model]), b_o: { values: bias("w_o", d_model), shape: [d_model] } };
    for (const name of ["q", "k", "v"]) {
      const own = name === "q" ? heads : this.model.headsOf(path);
      const given = (values, shape) => ({ values: shared(values, own, heads), shape });
      found[`w_${name}`] = given(turned(`w_${name}`, [own, d_k, d_model], []).values, [heads, d_model, d_k]);
      found[`b_${name}`] = given(bias(`w_${name}`, own * d_k), [heads, d_k]);
    }
    const answer = Object.fromEntries(Object.entries(found).map(([name, array]) => [`${path}.${name}`, array]));
    return { answer, buffers: Object.values(found).map(({ values }) => values.buffer) };
  }

  idsOf(text) {
    const source = [...this.tokenizer.encode(text), EOS];
    if (source.length > MOST_TOKENS) throw new Error(tr("This text has {count} tokens; up to {most} can be translated here.", { count: source.length, most: MOST_TOKENS }));
    return source;
  }

  promptOf(text) {
    const ids = [BOS, ...this.tokenizer.encode(text)];
    if (ids.length > MOST_TOKENS) throw new Error(tr("This text has {count} tokens; up to {most} can be read here.", { count: ids.length, most: MOST_TOKENS }));
    return ids;
  }

  async carryOut(search, question) {
    for (;;) {
      const { done, value } = search.next();
      if (done) return value;
      this.send({ id: question.id, progress: this.tokenizer.decode(value.tokens) });
      await this.pause(question);
    }
  }

  // Lets newer questions arrive; throws Superseded if one did.
  async pause(question) {
    await new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(null);
    });
    if (this.isSuperseded(question)) throw new Superseded();
  }
}

function logProbability(rows) {
  return rows.reduce((sum, { nats }) => sum + nats, 0);
}

// What each attention computes its queries from, and its keys and values, and both before RoPE: under the names of
// Python's trace.
function inputsOf(kept, { config: { norm, n_heads } }) {
  const paths = [...kept.keys()].filter((path) => path.endsWith(".pattern")).map((path) => path.slice(0, -".pattern".length));
  return Object.fromEntries(paths.flatMap((path) => {
    const read = kept.get(`${path}_residual.${norm === "pre" ? "normed" : "before"}`);
    const before = ["q", "k"].filter((name) => kept.has(`${path}.${name}_pre`)).map((name) => {
      const { values, shape: [heads, n, d_k] } = kept.get(`${path}.${name}_pre`);
      return [`${path}.rotary.${name}`, { values: shared(values, heads, n_heads), shape: [n_heads, n, d_k] }];
    });
    return [[`${path}.query_input`, read], [`${path}.key_input`, path.endsWith("cross_attn") ? kept.get("memory") : read], ...before];
  }));
}

function shared(values, few, heads) {
  if (few === heads) return values;
  const out = new Float32Array((values.length / few) * heads);
  share(values, few, heads, out);
  return out;
}

// In a thread of its own, and not where a test imports this file.
if (globalThis.WorkerGlobalScope) {
  const answers = new Answers((message, buffers = []) => globalThis.postMessage(message, buffers));
  globalThis.onmessage = ({ data }) => answers.receive(data);
}
