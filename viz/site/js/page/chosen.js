// What is chosen, and what the page says of it.

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

// A token of the text: in the whole model, and where the head reads the text.
function chooseToken(position) {
  const { queries, keys } = kinds[state.place.kind];
  state.at[1] = position;
  if (queries === words.reads) state.chosen.query = position;
  else if (keys === words.reads) state.chosen.key = position;
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
  sayHere();
  showLink();
}

function sayToken() {
  at("chosen-token").textContent = `${chosenToken()} ${labels(state.run.tokens[words.reads])[chosenToken()]}`;
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
    window: { type: "PatternMask", window: 2, kind, layer },
    undivided: { type: "Unscaled", ...place },
    shared: { type: "SharedKeysValues", groups: 1, kind, layer },
    lift: { type: "LiftCausalMask" },
    sublayer: { type: "SublayerOff", stack, layer, name: sublayer },
    residual: { type: "ResidualOff", stack, layer, name: sublayer },
    norm: { type: "NormOff", stack, layer, name: sublayer },
    positions: { type: "PositionsOff" },
    ...changeHere(),
  }[name];
}

function chosenToken() {
  return Math.min(state.at[1], idsRead().length - 1);
}
