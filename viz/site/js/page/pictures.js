// What each picture is drawn with, of the run on screen.

const DRAWN = {
  "model-picture": wholeModel,
  "tokens-picture": tokenBoxes,
  "projections-picture": () => headStep(0),
  "scores-picture": () => headStep(1),
  "division-picture": () => headStep(2),
  "mask-picture": () => headStep(3, { ...state.place, ...maskPlace() }),
  "softmax-picture": liveWeights,
  "values-picture": () => headStep(5),
  "output-picture": () => headStep(6),
  "heads-picture": allHeads,
  "lines-picture": lines,
  "part-picture": () => headStep(state.part),
  "move-picture": moveQuery,
  "map-picture": headMap,
  "positions-picture": positions,
  ...OWN,
};
const PICTURES = Object.fromEntries(Object.entries(DRAWN).filter(([id]) => at(id))); // those of this page

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
    const [query, key, pair] = box.work;
    return { ...box, work: query * n + key * m + pair * n * m, heads: box.heads && { ...box.heads, queries: n, keys: m, cells } };
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
  const memory = boxes.findLast(({ stack }) => stack === "encoder");
  const header = {
    ...headers.model,
    boxes,
    rows,
    ...run.score,
    chosen: { box, positions: Object.fromEntries(rows.map(({ name }, i) => [name, Math.min(places[i], sizes[name] - 1)])) },
    memory: memory ? meanLength(run.arrays, memory) : null,
    changes: changes.filter(isSwitch),
    off: Object.fromEntries(off.filter(([, names]) => names.length)),
    alone: {},
  };
  return { component: "whole_model", data: { header, arrays: { ...run.arrays, ...Object.fromEntries(small) } }, key: state.live ? "page" : undefined };
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

// The tokens of the text as buttons: Python's HTML of one box, filled in for each.
function tokenBoxes() {
  const ids = idsRead();
  const template = document.createElement("template");
  template.innerHTML = headers.tokens;
  const box = template.content.querySelector("[role=listitem]");
  box.replaceWith(...labels(state.run.tokens[words.reads]).map((label, position) => {
    const node = box.cloneNode(true);
    const button = node.querySelector("button");
    const chosen = position === chosenToken();
    button.dataset.position = position;
    button.classList.toggle("chosen", chosen);
    button.setAttribute("aria-pressed", String(chosen));
    button.setAttribute("aria-label", `${label}, ${ids[position]}`);
    node.querySelector("bdi").textContent = label;
    node.querySelector("small").textContent = ids[position];
    return node;
  }));
  return { component: "chips", data: { html: template.innerHTML } };
}

// Embedding + position, where positions are added.
function positions() {
  return matrices(headers.positions, state.run.arrays, { query: labels(state.run.tokens[words.reads]), key: [] });
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
  const header = {
    ...headers.softmax,
    path,
    title: nameOf(place),
    facts: { head: place.head },
    labels: { query: queries, key: keys },
    notes: { query: kinds[place.kind].queries === "target" ? decoderRows(run.tokens, words.quotes) : [] },
    temperature: temperatureOf(arrays[`${path}.temperature`], place),
    row: Math.min(state.chosen.query, queries.length - 1),
    changes: run.changes.filter((change) => !setsTemperature(change)).length,
  };
  return { component: "temperature", data: { header, arrays } };
}

// As it is offered.
function temperatureOf({ values }, { head }) {
  return headers.softmax.taus.find((each) => Math.fround(each) === values[head]) ?? values[head];
}

// The keys of a head in a plane, its queries, which can be moved in it, and its values in another one.
async function moveQuery() {
  const { run, place } = state;
  const path = pathOf(place);
  const arrays = await arraysOf(["q", "k", "v", "z", "scores", "scaled", "pattern", "mask", "temperature"], place, run);
  const at = (name) => arrays[`${path}.${name}`];
  // Scores may be undivided here; the largest says it most exactly.
  const scores = at("scores").values.subarray(...ofHead(at("scores"), place.head));
  const largest = scores.reduce((best, score, cell) => (Math.abs(score) > Math.abs(scores[best]) ? cell : best), 0);
  const scale = scores[largest] ? at("scaled").values[ofHead(at("scores"), place.head)[0] + largest] / scores[largest] : 1;
  const [keys, values] = ["k", "v"].map((name) => principalAxes(at(name), place.head));
  const header = {
    ...headers.move,
    ...numbered(place),
    shares: [keys.shares, values.shares],
    scale,
    path,
    title: nameOf(place),
    head: place.head,
    row: Math.min(state.chosen.query, at("pattern").shape[1] - 1),
    temperature: temperatureOf(at("temperature"), place),
  };
  const planes = { "plane.key_axes": keys.axes, "plane.value_axes": values.axes };
  return { component: "own_vectors", data: { header, arrays: { ...arrays, ...planes } } };
}

// One head on a map that can be moved and enlarged, as for long texts; its queries are its keys.
function headMap() {
  const { run, chosen } = state;
  const { layer, head } = state.place;
  const kind = kinds[state.place.kind].keys === kinds[state.place.kind].queries ? state.place.kind : "encoder_self";
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
