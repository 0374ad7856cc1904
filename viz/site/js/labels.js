// Tokens as text on screen, as viz/tokens.py writes those of this project's models.

const NAMED = /^(?:(?:<0x..>)+|<\/?(?:s|pad|unk|mask|bos|eos|cls|sep)>|<\|[^|]+\|>|\[[A-Z]+\])$/;

// "The" begins a word, "-t" continues one.
export function labels(pieces) {
  return pieces.map((piece) => {
    const continues = !piece.startsWith("\u2581") && !NAMED.test(piece) && /[\p{L}\p{N}]/u.test(piece);
    const word = piece.replace(/^\u2581/, "").replaceAll("\u2581", "\u2423") || "\u2423";
    return continues ? `-${visible(piece)}` : visible(word);
  });
}

function visible(text) {
  const code = (letter) => `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  return text.replace(/[\p{Cc}\p{Cf}\p{Cn}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, code);
}

// What each decoder row reads and predicts, "Zwei → Männer"; the quotation marks are for punctuation.
export function decoderRows({ target, next }, [opening, closing]) {
  const quoted = (label) => (/[\p{L}\p{N}]/u.test(label) || label.length > 1 ? label : opening + label + closing);
  const predicts = labels(next);
  return labels(target).map((read, i) => `${quoted(read)} → ${quoted(predicts[i])}`);
}
