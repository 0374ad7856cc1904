// The page: a recorded run first, then the model on one's own sentence. A story of steps, one picture leading each, and
// below it all heads and changes.

import { widened } from "./half.js";
import { decoderRows, labels } from "./labels.js";
import { Failure, isMetered, load, tooLittleMemory } from "./loading.js";
import { Thread } from "./thread.js";
import { inMiniature } from "./miniature.js";
import { keyPlane } from "./plane.js";

const at = (id) => document.getElementById(id);
const words = JSON.parse(at("words").textContent);
const { config, kinds, headers } = words;
const range = (count) => Array.from({ length: count }, (_, index) => index);
const layersOf = (kind) => range(kinds[kind].paths.length);
const pathOf = ({ kind, layer }) => kinds[kind].paths[layer]; // of an attention, "decoder.layers.2.cross_attn"

class NotRecorded extends Error {}

// Arrays by hook path.
function recordedArrays({ described, bytes }) {
  const letters = atob(bytes);
  const all = Uint8Array.from(letters, (letter) => letter.charCodeAt(0)).buffer;
  const Types = { f4: Float32Array, f2: Uint16Array, bits: Uint8Array };
  let place = 0;
  const read = ([path, type, shape]) => {
    const size = shape.reduce((product, side) => product * side, 1);
    const sent = new Types[type](all, place, type === "bits" ? Math.ceil(size / 8) : size);
    place += 4 * Math.ceil(sent.byteLength / 4);
    const values = { f4: () => sent, f2: () => widened(sent), bits: () => Uint8Array.from({ length: size }, (_, at) => (sent[at >> 3] >> (at & 7)) & 1) };
    return [path, { shape, values: values[type]() }];
  };
  return Object.fromEntries(described.map(read));
}

const { described, bytes, ...recorded } = JSON.parse(at("recording").textContent);

const state = {
  // A run as the pictures take it: { text, translation, source, target: ids, tokens: pieces, candidates: the most
  // probable of each row, score: log p, changes, arrays by hook path }.
  run: { ...recorded, changes: [], arrays: recordedArrays({ described, bytes }) },
  place: { ...words.place },
  learned: {}, // arrays of the attention at `path`, which the model gave
  changes: [],
  made: false, // whether somebody here made changes; until then they are of the link
  chosen: { query: words.query, key: 0, dimension: 0, model: 0 },
  at: ["decoder.softmax", 1, 1], // box of the whole model, position in each stack
  step: 0, // the step of the story that is on screen
  part: 4, // of the seven steps of a head, below the story
  whole: false, // whether all of the page has come, with what is recorded of a head
  live: false,
  link: null, // what the address says of all this
  waiting: null, // what was typed before the model is here
  translating: false,
  drawing: false, // whether pictures are being drawn
  printing: false, // whether the page goes on paper
};
let thread = null;
const whole = new Promise((resolve) => (document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", resolve) : resolve()));

// --- pictures ------------------------------------------------------------------------------------------------------

const PICTURES = {
  "model-picture": wholeModel,
  "tokens-picture": tokenBoxes,
  "positions-picture": positions,
  "projections-picture": () => headStep(0),
  "scores-picture": () => headStep(1),
  "division-picture": () => headStep(2),
  "mask-picture": () => headStep(3, { ...state.place, ...maskPlace() }),
  "softmax-picture": liveWeights,
  "values-picture": () => headStep(5),
  "output-picture": () => headStep(6),
  "heads-picture": allHeads,
  "lines-picture": lines,
  "beam-picture": beamTree,
  "part-picture": () => headStep(state.part),
  "move-picture": moveQuery,
  "map-picture": headMap,
};

const FIRST = "model-picture";

// The mask that hides something is the decoder's own.
function maskPlace() {
  return state.place.kind === "decoder_self" ? {} : { kind: "decoder_self" };
}

// A picture of matrices: its header from Python, completed.
function matrices(fixed, arrays, { query, key, ...more }) {
  const last = { query: query.length - 1, key: key.length - 1 };
  const chosen = Object.fromEntries(Object.keys(fixed.chosen).map((axis) => [axis, Math.min(state.chosen[axis], last[axis] ?? Infinity)]));
  return { component: "matrices", data: { header: { ...fixed, chosen, labels: { query, key }, ...more }, arrays } };
}

// Figure 1 with this run's numbers; a switch in it is a change to the run.
function wholeModel() {
  const { run } = state;
  const { source, target, next } = run.tokens;
  const sizes = { encoder: source.length, decoder: target.length };
  const boxes = headers.model.boxes.map((box) => {
    const [n, m] = [sizes[box.stack], sizes[box.part === "cross_attn" ? "encoder" : box.stack]];
    const cells = [n, m].map((size) => Math.min(size, words.cells));
    return { ...box, work: workOf(box, n, m), heads: box.heads && { ...box.heads, queries: n, keys: m, cells } };
  });
  const small = boxes.filter(({ heads }) => heads).map(({ heads: { array } }) => {
    return [array, inMiniature(run.arrays[array], run.arrays[array.replace(/pattern$/, "mask")], words.cells)];
  });
  const shown = run.candidates.map((row) => row.map(([piece, probability]) => [labels([piece])[0], probability]));
  const rows = headers.model.rows.map((row) => ({
    ...row,
    tokens: labels(row.name === "encoder" ? source : target),
    predicts: row.name === "encoder" ? null : labels(next),
    candidates: row.name === "encoder" ? [] : shown,
  }));
  const changes = run.changes.map(textOf);
  const off = boxes.filter(({ part, sublayer }) => part === sublayer || part === "positions").map(({ name, switches }) => {
    return [name, Object.keys(switches).filter((each) => changes.includes(switches[each]))];
  });
  const [box, ...places] = state.at;
  const header = {
    ...headers.model,
    boxes,
    rows,
    ...run.score,
    chosen: { box, positions: Object.fromEntries(rows.map(({ name }, i) => [name, Math.min(places[i], sizes[name] - 1)])) },
    memory: meanLength(run.arrays, boxes.findLast(({ stack }) => stack === "encoder")),
    changes: changes.filter(isSwitch),
    off: Object.fromEntries(off.filter(([, names]) => names.length)),
    alone: {},
  };
  return { component: "whole_model", data: { header, arrays: { ...run.arrays, ...Object.fromEntries(small) } }, key: state.live ? "page" : undefined };
}

// Multiply-adds of matrix products, of all tokens together.
function workOf({ part, heads }, n, m) {
  const { d_model, d_ff, vocab_size } = config;
  if (heads) return 2 * d_model * d_model * (n + m) + 2 * d_model * n * m;
  return { feed_forward: 2 * d_model * d_ff * n, output: d_model * vocab_size * n }[part] ?? 0;
}

// Of the vectors that come out of a box.
function meanLength(arrays, { name, values }) {
  const { values: numbers, shape: [, n] } = arrays[`${name}.values`];
  const row = values.indexOf("out");
  return numbers.subarray(row * n, (row + 1) * n).reduce((sum, length) => sum + length, 0) / n;
}

// A change as it stands in the list of a link, and back.
function textOf({ type, ...fields }) {
  return JSON.stringify([type, fields]);
}

function readChanges(text) {
  const list = JSON.parse(text || "[]");
  if (!Array.isArray(list)) throw new SyntaxError();
  return list.map(([type, fields]) => ({ type: String(type), ...fields }));
}

function isSwitch(text) {
  return headers.model.boxes.some(({ switches }) => Object.values(switches).includes(text));
}

// The source's tokens as buttons: Python's HTML of one box, filled in for each.
function tokenBoxes() {
  const { source, tokens } = state.run;
  const template = document.createElement("template");
  template.innerHTML = headers.tokens;
  const box = template.content.querySelector("[role=listitem]");
  box.replaceWith(...labels(tokens.source).map((label, position) => {
    const node = box.cloneNode(true);
    const button = node.querySelector("button");
    const chosen = position === sourceToken();
    button.dataset.position = position;
    button.classList.toggle("chosen", chosen);
    button.setAttribute("aria-pressed", String(chosen));
    button.setAttribute("aria-label", `${label}, ${source[position]}`);
    node.querySelector("bdi").textContent = label;
    node.querySelector("small").textContent = source[position];
    return node;
  }));
  return { component: "chips", data: { html: template.innerHTML } };
}

function positions() {
  const { arrays, tokens } = state.run;
  return matrices(headers.positions, arrays, { query: labels(tokens.source), key: [] });
}

async function headStep(part, place = state.place) {
  const fixed = headers.steps[place.kind][part];
  const { run } = state;
  const arrays = await arraysOf(fixed.arrays, place, run);
  const { queries, keys } = kinds[place.kind];
  const notes = { query: queries === "target" ? decoderRows(run.tokens, words.quotes) : [] };
  const facts = { ...fixed.facts, head: place.head };
  const more = { path: pathOf(place), title: nameOf(place), facts, notes };
  return matrices(fixed, arrays, { query: labels(run.tokens[queries]), key: labels(run.tokens[keys]), ...more });
}

// The run's arrays, with those that a head needs of the model; throws NotRecorded where one has to wait for it.
async function arraysOf(names, place, { arrays }) {
  const path = pathOf(place);
  const isThere = (all) => (name) => all[`${path}.${name}`] ?? all[`${path}.${name}[${place.head}]`];
  if (names.every(isThere(arrays))) return arrays;
  if (!state.live) throw new NotRecorded(path);
  const all = { ...arrays, ...(await weightsOf(path)) };
  if (!names.every(isThere(all))) throw new NotRecorded(path);
  return all;
}

// The weights, drawn again while the slider in the picture moves; where it rests, the run itself is made with it.
async function liveWeights() {
  const { run, place } = state;
  const path = pathOf(place);
  const arrays = await arraysOf(["pattern", "mask", "scaled", "temperature"], place, run);
  const { queries, keys } = numbered(place);
  const tau = arrays[`${path}.temperature`].values[place.head];
  const header = {
    ...headers.softmax,
    path,
    title: nameOf(place),
    facts: { head: place.head },
    labels: { query: queries, key: keys },
    notes: { query: kinds[place.kind].queries === "target" ? decoderRows(run.tokens, words.quotes) : [] },
    temperature: headers.softmax.taus.find((each) => Math.fround(each) === tau) ?? tau,
    row: Math.min(state.chosen.query, queries.length - 1),
    changes: run.changes.filter((change) => !setsTemperature(change)).length,
  };
  return { component: "temperature", data: { header, arrays } };
}

// The keys of a head in a plane, and its queries, which can be moved in it.
async function moveQuery() {
  const { run, place } = state;
  const path = pathOf(place);
  const arrays = await arraysOf(["q", "k", "v", "z", "scores", "scaled", "pattern", "mask", "temperature"], place, run);
  const at = (name) => arrays[`${path}.${name}`];
  // Scores may be undivided here; the largest says it most exactly.
  const scores = at("scores").values.subarray(...ofHead(at("scores"), place.head));
  const largest = scores.reduce((best, score, cell) => (Math.abs(score) > Math.abs(scores[best]) ? cell : best), 0);
  const scale = scores[largest] ? at("scaled").values[ofHead(at("scores"), place.head)[0] + largest] / scores[largest] : 1;
  const { arrays: plane, ...found } = keyPlane(at("q"), at("k"), place.head, scale);
  const header = {
    ...headers.move,
    ...found,
    ...numbered(place),
    scale,
    path,
    title: nameOf(place),
    head: place.head,
    row: Math.min(state.chosen.query, at("pattern").shape[1] - 1),
    temperature: at("temperature").values[place.head],
  };
  return { component: "move_query", data: { header, arrays: { ...arrays, ...plane } } };
}

// One head on a map that can be moved and enlarged, as for long texts; its queries are its keys.
function headMap() {
  const { run, chosen } = state;
  const { layer, head } = state.place;
  const kind = state.place.kind === "decoder_self" ? "decoder_self" : "encoder_self";
  const place = { kind, layer: Math.min(layer, layersOf(kind).length - 1), head };
  const [pattern, mask] = ["pattern", "mask"].map((name) => run.arrays[`${pathOf(place)}.${name}`]);
  const n = pattern.shape[1];
  const row = Math.min(chosen.query, n - 1);
  const [first, end] = ofHead(pattern, head);
  const values = pattern.values.slice(first, end).map((weight, cell) => (mask.values[first + cell] ? weight : NaN));
  const weights = pattern.values.slice(first + row * n, first + (row + 1) * n);
  const tokens = labels(run.tokens[kinds[kind].keys]);
  return { component: "long_map", data: { header: { ...headers.map, title: nameOf(place), tokens, row }, arrays: { map: { values, shape: [n, n] }, row: { values: weights, shape: [n] } } } };
}

// Where a head begins and ends in an array of all heads.
function ofHead({ values, shape: [heads] }, head) {
  const size = values.length / heads;
  return [head * size, (head + 1) * size];
}

// The names of queries and keys, each with its position.
function numbered({ kind }) {
  const { queries, keys } = kinds[kind];
  const named = (pieces) => labels(pieces).map((label, i) => `${i} ${label}`);
  return { queries: named(state.run.tokens[queries]), keys: named(state.run.tokens[keys]) };
}

function lines() {
  const { arrays, tokens } = state.run;
  const { place } = state;
  const { queries, keys } = kinds[place.kind];
  const predicts = queries === "target" ? labels(tokens.next) : null;
  const more = { path: pathOf(place), title: nameOf(place), shown: [place.head], queries: labels(tokens[queries]), keys: labels(tokens[keys]), predicts };
  return { component: "lines", data: { header: { ...headers.lines[place.kind], ...more }, arrays } };
}

function allHeads() {
  const { arrays, tokens } = state.run;
  const { kind, layer, head } = state.place;
  const groups = headers.heads.groups.map((group) => ({ ...group, queries: rowNames(group.kind), keys: labels(tokens[kinds[group.kind].keys]) }));
  return { component: "mosaic", data: { header: { ...headers.heads, groups, chosen: [kind, layer, head] }, arrays } };
}

// Of the decoder's rows what each reads and predicts.
function rowNames(kind) {
  const { tokens } = state.run;
  return kinds[kind].queries === "target" ? decoderRows(tokens, words.quotes) : labels(tokens.source);
}

async function beamTree() {
  if (!state.live) throw new NotRecorded("the search");
  const answer = await thread.ask("tree", { text: state.run.text, beam: words.beam, changes: state.changes });
  return answer && { component: "beam_tree", data: treeData(answer) };
}

// What the beam_tree component takes (viz/canvas/beam_tree.py): a node for each candidate of each step.
function treeData({ steps, pieces }) {
  const nodes = [];
  let parents = [-1];
  for (const [step, { candidates }] of steps.entries()) {
    const first = nodes.length;
    candidates.forEach(({ row, token, logProbability, score, fate }, rank) => {
      const parent = parents[row];
      nodes.push({ step, rank, parent, label: labels([pieces[token]])[0], fate, token: logProbability - (nodes[parent]?.total ?? 0), total: logProbability, score });
    });
    parents = range(nodes.length).filter((index) => index >= first && nodes[index].fate === "kept");
  }
  const ranked = range(nodes.length).filter((index) => nodes[index].fate === "finished");
  ranked.sort((one, other) => nodes[other].score - nodes[one].score);
  const path = [];
  for (let node = ranked[0]; node >= 0; node = nodes[node].parent) path.unshift(node);
  return { ...headers.beam, nodes, winner: path, chosen: path, ranked: ranked.slice(0, words.beam) };
}

// The learned arrays of an attention; several pictures wait for the same ones.
function weightsOf(path) {
  if (state.learned.path !== path) state.learned = { path, arrays: thread.ask("weights", { path, topic: path }) };
  return state.learned.arrays;
}

// Draws what is on screen, and the rest when it comes there; what leaves it does not hold its pixels.
const visible = new Set();
const stale = new Set(Object.keys(PICTURES));
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) visible.add(target.id);
    else {
      visible.delete(target.id);
      letGo(target);
    }
  }
  drawVisible();
}, { rootMargin: "200px" });

function redraw(ids = Object.keys(PICTURES)) {
  for (const id of ids) stale.add(id);
  drawVisible();
}

// One after another, each in a frame of its own, so that the page stays at hand.
async function drawVisible() {
  if (state.drawing) return;
  state.drawing = true;
  for (let id = nextToDraw(); id; id = nextToDraw()) {
    stale.delete(id);
    draw(id); // what asks the model first does not hold up the others
    await nextFrame();
  }
  state.drawing = false;
}

// Paper has every picture but those that wait for an answer of the model.
function print() {
  if (!state.whole) return;
  state.printing = true;
  for (const id of stale) {
    stale.delete(id);
    draw(id);
  }
}

function printed() {
  state.printing = false;
  for (const id of Object.keys(PICTURES)) if (!visible.has(id)) letGo(at(id));
}

// After the browser has painted; while nobody sees the page it paints nothing.
function nextFrame() {
  return new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
}

// Of the pictures that are not drawn the one nearest to the screen. The first picture does not wait for what the others
// need.
function nextToDraw() {
  const missing = [...visible].filter((id) => stale.has(id) && (state.whole || id === FIRST) && (state.live || !at(id).classList.contains("waits")));
  const distances = missing.map((id) => {
    const { top, bottom } = at(id).getBoundingClientRect();
    return Math.max(top - innerHeight, -bottom, 0);
  });
  return missing[distances.indexOf(Math.min(...distances))];
}

async function draw(id) {
  const host = at(id);
  try {
    const picture = await PICTURES[id]();
    if (picture && (visible.has(id) || state.printing)) mount(host, picture);
    else stale.add(id); // a newer question came first, or it has left the screen
    host.classList.remove("waits");
  } catch (error) {
    host.classList.add("waits");
    if (!(error instanceof NotRecorded)) note(tr("A picture could not be drawn: {error}", { error: error.message }));
    else if (!state.live) stale.add(id);
  }
}

function mount(host, { component, data, key }) {
  if (!host.shadowRoot) host.attachShadow({ mode: "open" }).innerHTML = window.components[component].html;
  const send = (event, value) => ON[event]?.(value, host.id);
  const before = host.shadowRoot.querySelectorAll("canvas");
  window.components[component].mount({ parentElement: host.shadowRoot, data, key, setTriggerValue: send, setStateValue() {} });
  // What the picture has replaced would hold its pixels until the browser's next cleaning.
  for (const canvas of before) if (!canvas.isConnected) canvas.width = 0;
  if (!performance.getEntriesByName("first-picture").length) performance.mark("first-picture");
}

// Frees the canvases of a picture, which keep their places; it is drawn again when it comes back.
function letGo({ id, shadowRoot }) {
  for (const canvas of shadowRoot?.querySelectorAll("canvas") ?? []) {
    if (!canvas.style.height) continue; // of a legend: a few pixels, drawn once
    canvas.width = canvas.height = 0;
    stale.add(id);
  }
}

const ON = {
  move(at) {
    moveTo(at);
    sayToken();
    redraw(["tokens-picture"]);
  },
  switch({ at, off }) {
    moveTo(at);
    setChanges([...state.changes.filter((change) => !isSwitch(textOf(change))), ...readChanges(off)]);
  },
  open({ at, step }) {
    moveTo(at);
    goTo(SECTIONS.findIndex(({ id }) => id === step));
    return true;
  },
  choose: (place) => choosePlace(place),
  tau: setTemperature,
  row: chooseQuery,
  look: ({ row }) => chooseQuery(row),
  step: (step, id) => id === "part-picture" && setPart(step - 1),
  pick(picked, id) {
    if (id === "tokens-picture") return chooseToken(picked);
    Object.assign(state.chosen, Object.fromEntries(Object.entries(picked).filter(([name]) => name in state.chosen)));
    say();
    redraw();
  },
};

// --- what is chosen ------------------------------------------------------------------------------------------------

function nameOf({ kind, layer, head }) {
  return tr("{kind}, layer {layer}, head {head}", { kind: kinds[kind].title, layer, head });
}

function choosePlace(place) {
  state.place = { ...state.place, ...place };
  state.chosen.key = 0;
  say();
  redraw();
}

function chooseQuery(row) {
  state.chosen.query = row;
  say();
  redraw();
}

// A token of the source: in the whole model, and where the head reads the source.
function chooseToken(position) {
  const { queries, keys } = kinds[state.place.kind];
  state.at[1] = position;
  if (queries === "source") state.chosen.query = position;
  else if (keys === "source") state.chosen.key = position;
  say();
  redraw();
}

// The chosen cell of the chosen head: [query, key].
function chosenCell() {
  const [, n, m] = state.run.arrays[`${pathOf(state.place)}.pattern`].shape;
  return [Math.min(state.chosen.query, n - 1), Math.min(state.chosen.key, m - 1)];
}

function moveTo(at) {
  const [box, ...positions] = at.split("~");
  state.at = [box, ...positions.map(Number)];
}

function setPart(part) {
  state.part = part;
  say();
  redraw(["part-picture"]);
}

// Everything that is words: tokens, the list of heads, the changes, the link.
function say() {
  const { place } = state;
  const { queries, keys } = numbered(place);
  const [query, key] = chosenCell();
  at("cell").textContent = `${queries[query]} → ${keys[key]}`;
  sayToken();
  for (const each of at("more").options) each.disabled = each.value === "window" && place.kind === "cross";
  for (const each of document.querySelectorAll(".head-name")) each.textContent = nameOf(place);
  at("kind").value = place.kind;
  at("layer").replaceChildren(...layersOf(place.kind).map((layer) => option(layer, tr("layer {layer}", { layer }))));
  at("layer").value = place.layer;
  const heads = at("head-list"), held = heads.contains(document.activeElement);
  heads.replaceChildren(...range(config.n_heads).map(headItem));
  const chosen = heads.children[place.head].firstChild;
  stopAt(heads, chosen);
  if (held) chosen.focus();
  const gate = state.changes.some((change) => change.type === "HeadGate" && isHere(change));
  at("gate").setAttribute("aria-pressed", String(gate));
  at("changes").replaceChildren(...state.changes.map(changeItem));
  at("unchanged").hidden = state.changes.length > 0;
  at("part-title").textContent = `${state.part + 1}. ${words.steps[state.part]}`;
  for (const [part, button] of [...at("parts").children].entries()) button.setAttribute("aria-pressed", String(part === state.part));
  stopAt(at("parts"), at("parts").children[state.part]);
  showLink();
}

function sayToken() {
  at("chosen-token").textContent = numbered({ kind: "encoder_self" }).keys[sourceToken()];
}

function isHere({ kind, layer, head }) {
  return kind === state.place.kind && layer === state.place.layer && head === state.place.head;
}

function setsTemperature(change) {
  return change.type === "AttentionTemperature" && isHere(change);
}

function setTemperature(tau) {
  const others = state.changes.filter((change) => !setsTemperature(change));
  setChanges(tau === 1 ? others : [...others, { type: "AttentionTemperature", tau, ...state.place }]);
}

function option(value, text) {
  return Object.assign(document.createElement("option"), { value, textContent: text });
}

// A head with its largest weight off the first query's row, as a button.
function headItem(head) {
  const { kind, layer } = state.place;
  const { values, shape: [, n, m] } = state.run.arrays[`${pathOf({ kind, layer })}.pattern`];
  const row = Math.min(state.chosen.query, n - 1);
  const weights = values.subarray((head * n + row) * m, (head * n + row + 1) * m);
  const key = weights.indexOf(Math.max(...weights));
  const query = rowNames(kind)[row];
  const button = Object.assign(document.createElement("button"), { type: "button" });
  const textContent = tr("{query}: {weight} to {key}", { query, weight: fixed(weights[key], 2), key: labels(state.run.tokens[kinds[kind].keys])[key] });
  button.append(tr("head {head}", { head }), Object.assign(document.createElement("small"), { textContent }));
  button.setAttribute("aria-pressed", String(head === state.place.head));
  button.addEventListener("click", () => choosePlace({ head }));
  const node = document.createElement("li");
  node.append(button);
  return node;
}

// As it stands in a program, and where it acts.
function inWords({ type, ...fields }) {
  const { kind, layer, head, ...values } = fields;
  const place = [kind && kinds[kind].title, layer !== undefined && tr("layer {layer}", { layer }), head !== undefined && tr("head {head}", { head })].filter(Boolean).join(", ");
  const what = Object.entries(values).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
  return [`${type}(${what})`, place].filter(Boolean).join(" · ");
}

function changeItem(change) {
  const node = document.createElement("li");
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: tr("Remove") });
  button.setAttribute("aria-label", tr("Remove {change}", { change: inWords(change) }));
  button.addEventListener("click", () => setChanges(state.changes.filter((each) => each !== change)));
  node.append(inWords(change), " ", button);
  return node;
}

function setChanges(changes) {
  Object.assign(state, { changes, made: true });
  say();
  rerun();
}

function toggle(type, values) {
  const without = state.changes.filter((change) => !(change.type === type && isHere(change)));
  const { kind, layer, head } = state.place;
  setChanges(without.length < state.changes.length ? without : [...without, { type, ...values, kind, layer, head }]);
}

// What the list below the story offers, for the chosen head, cell and token.
function offered(name) {
  const { kind, layer, head } = state.place;
  const place = { kind, layer, head };
  const [stack, , , sublayer] = pathOf(place).split(".");
  const [query, key] = chosenCell();
  const numbers = range(state.run.arrays[`${pathOf(place)}.pattern`].shape[2]);
  return {
    mean: { type: "HeadGate", gate: 0, mode: "mean", ...place },
    half: { type: "HeadGate", gate: 0.5, ...place },
    uniform: { type: "UniformAttention", ...place },
    cell: { type: "MaskEdit", [kind === "decoder_self" && key > query ? "allow" : "forbid"]: [[query, key]], ...place },
    alone: { type: "PatternEdit", query, weights: numbers.map((each) => Number(each === key)), ...place },
    turned: { type: "PermutedAttention", order: numbers.reverse(), ...place },
    value: { type: "ValueZeroing", positions: [key], ...place },
    token: { type: "ForbidSource", positions: [sourceToken()] },
    window: { type: "PatternMask", window: 2, kind, layer },
    undivided: { type: "Unscaled", ...place },
    shared: { type: "SharedKeysValues", groups: 1, kind, layer },
    lift: { type: "LiftCausalMask" },
    sublayer: { type: "SublayerOff", stack, layer, name: sublayer },
    residual: { type: "ResidualOff", stack, layer, name: sublayer },
    norm: { type: "NormOff", stack, layer, name: sublayer },
    positions: { type: "PositionsOff" },
    reversed: { type: "PositionsShuffled", order: range(state.run.source.length).reverse(), side: "source" },
  }[name];
}

function sourceToken() {
  return Math.min(state.at[1], state.run.source.length - 1);
}

// --- the model -----------------------------------------------------------------------------------------------------

const progress = { loaded: 0, total: words.files.reduce((sum, { size }) => sum + size, 0) };

function note(text) {
  at("note").textContent = text;
}

async function loadModel() {
  at("ask").hidden = true;
  at("loading").hidden = false;
  const onProgress = (bytes) => {
    progress.loaded += bytes;
    at("bar").value = progress.loaded / progress.total;
  };
  try {
    const [weights, vocabulary] = await Promise.all(words.files.map((file) => load(file, onProgress, note)));
    performance.mark("last-byte");
    thread = new Thread(at("worker").textContent);
    await thread.ask("load", { weights, vocabulary, config }, { moved: [weights, vocabulary] });
  } catch (error) {
    at("loading").hidden = true;
    state.failed = error instanceof Failure ? error.message : error instanceof RangeError || /memory|alloc/i.test(error.message) ? tooLittleMemory() : tr("The model could not be started: {error}. What you see is a recorded run.", { error: error.message });
    note(state.failed);
    for (const each of document.querySelectorAll(".picture-note")) each.textContent = state.failed;
    return;
  }
  at("loading").hidden = true;
  state.live = true;
  // What waited has no place on screen until it is shown again.
  for (const host of document.querySelectorAll(".picture.waits")) host.classList.remove("waits");
  document.body.dataset.live = "";
  performance.mark("model-ready");
  if (state.waiting ?? words.asked) await translate(state.waiting ?? words.asked);
  else {
    await rerun();
    await prove();
  }
}

async function translate(text) {
  if (!state.live) {
    state.waiting = text;
    note(state.failed ?? tr("Your sentence waits for the model."));
    showLink();
    return;
  }
  note("");
  Object.assign(state, { translating: text, waiting: null });
  words.asked = null;
  showLink();
  at("translation").textContent = "";
  try {
    const onProgress = (sofar) => (at("growing").textContent = `${sofar} …`);
    const answer = await thread.ask("translate", { text, beam: words.beam, changes: [], topic: "sentence" }, { onProgress });
    if (!answer) return;
    state.translating = false;
    at("growing").textContent = "";
    at("translation").textContent = answer.text;
    state.run = { ...state.run, text, translation: answer.text, source: answer.source, target: answer.tokens };
    await rerun();
    await prove();
  } catch (error) {
    state.translating = false;
    at("growing").textContent = "";
    at("translation").textContent = state.run.translation;
    note(error.message);
  }
}

// Writes beside each claim below the story how well it holds for the run without changes.
async function prove() {
  const { source, target } = state.run;
  const claims = await thread.ask("prove", { source, target });
  for (const { name, error, holds } of claims ?? []) {
    const node = document.querySelector(`[data-claim="${name}"] small`);
    const most = written(error ? error.toExponential(1) : "0");
    node.textContent = holds ? tr("✓ holds, largest error {most}", { most }) : tr("✗ does not hold, largest error {most}", { most });
  }
}

// The run on the same target with the changes as they are, drawn; then the translation of the changed model.
async function rerun() {
  if (!state.live || state.translating) return;
  const { source, target, text } = state.run;
  const { changes } = state;
  at("changed").textContent = "";
  try {
    const answer = await thread.ask("trace", { source, target, changes });
    if (!answer) return;
    state.run = { ...state.run, ...answer, changes };
    say();
    weightsOf(pathOf(state.place)).catch(() => {}); // which the pictures of a head need, also on paper
    nextFrame().then(() => {
      redraw();
      performance.mark("run-drawn");
    });
    if (!changes.length) return;
    const onProgress = (sofar) => (at("changed").textContent = `${sofar} …`);
    const changed = await thread.ask("translate", { text, beam: words.beam, changes }, { onProgress });
    if (changed) at("changed").textContent = changed.text === state.run.translation ? tr("{text} (as before)", changed) : changed.text;
  } catch (error) {
    note(tr("The change cannot be made: {error}.", { error: error.message }));
    // The one made last; of a link any may be wrong.
    state.changes = state.made ? state.changes.slice(0, -1) : [];
    say();
  }
}

// --- links ---------------------------------------------------------------------------------------------------------

const HERE = ["localhost", "127.0.0.1", "[::1]"];
const LOCAL_APP = "http://localhost:8501/"; // as `make run` starts it

// Sentence, head and changes with the names and the form that the app's links have (model/interventions/link.py).
function parameters() {
  const { kind, layer, head } = state.place;
  const query = new URLSearchParams({ source: state.translating || state.waiting || words.asked || state.run.text, see: `${kind}.${layer}.${head}` });
  if (state.changes.length) query.set("changes", `[${state.changes.map(textOf).join(",")}]`);
  return query;
}

function showLink() {
  const query = parameters();
  const here = `?${query}${state.step ? `#${SECTIONS[state.step].id}` : ""}`;
  // A new address makes the browser compute the style of everything again.
  if (here === state.link) return;
  state.link = here;
  for (const link of document.querySelectorAll("#languages a")) link.href = link.getAttribute("href").replace(/[?#].*|$/, here);
  if (words.language !== "en") query.set("lang", words.language);
  // Where the page comes from one's own computer, the app may run there too.
  const app = words.app || (HERE.includes(location.hostname) ? LOCAL_APP : "");
  at("open").hidden = !app;
  at("open").href = `${app}${state.changes.length ? "what_if" : ""}?${query}`;
  try {
    history.replaceState(null, "", here);
  } catch {
    // A file opened from a disk may have no address of its own; nothing else depends on it.
  }
}

function readLink() {
  const query = new URLSearchParams(location.search);
  const [kind, layer, head] = (query.get("see") ?? "").split(".");
  const place = { kind, layer: Number(layer), head: Number(head) };
  if (Object.hasOwn(kinds, kind) && layersOf(kind).includes(place.layer) && range(config.n_heads).includes(place.head)) state.place = place;
  if (query.get("source")?.trim()) {
    words.asked = query.get("source").trim().split(/\s+/).join(" ");
    at("sentence").value = words.asked;
    if (words.asked === state.run.text) words.asked = null;
  }
  try {
    state.changes = readChanges(query.get("changes"));
  } catch {
    note(tr("The changes in this link are incomplete: was it cut off when it was copied?"));
  }
}

// --- the story -----------------------------------------------------------------------------------------------------

const TOP = 100; // pixels
const REST = 150; // milliseconds without a move, after which a scroll has ended: not every browser says so
let going = false; // whether the page itself scrolls to a step
const SECTIONS = [...document.querySelectorAll(".step")];
const BLOCKS = [...document.querySelectorAll("header > *, .step > *, #explore > *, footer > *")];
let held = null; // what is read: { block, top, scrolled }, the first block on screen, its distance from there, scrollY

// What is drawn above does not push away what is read. Not every browser sees to that, so style.css forbids it to all.
function holdPlace() {
  if (held?.block.getClientRects().length && !going) {
    const { top } = held.block.getBoundingClientRect();
    const moved = top + scrollY - held.top - held.scrolled;
    // Where the browser itself has scrolled to it meanwhile, it stands as it stood, to the pixel that scrollY counts in.
    if (moved && Math.abs(top - held.top) >= 1) scrollBy({ top: moved, behavior: "instant" });
  }
  const block = BLOCKS.find((each) => each.getBoundingClientRect().bottom > 0);
  held = block && { block, top: block.getBoundingClientRect().top, scrolled: scrollY };
}

// The next step is scrolled to; further ones are jumped to, because each picture on the way would be drawn.
function goTo(step, scroll = true) {
  const before = state.step;
  state.step = Math.min(Math.max(step, 0), SECTIONS.length - 1);
  SECTIONS.forEach((section, number) => section.classList.toggle("current", number === state.step));
  at("back").disabled = state.step === 0;
  at("next").disabled = state.step === SECTIONS.length - 1;
  at("where").textContent = state.step ? tr("{step} of {steps}", { step: state.step, steps: SECTIONS.length - 1 }) : tr("The whole model");
  const { top } = SECTIONS[state.step].getBoundingClientRect();
  const smooth = Math.abs(state.step - before) === 1 && !matchMedia("(prefers-reduced-motion: reduce)").matches;
  going = scroll && smooth && !(top >= 0 && top < TOP);
  if (scroll) scrollToStep(smooth ? "smooth" : "instant");
  showLink();
}

function scrollToStep(behavior) {
  SECTIONS[state.step].scrollIntoView({ behavior });
  held = null;
  holdPlace();
}

// The step whose title has reached the top, after somebody has scrolled there.
function follow() {
  holdPlace();
  const step = Math.max(SECTIONS.findLastIndex((section) => section.getBoundingClientRect().top < TOP), 0);
  if (!document.body.classList.contains("present") && step !== state.step) goTo(step, false);
}

// A scroll has ended. Pictures that are drawn on the way move what the page itself scrolls to: then it goes there at once.
function arrive() {
  if (going) scrollToStep("instant");
  else follow();
  going = false;
}

function onKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, .picture")) return;
  if (event.key === "ArrowRight") goTo(state.step + 1);
  else if (event.key === "ArrowLeft") goTo(state.step - 1);
  else if (event.key === "Escape") document.body.classList.remove("present");
}

function listen() {
  for (const id of ["head-list", "parts"]) rove(at(id));
  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = at("sentence").value.trim().split(/\s+/).join(" ");
    if (text) translate(text);
    else note(tr("Type an English sentence first."));
  });
  at("ask").addEventListener("click", loadModel);
  at("gate").addEventListener("click", () => toggle("HeadGate", { gate: 0 }));
  at("trained").addEventListener("click", () => setChanges([]));
  at("add").addEventListener("click", () => setChanges([...state.changes, offered(at("more").value)]));
  at("kind").addEventListener("change", ({ target }) => choosePlace({ kind: target.value, layer: Math.min(state.place.layer, layersOf(target.value).length - 1) }));
  at("layer").addEventListener("change", ({ target }) => choosePlace({ layer: Number(target.value) }));
  at("back").addEventListener("click", () => goTo(state.step - 1));
  at("next").addEventListener("click", () => goTo(state.step + 1));
  at("present").addEventListener("click", () => {
    document.body.classList.toggle("present");
    goTo(state.step);
  });
  document.addEventListener("keydown", onKey);
  addEventListener("beforeprint", print);
  addEventListener("afterprint", () => nextFrame().then(printed));
  for (const event of ["wheel", "touchmove"]) {
    addEventListener(event, () => {
      going = false;
      requestAnimationFrame(follow);
    }, { passive: true });
  }
  let ending;
  addEventListener("scroll", () => {
    holdPlace();
    clearTimeout(ending);
    ending = setTimeout(arrive, REST);
  }, { passive: true });
  new ResizeObserver(holdPlace).observe(document.body);
  addEventListener("hashchange", () => goTo(stepOfHash()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
}

function stepOfHash() {
  return Math.max(SECTIONS.findIndex(({ id }) => `#${id}` === location.hash), 0);
}

function start() {
  at("parts").replaceChildren(...words.steps.map((title, part) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: `${part + 1}. ${title}` });
    button.addEventListener("click", () => setPart(part));
    return button;
  }));
  readLink();
  at("translation").textContent = state.run.translation;
  listen();
  const toCard = location.hash === "#card"; // as the pages of other languages link to it
  const [step, scroll] = [stepOfHash(), Boolean(location.hash) && !toCard];
  say();
  goTo(step, scroll);
  if (toCard) {
    at("card").open = true;
    at("card").scrollIntoView();
  }
  for (const id of Object.keys(PICTURES)) observer.observe(at(id));
}

// What stands behind the scripts, because the first picture does without it.
async function startTheRest() {
  await whole;
  const { arrays } = state.run;
  Object.assign(arrays, recordedArrays(JSON.parse(at("recorded-head").textContent)));
  const [embedding, positional, sum] = headers.positions.arrays;
  arrays[sum] = { ...arrays[positional], values: arrays[positional].values.map((added, at) => added + arrays[embedding].values[at]) };
  state.whole = true;
  drawVisible();
  if (isMetered()) at("ask").hidden = false;
  else loadModel();
  if (words.serviceWorker) navigator.serviceWorker?.register("service-worker.js").catch(() => {});
}

start();
startTheRest();
window.started = true;
