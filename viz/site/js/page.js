// The page: a recorded run first, then the model on one's own sentence. A story of steps, one picture leading each, and
// below it all heads and changes.

import { widened } from "./safetensors.js";
import { decoderRows, labels } from "./labels.js";
import { Failure, isMetered, load, tooLittleMemory } from "./loading.js";
import { Thread } from "./thread.js";

const at = (id) => document.getElementById(id);
const words = JSON.parse(at("words").textContent);
const { config, kinds, headers } = words;
const range = (count) => Array.from({ length: count }, (_, index) => index);
const layersOf = (kind) => range(kinds[kind].paths.length);
const pathOf = ({ kind, layer }) => kinds[kind].paths[layer]; // of an attention, "decoder.layers.2.cross_attn"

class NotRecorded extends Error {}

// A run as the pictures take it: { text, translation, source, target: ids, tokens: pieces, changes, arrays by hook
// path }.
function recordedRun({ described, bytes, ...run }) {
  const letters = atob(bytes);
  const all = Uint8Array.from(letters, (letter) => letter.charCodeAt(0)).buffer;
  const Types = { f4: Float32Array, f2: Uint16Array, u1: Uint8Array };
  let place = 0;
  const read = ([path, type, shape]) => {
    const sent = new Types[type](all, place, shape.reduce((product, side) => product * side, 1));
    place += 4 * Math.ceil(sent.byteLength / 4);
    return [path, { shape, values: type === "f2" ? widened(sent) : sent }];
  };
  return { ...run, changes: [], arrays: Object.fromEntries(described.map(read)) };
}

const state = {
  run: recordedRun(JSON.parse(at("recording").textContent)),
  place: { ...words.place },
  learned: {}, // arrays of the attention at `path`, which the model gave
  changes: [],
  made: false, // whether somebody here made changes; until then they are of the link
  chosen: { query: words.query, key: 0, dimension: 0, model: 0 },
  step: 0, // the step of the story that is on screen
  part: 4, // of the seven steps of a head, below the story
  live: false,
  waiting: null, // what was typed before the model is here
  translating: false,
  drawing: false, // whether pictures are being drawn
};
let thread = null;

// --- pictures ------------------------------------------------------------------------------------------------------

const PICTURES = {
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
};

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

function positions() {
  const { arrays, tokens } = state.run;
  return matrices(headers.positions, arrays, { query: labels(tokens.source), key: [] });
}

async function headStep(part, place = state.place) {
  const fixed = headers.steps[place.kind][part];
  const { run } = state;
  const arrays = await arraysOf(fixed.arrays, place, run);
  const { queries, keys } = kinds[place.kind];
  const notes = { query: queries === "target" ? decoderRows(run.tokens) : [] };
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
  const { queries, keys } = kinds[place.kind];
  const numbered = (pieces) => labels(pieces).map((label, i) => `${i} ${label}`);
  const tau = arrays[`${path}.temperature`].values[place.head];
  const header = {
    ...headers.softmax,
    path,
    title: nameOf(place),
    facts: { head: place.head },
    labels: { query: numbered(run.tokens[queries]), key: numbered(run.tokens[keys]) },
    notes: { query: queries === "target" ? decoderRows(run.tokens) : [] },
    temperature: headers.softmax.taus.find((each) => Math.fround(each) === tau) ?? tau,
    row: Math.min(state.chosen.query, run.tokens[queries].length - 1),
    changes: run.changes.filter((change) => !setsTemperature(change)).length,
  };
  return { component: "temperature", data: { header, arrays } };
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
  return kinds[kind].queries === "target" ? decoderRows(tokens) : labels(tokens.source);
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

// Draws what is on screen, and the rest when it comes there.
const visible = new Set();
const stale = new Set(Object.keys(PICTURES));
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) visible.add(target.id);
    else visible.delete(target.id);
  }
  drawVisible();
}, { rootMargin: "200px" });

function redraw(ids = Object.keys(PICTURES)) {
  for (const id of ids) stale.add(id);
  drawVisible();
}

// One after another, with a frame between them, so that the page stays at hand.
async function drawVisible() {
  if (state.drawing) return;
  state.drawing = true;
  for (let id = nextToDraw(); id; id = nextToDraw()) {
    stale.delete(id);
    draw(id); // what asks the model first does not hold up the others
    await new Promise(requestAnimationFrame);
  }
  state.drawing = false;
}

function nextToDraw() {
  return [...visible].find((id) => stale.has(id) && (state.live || !at(id).classList.contains("waits")));
}

async function draw(id) {
  const host = at(id);
  try {
    const picture = await PICTURES[id]();
    if (picture) mount(host, picture);
    host.classList.remove("waits");
  } catch (error) {
    host.classList.add("waits");
    if (!(error instanceof NotRecorded)) note(`A picture could not be drawn: ${error.message}`);
    else if (!state.live) stale.add(id);
  }
}

function mount(host, { component, data }) {
  if (!host.shadowRoot) host.attachShadow({ mode: "open" }).innerHTML = window.components[component].html;
  const send = (event, value) => ON[event]?.(value, host.id);
  window.components[component].mount({ parentElement: host.shadowRoot, data, setTriggerValue: send, setStateValue() {} });
}

const ON = {
  choose: (place) => choosePlace(place),
  tau: setTemperature,
  row(row) {
    state.chosen.query = row;
    say();
    redraw();
  },
  step: (step, id) => id === "part-picture" && setPart(step - 1),
  pick(picked, id) {
    if (picked.symbol === "mask" && id === "part-picture") toggleCell([picked.query, picked.key]);
    Object.assign(state.chosen, Object.fromEntries(Object.entries(picked).filter(([name]) => name in state.chosen)));
    redraw();
  },
};

// --- what is chosen ------------------------------------------------------------------------------------------------

function nameOf({ kind, layer, head }) {
  return `${kinds[kind].title}, layer ${layer}, head ${head}`;
}

function choosePlace(place) {
  state.place = { ...state.place, ...place };
  state.chosen.key = 0;
  say();
  redraw();
}

function setPart(part) {
  state.part = part;
  say();
  redraw(["part-picture"]);
}

// Everything that is words: tokens, the list of heads, the changes, the link.
function say() {
  const { run, place } = state;
  at("token-list").replaceChildren(...labels(run.tokens.source).map((label, i) => item(label, `${run.source[i]}`)));
  for (const each of document.querySelectorAll(".head-name")) each.textContent = nameOf(place);
  at("kind").value = place.kind;
  at("layer").replaceChildren(...layersOf(place.kind).map((layer) => option(layer, `layer ${layer}`)));
  at("layer").value = place.layer;
  at("head-list").replaceChildren(...range(config.n_heads).map(headItem));
  const gate = state.changes.some((change) => change.type === "HeadGate" && isHere(change));
  at("gate").setAttribute("aria-pressed", String(gate));
  at("changes").replaceChildren(...state.changes.map(changeItem));
  at("unchanged").hidden = state.changes.length > 0;
  at("part-title").textContent = `${state.part + 1}. ${words.steps[state.part]}`;
  for (const [part, button] of [...at("parts").children].entries()) button.setAttribute("aria-pressed", String(part === state.part));
  showLink();
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

function item(label, note) {
  const node = document.createElement("li");
  node.append(label, Object.assign(document.createElement("small"), { textContent: note }));
  return node;
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
  button.append(`head ${head}`, Object.assign(document.createElement("small"), { textContent: `${query}: ${weights[key].toFixed(2)} to ${labels(state.run.tokens[kinds[kind].keys])[key]}` }));
  button.setAttribute("aria-pressed", String(head === state.place.head));
  button.addEventListener("click", () => choosePlace({ head }));
  const node = document.createElement("li");
  node.append(button);
  return node;
}

function inWords({ type, ...fields }) {
  const { kind, layer, head, ...values } = fields;
  const place = [kind && kinds[kind].title, layer !== undefined && `layer ${layer}`, head !== undefined && `head ${head}`].filter(Boolean).join(", ");
  const what = Object.entries(values).map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(", ");
  return [type.replace(/(?<=[a-z])(?=[A-Z])/g, " "), what, place].filter(Boolean).join(" · ");
}

function changeItem(change) {
  const node = document.createElement("li");
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Remove" });
  button.setAttribute("aria-label", `Remove ${inWords(change)}`);
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

function toggleCell(cell) {
  const before = state.changes.find((change) => change.type === "MaskEdit" && isHere(change));
  const same = (one) => one[0] === cell[0] && one[1] === cell[1];
  const cells = before?.forbid ?? [];
  const forbid = cells.some(same) ? cells.filter((one) => !same(one)) : [...cells, cell];
  const others = state.changes.filter((change) => change !== before);
  setChanges(forbid.length ? [...others, { type: "MaskEdit", forbid, ...state.place }] : others);
}

// Changes that need no number: what the list below the story offers.
function offered(name) {
  const { kind, layer, head } = state.place;
  const [stack, , , sublayer] = pathOf({ kind, layer }).split(".");
  return {
    mean: { type: "HeadGate", gate: 0, mode: "mean", kind, layer, head },
    uniform: { type: "UniformAttention", kind, layer, head },
    lift: { type: "LiftCausalMask" },
    sublayer: { type: "SublayerOff", stack, layer, name: sublayer },
    residual: { type: "ResidualOff", stack, layer, name: sublayer },
    positions: { type: "PositionsOff" },
    reversed: { type: "PositionsShuffled", order: range(state.run.source.length).reverse(), side: "source" },
  }[name];
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
    note(error instanceof Failure ? error.message : error instanceof RangeError || /memory|alloc/i.test(error.message) ? tooLittleMemory() : `The model could not be started: ${error.message}. What you see is a recorded run.`);
    return;
  }
  at("loading").hidden = true;
  state.live = true;
  // What waited has no place on screen until it is shown again.
  for (const host of document.querySelectorAll(".picture.waits")) host.classList.remove("waits");
  document.body.dataset.live = "";
  performance.mark("model-ready");
  if (state.waiting ?? words.asked) await translate(state.waiting ?? words.asked);
  else await rerun();
}

async function translate(text) {
  if (!state.live) {
    state.waiting = text;
    note("Your sentence waits for the model.");
    return;
  }
  note("");
  state.translating = text;
  at("translation").textContent = "";
  try {
    const onProgress = (sofar) => (at("growing").textContent = `${sofar} …`);
    const answer = await thread.ask("translate", { text, beam: words.beam, changes: [] }, { onProgress });
    if (!answer) return;
    state.translating = false;
    at("growing").textContent = "";
    at("translation").textContent = answer.text;
    state.run = { ...state.run, text, translation: answer.text, source: answer.source, target: answer.tokens };
    await rerun();
  } catch (error) {
    state.translating = false;
    at("growing").textContent = "";
    at("translation").textContent = state.run.translation;
    note(error.message);
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
    state.run = { ...state.run, changes, tokens: answer.tokens, arrays: answer.arrays };
    say();
    redraw();
    performance.mark("run-drawn");
    if (!changes.length) return;
    const onProgress = (sofar) => (at("changed").textContent = `${sofar} …`);
    const changed = await thread.ask("translate", { text, beam: words.beam, changes }, { onProgress });
    if (changed) at("changed").textContent = changed.text === state.run.translation ? `${changed.text} (as before)` : changed.text;
  } catch (error) {
    note(`The change cannot be made: ${error.message}.`);
    // The one made last; of a link any may be wrong.
    state.changes = state.made ? state.changes.slice(0, -1) : [];
    say();
  }
}

// --- links ---------------------------------------------------------------------------------------------------------

// Sentence, head and changes with the names and the form that the app's links have (model/interventions/link.py).
function parameters() {
  const { kind, layer, head } = state.place;
  const query = new URLSearchParams({ source: state.run.text, see: `${kind}.${layer}.${head}` });
  const changes = state.changes.map(({ type, ...fields }) => [type, fields]);
  if (changes.length) query.set("changes", JSON.stringify(changes));
  return query;
}

function showLink() {
  const query = parameters();
  at("open").href = `${words.app}${state.changes.length ? "what_if" : ""}?${query}`;
  try {
    history.replaceState(null, "", `?${query}#${SECTIONS[state.step].id}`);
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
    const changes = JSON.parse(query.get("changes") ?? "[]");
    if (!Array.isArray(changes)) throw new SyntaxError();
    state.changes = changes.map(([type, fields]) => ({ type: String(type), ...fields }));
  } catch {
    note("The changes in this link are not whole: was it cut off when it was copied?");
  }
}

// --- the story -----------------------------------------------------------------------------------------------------

const SECTIONS = [...document.querySelectorAll(".step")];

function goTo(step, scroll = true) {
  state.step = Math.min(Math.max(step, 0), SECTIONS.length - 1);
  SECTIONS.forEach((section, number) => section.classList.toggle("current", number === state.step));
  at("back").disabled = state.step === 0;
  at("next").disabled = state.step === SECTIONS.length - 1;
  at("where").textContent = `${state.step + 1} of ${SECTIONS.length}`;
  if (scroll) SECTIONS[state.step].scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  showLink();
}

// The step on screen, after somebody has scrolled there.
function follow() {
  const above = SECTIONS.filter((section) => section.getBoundingClientRect().top < innerHeight / 2);
  if (!document.body.classList.contains("present") && above.length - 1 !== state.step) goTo(above.length - 1, false);
}

function onKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, .picture")) return;
  if (event.key === "ArrowRight") goTo(state.step + 1);
  else if (event.key === "ArrowLeft") goTo(state.step - 1);
  else if (event.key === "Escape") document.body.classList.remove("present");
}

function listen() {
  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = at("sentence").value.trim().split(/\s+/).join(" ");
    if (text) translate(text);
    else note("Type an English sentence first.");
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
  for (const event of ["wheel", "touchmove"]) addEventListener(event, () => requestAnimationFrame(follow), { passive: true });
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
  goTo(stepOfHash(), Boolean(location.hash));
  say();
  for (const id of Object.keys(PICTURES)) observer.observe(at(id));
  performance.mark("first-picture");
  if (isMetered()) at("ask").hidden = false;
  else loadModel();
  if (words.serviceWorker) navigator.serviceWorker?.register("service-worker.js").catch(() => {});
}

start();
window.started = true;
