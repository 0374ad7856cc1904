// Text <-> token ids: SentencePiece's unigram model with byte fallback, as model/checkpoints/tokenizer.py uses it.

export const BOS = 2;
export const EOS = 3;
const PAD = 0;
const UNK = 1;
const NORMAL = 1; // types of pieces in the file
const UNKNOWN = 2;
const USER_DEFINED = 4;
const BYTE = 6;
const UNIGRAM = 1;
const UNKNOWN_PENALTY = 10; // by which a character without a piece is worse than the worst piece
const SPACE = "\u2581"; // how pieces write a space
const ONLY = "only a unigram vocabulary with byte fallback that leaves text as it is can be read";

export class Tokenizer {
  // `bytes`: Uint8Array of the whole file tokenizer.model. Throws an Error if the vocabulary is of another kind.
  constructor(bytes) {
    const { pieces, trainer, normalizer } = readModel(bytes);
    if ((trainer.type ?? UNIGRAM) !== UNIGRAM || !trainer.bytes || trainer.suffix) throw new Error(`${ONLY}: its type`);
    if (normalizer.map?.length || normalizer.trim !== 0 || normalizer.prefix === 0) throw new Error(`${ONLY}: its text`);
    this.pieces = pieces.map(({ piece }) => UTF8.decode(piece));
    this.types = pieces.map(({ type }) => type);
    this.scores = pieces.map(({ score }) => score);
    const scores = this.scores.filter((_, id) => this.types[id] === NORMAL);
    this.least = scores.reduce((one, other) => Math.min(one, other));
    this.most = scores.reduce((one, other) => Math.max(one, other));
    this.ids = new Map(); // piece -> id, of the pieces that text is cut into
    this.idOfByte = [];
    this.byteOfId = new Map();
    this.types.forEach((type, id) => {
      if (type === NORMAL || type === USER_DEFINED) this.ids.set(this.pieces[id], id);
      if (type !== BYTE) return;
      const byte = Number(this.pieces[id].slice(1, -1));
      this.idOfByte[byte] = id;
      this.byteOfId.set(id, byte);
    });
    this.longest = [...this.ids.keys()].reduce((length, piece) => Math.max(length, piece.length), 0);
  }

  // Token ids of the most probable segmentation, without start and end tokens.
  encode(text) {
    return text ? this.segment(SPACE + escaped(text).replaceAll(" ", SPACE)) : [];
  }

  // Viterbi: the best segmentation that ends at each character. Sums are float32, as SentencePiece's are.
  segment(text) {
    const best = Array(text.length + 1).fill(null);
    best[0] = { score: 0 };
    // Rounded before it is compared: of two ways that are equally good, as 5 55 and 55 5, rounding decides.
    const offer = (start, end, id, sum) => {
      const score = Math.fround(sum);
      if (!best[end] || score > best[end].score) best[end] = { start, id, score };
    };
    for (let start = 0, size; start < text.length; start += size) {
      size = text.codePointAt(start) > 0xffff ? 2 : 1;
      const here = best[start].score;
      for (let end = start + size; end <= Math.min(start + this.longest, text.length); end += 1) {
        const piece = text.slice(start, end);
        const id = this.ids.get(piece);
        if (id !== undefined) offer(start, end, id, here + this.scoreOf(piece, id));
      }
      const single = this.ids.has(text.slice(start, start + size));
      if (!single) offer(start, start + size, UNK, Math.fround(here + Math.fround(this.least - UNKNOWN_PENALTY)));
    }
    const ids = [];
    for (let end = text.length; end > 0; end = best[end].start) {
      const { start, id } = best[end];
      if (id === UNK) ids.push(...Array.from(TO_UTF8.encode(text.slice(start, end)), (byte) => this.idOfByte[byte]).reverse());
      else ids.push(id);
    }
    return ids.reverse();
  }

  // A user-defined piece, such as <mask>, is worth more than any way to cut it.
  scoreOf(piece, id) {
    return this.types[id] === USER_DEFINED ? TO_UTF8.encode(piece).length * this.most - 0.1 : this.scores[id];
  }

  // The text of `ids`; start, end and padding say nothing.
  decode(ids) {
    let text = "";
    let bytes = [];
    let first = true; // the space before the first word is not text
    const flush = () => {
      text += characters(bytes);
      bytes = [];
    };
    for (const id of ids) {
      if (id === PAD || id === BOS || id === EOS) continue;
      if (this.types[id] === BYTE) {
        bytes.push(this.byteOfId.get(id));
        continue;
      }
      flush();
      if (text) first = false;
      const piece = this.types[id] === UNKNOWN ? " \u2047 " : this.pieces[id];
      const shown = first && piece.startsWith(SPACE) ? piece.slice(1) : piece;
      if (shown !== piece) first = false;
      text += shown.replaceAll(SPACE, " ");
    }
    flush();
    return text.replace(/\ufdd0[\ufdd1\ufdd2]/g, (pair) => (pair[1] === "\ufdd1" ? "\ufdd0" : SPACE));
  }

  // The piece of each id.
  tokens(ids) {
    return Array.from(ids, (id) => this.pieces[id]);
  }
}

const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });
const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const TO_UTF8 = new TextEncoder();

// A typed U+2581 would come back as a space, so it becomes a pair of noncharacters, and so does the first of that pair.
// A lone surrogate becomes U+FFFD.
function escaped(text) {
  const whole = text.replace(/\p{Surrogate}/gu, "\ufffd");
  return whole.replace(/[\u2581\ufdd0]/g, (letter) => (letter === SPACE ? "\ufdd0\ufdd2" : "\ufdd0\ufdd1"));
}

// Bytes as text, with one U+FFFD for each byte that is part of no character.
function characters(bytes) {
  let text = "";
  for (let at = 0, size; at < bytes.length; at += size) {
    size = bytes[at] < 0x80 ? 1 : bytes[at] < 0xe0 ? 2 : bytes[at] < 0xf0 ? 3 : 4;
    try {
      text += STRICT.decode(Uint8Array.from(bytes.slice(at, at + size)));
    } catch {
      text += "\ufffd";
      size = 1;
    }
  }
  return text;
}

// The parts of a ModelProto (sentencepiece_model.proto) that say how text is cut. The numbers are those of its fields.
function readModel(bytes) {
  const pieces = [];
  const trainer = {};
  const normalizer = {};
  for (const [field, value] of protobuf(bytes)) {
    if (field === 1) pieces.push({ score: 0, type: NORMAL, ...named(value, { 1: "piece", 2: "score", 3: "type" }) });
    if (field === 2) Object.assign(trainer, named(value, { 3: "type", 24: "suffix", 35: "bytes" }));
    if (field === 3) Object.assign(normalizer, named(value, { 2: "map", 3: "prefix", 4: "trim", 5: "escape" }));
  }
  return { pieces, trainer, normalizer };
}

function named(bytes, names) {
  const known = [...protobuf(bytes)].filter(([field]) => names[field]);
  return Object.fromEntries(known.map(([field, value]) => [names[field], value]));
}

// The fields of a protobuf message: pairs of number and value.
function* protobuf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at];
      at += 1;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const field = Math.floor(key / 8);
    const wire = key % 8;
    if (wire === 0) {
      yield [field, varint()];
    } else if (wire === 2) {
      const size = varint();
      yield [field, bytes.subarray(at, at + size)];
      at += size;
    } else if (wire === 5) {
      yield [field, view.getFloat32(at, true)];
      at += 4;
    } else if (wire === 1) {
      at += 8;
    } else {
      throw new Error(`not a SentencePiece model: a field of wire type ${wire}`);
    }
  }
}
