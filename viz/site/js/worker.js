// The model in a thread of its own. A question is { id, ask, topic, ... }; an answer { id, answer }, { id, error } or, if a
// newer question of the same topic or a new sentence came first, { id, superseded: true }. Without a topic it is what is
// asked. Translations send { id, progress } after each token.

import { transpose } from "./products.js";
import { readSafetensors } from "./safetensors.js";
import { BOS, EOS, Tokenizer } from "./tokenizer.js";
import { Transformer } from "./network.js";
import { ALPHA, beamSearch, beamSteps, greedy, lengthPenalty } from "./decoding.js";
import { areCached, editsOf } from "./interventions.js";
import { boxArrays, predictions } from "./boxes.js";
import { claims } from "./proof.js";

const MOST_TOKENS = 256; // of a source, as in the app

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

  // One teacher-forced run: every array by hook path, the pieces that each stack reads and predicts, and log p of the
  // target in nats, as trained and with the changes. The arrays move to the page; they are not copied.
  async trace({ source, target, changes }) {
    const kept = this.model.trace(source, target, editsOf(changes, this.model));
    const rows = predictions(kept.get("logits"), target);
    const boxes = boxArrays(kept, this.model.config, rows);
    const buffers = [...kept.values(), ...Object.values(boxes)].map(({ values }) => values.buffer);
    const pieces = (ids) => this.tokenizer.tokens(ids);
    const tokens = { source: pieces(source), target: pieces([BOS, ...target.slice(0, -1)]), next: pieces(target) };
    const candidates = rows.map(({ candidates }) => candidates.map(([id, probability]) => [pieces([id])[0], probability]));
    const after = logProbability(rows);
    const score = { before: changes.length ? this.asTrained(source, target) : after, after };
    return { answer: { arrays: { ...Object.fromEntries(kept), ...inputsOf(kept), ...boxes }, tokens, candidates, score }, buffers };
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
    const turned = (name, cut, shape) => {
      const values = new Float32Array(d_model * d_model);
      transpose(at(`${name}.weight`), cut, values);
      return { values, shape };
    };
    const found = { w_o: turned("w_o", [1, d_model, d_model], [heads, d_k, d_model]), b_o: { values: at("w_o.bias").slice(), shape: [d_model] } };
    for (const name of ["q", "k", "v"]) {
      found[`w_${name}`] = turned(`w_${name}`, [heads, d_k, d_model], [heads, d_model, d_k]);
      found[`b_${name}`] = { values: at(`w_${name}.bias`).slice(), shape: [heads, d_k] };
    }
    const answer = Object.fromEntries(Object.entries(found).map(([name, array]) => [`${path}.${name}`, array]));
    return { answer, buffers: Object.values(found).map(({ values }) => values.buffer) };
  }

  idsOf(text) {
    const source = [...this.tokenizer.encode(text), EOS];
    if (source.length > MOST_TOKENS) throw new Error(tr("This text has {count} tokens; up to {most} can be translated here.", { count: source.length, most: MOST_TOKENS }));
    return source;
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

// What each attention computes its queries from, and its keys and values: under the names of Python's trace.
function inputsOf(kept) {
  const paths = [...kept.keys()].filter((path) => path.endsWith(".pattern")).map((path) => path.slice(0, -".pattern".length));
  return Object.fromEntries(paths.flatMap((path) => {
    const before = kept.get(`${path}_residual.before`);
    return [[`${path}.query_input`, before], [`${path}.key_input`, path.endsWith("cross_attn") ? kept.get("memory") : before]];
  }));
}

// In a thread of its own, and not where a test imports this file.
if (globalThis.WorkerGlobalScope) {
  const answers = new Answers((message, buffers = []) => globalThis.postMessage(message, buffers));
  globalThis.onmessage = ({ data }) => answers.receive(data);
}
