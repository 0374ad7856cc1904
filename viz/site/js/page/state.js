// The page: a recorded run first, then the model on one's own text. A story of steps, one picture leading each, and below
// it all heads and changes. The files of this folder are one script; of translating.js and writing.js it has one.

import { widened } from "../half.js";
import { decoderRows, labels } from "../labels.js";
import { Failure, isMetered, load, tooLittleMemory } from "../loading.js";
import { Thread } from "../thread.js";
import { inMiniature } from "../miniature.js";
import { principalAxes } from "../plane.js";

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
  // A run as the pictures take it: { text, written, source, target: ids, tokens: pieces, candidates: the most probable of
  // each row, score: log p, changes, arrays by hook path }. A language model has no source.
  run: { ...recorded, changes: [], arrays: recordedArrays({ described, bytes }) },
  place: { ...words.place },
  learned: {}, // arrays of the attention at `path`, which the model gave
  changes: [],
  made: false, // whether somebody here made changes; until then they are of the link
  chosen: { query: words.query, key: 0, dimension: 0, model: 0 },
  at: ["decoder.softmax", ...headers.model.rows.map(() => 1)], // box of the whole model, position in each stack
  step: 0, // the step of the story that is on screen
  part: 4, // of the seven steps of a head, below the story
  whole: false, // whether all of the page has come, with what is recorded of a head
  live: false,
  link: null, // what the address says of all this
  waiting: null, // what was typed before the model is here
  working: false, // the text that the model works on
  drawing: false, // whether pictures are being drawn
  printing: false, // whether the page goes on paper
};
let thread = null;
const whole = new Promise((resolve) => (document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", resolve) : resolve()));
