// Draws the two columns of tokens, the lines between them, and the weights of a token beside them.

const FONT_SIZE = 12;
const TALLEST = 560; // pixels: longer columns scroll
const BINS = 32; // steps of opacity: all lines of one step and one head are one path
const HEADING = 22;
const MOST_LINES = 2000; // at once: more would be slow and hide each other, so only the largest are drawn
const DASHED = 0.1; // thinner lines have no dashes: they could not be seen
// Tell the heads apart where colours do not.
const DASHES = [[], [8, 4], [2, 3], [9, 3, 2, 3], [14, 3], [4, 4], [1, 4], [7, 2, 1, 2, 1, 2]];

function rowsOf(header) {
  return Math.max(header.queries.length, header.keys.length);
}

function stepOf(header) {
  return clamp(Math.floor(TALLEST / rowsOf(header)), 15, 26);
}

function heightOf(header) {
  return rowsOf(header) * stepOf(header) + 4;
}

// The label of each position; for a decoder row the token that it reads and the one that it predicts, in words or `brief`.
function namesOf({ keys, queries, predicts, numbered }, side, brief) {
  if (!numbered) return side === "key" ? keys : queries;
  if (side === "key" || !predicts) return (side === "key" ? keys : queries).map((name, index) => `${index} ${name}`);
  return queries.map((name, index) => {
    return brief ? `${index} ${name} → ${predicts[index]}` : tr("{index} reads {name}, predicts {next}", { index, name, next: predicts[index] });
  });
}

function layOutLines(view, pen) {
  const { header, width } = view;
  const gutter = Math.min(header.heads.length * 44, width * (width < 600 ? 0.14 : 0.2));
  pen.font = `600 ${FONT_SIZE}px ${view.theme.font}`; // as bold as the isolated token
  const most = width < 600 ? (header.predicts ? 0.42 : 0.33) * (width - 2 * gutter) : 0.21 * width;
  const widths = (side, brief) => namesOf(header, side, brief).map((name) => pen.measureText(name).width + 14);
  const brief = Math.max(...widths("query", false)) > most;
  const columns = ["query", "key"].map((side) => Math.ceil(Math.min(Math.max(...widths(side, brief), 58), most)));
  const left = gutter + columns[0];
  const right = width - gutter - columns[1];
  return { step: stepOf(header), gutter, columns, brief, left, right, height: heightOf(header) };
}

function middleOf(layout, index) {
  return (index + 0.5) * layout.step;
}

// Pixels between the lines of several heads at one token, and so the thickest line.
function spreadOf(layout, shown) {
  return Math.min(3.4, (layout.step - 4) / shown);
}

// The smallest weight drawn when no token is isolated, so that at most MOST_LINES are; rounded to two digits.
function leastOf({ header, weights }, slots) {
  const large = (slot) => weights[slot].filter((weight) => weight >= header.least);
  const drawn = Float32Array.from(slots.flatMap((slot) => Array.from(large(slot)))).sort();
  if (drawn.length <= MOST_LINES) return header.least;
  const last = drawn[drawn.length - MOST_LINES];
  const unit = 10 ** (Math.floor(Math.log10(last)) - 1);
  return Number((Math.ceil(last / unit) * unit).toPrecision(2));
}

// `pairs(visit)` calls visit(query, key) for each line to draw.
function drawLines(pen, view, pairs, least) {
  const { layout, weights, header } = view;
  const shown = view.shownSlots();
  const spread = spreadOf(layout, shown.length);
  const keys = header.keys.length;
  shown.forEach((slot, place) => {
    const paths = new Map();
    const fan = (place - (shown.length - 1) / 2) * spread;
    pairs((query, key) => {
      const weight = weights[slot][query * keys + key];
      if (!(weight >= least)) return;
      const bin = Math.ceil(Math.min(weight / header.high, 1) * BINS);
      if (!paths.has(bin)) paths.set(bin, []);
      paths.get(bin).push([middleOf(layout, query) + fan, middleOf(layout, key) + fan]);
    });
    strokePaths(pen, paths, layout, { colour: view.lookOf(slot).colour, dashes: view.dashesOf(slot) }, Math.max(spread, 2));
  });
}

function strokePaths(pen, paths, { left, right }, { colour, dashes }, thickest) {
  pen.strokeStyle = colour;
  for (const [bin, path] of [...paths].sort(([one], [other]) => one - other)) {
    const weight = (bin - 0.5) / BINS;
    pen.setLineDash(weight > DASHED ? dashes : []);
    pen.globalAlpha = Math.min(weight + 0.03, 1);
    pen.lineWidth = 0.5 + (thickest - 0.5) * weight;
    pen.beginPath();
    for (const [from, to] of path) {
      pen.moveTo(left, from);
      pen.lineTo(right, to);
    }
    pen.stroke();
  }
  pen.globalAlpha = 1;
  pen.setLineDash([]);
}

function everyPair({ header }) {
  return (visit) => {
    for (let query = 0; query < header.queries.length; query += 1) {
      for (let key = 0; key < header.keys.length; key += 1) visit(query, key);
    }
  };
}

function pairsOf({ header }, { side, index }) {
  const others = side === "query" ? header.keys.length : header.queries.length;
  return (visit) => {
    for (let other = 0; other < others; other += 1) {
      if (side === "query") visit(index, other);
      else visit(other, index);
    }
  };
}

function drawTokens(pen, view) {
  const { header, layout, theme, width } = view;
  const isolated = view.isolated;
  pen.textBaseline = "middle";
  for (const side of ["query", "key"]) {
    const query = side === "query";
    pen.textAlign = query ? "right" : "left";
    const x = query ? layout.left - 7 : layout.right + 7;
    const [from, room] = query ? [layout.gutter, layout.columns[0]] : [layout.right, layout.columns[1]];
    namesOf(header, side, layout.brief).forEach((name, index) => {
      const lit = isolated?.side === side && isolated.index === index;
      if (lit) {
        pen.fillStyle = header[`${side}_colour`];
        pen.globalAlpha = 0.22;
        pen.fillRect(from, index * layout.step, room, layout.step);
        pen.globalAlpha = 1;
      }
      if (header.choices?.chosen[query ? 0 : 1] === index) {
        pen.strokeStyle = header[`${side}_colour`];
        pen.lineWidth = 2;
        pen.strokeRect(from + 1, index * layout.step + 1, room - 2, layout.step - 2);
      }
      pen.font = `${lit ? "600 " : ""}${FONT_SIZE}px ${theme.font}`;
      pen.fillStyle = theme.text;
      writeIn(pen, name, room - 12, x, middleOf(layout, index) + 0.5);
    });
  }
  if (isolated) drawNumbers(pen, view, width);
}

// Beside each token of the other column: each head's weight as a bar and, where it fits, as a number.
function drawNumbers(pen, view, width) {
  const { layout, theme } = view;
  const { side } = view.isolated;
  const shown = view.shownSlots();
  const cell = cellWidth(layout, shown.length);
  const start = side === "query" ? width - layout.gutter : layout.gutter - cell * shown.length;
  const digits = cell >= 38 ? 3 : 2;
  pen.font = `${FONT_SIZE - 1}px ${theme.font}`;
  pen.textAlign = "right";
  shown.forEach((slot, place) => {
    const x = start + place * cell;
    pairsOf(view, view.isolated)((query, key) => {
      const y = (side === "query" ? key : query) * layout.step;
      drawNumber(pen, view, view.weightOf(slot, query, key), [x, y, cell], digits, view.lookOf(slot).colour);
    });
  });
}

function drawNumber(pen, { layout, theme, header }, weight, [x, y, cell], digits, colour) {
  const height = layout.step - 2;
  pen.fillStyle = Number.isNaN(weight) ? hatching(pen, theme) : colour;
  if (Number.isNaN(weight)) return pen.fillRect(x + 1, y + 1, cell - 2, height);
  pen.globalAlpha = 0.12;
  pen.fillRect(x + 1, y + 1, cell - 2, height);
  pen.globalAlpha = 0.55;
  pen.fillRect(x + 1, y + 1, (cell - 2) * Math.min(weight / header.high, 1), height);
  pen.globalAlpha = weight < header.least ? 0.7 : 1;
  pen.fillStyle = theme.text;
  const text = header.high === 1 ? fixed(weight, digits) : written(String(Number(weight.toPrecision(digits))));
  if (cell >= 20) pen.fillText(cell < 28 && header.high === 1 ? brief(text) : text, x + cell - 3, y + layout.step / 2 + 0.5);
  pen.globalAlpha = 1;
}

// ".98" for 0.98, "1.0" for 1.00: in narrow cells.
function brief(text) {
  return text.startsWith("0") ? text.slice(1) : text.slice(0, 3);
}

function cellWidth(layout, shown) {
  return Math.min(layout.gutter / Math.max(shown, 1), 46);
}

// The titles of the columns, and the heads' numbers above their weights.
function drawHeading(canvas, view) {
  const { header, layout, theme, width } = view;
  const pen = sizedCanvas(canvas, width, HEADING);
  pen.textBaseline = "middle";
  for (const [title, x, align, colour] of [
    [tr("queries"), layout.left - 7, "right", header.query_colour],
    [tr("keys"), layout.right + 7, "left", header.key_colour],
  ]) {
    pen.font = `600 ${FONT_SIZE}px ${theme.font}`;
    pen.textAlign = align;
    pen.fillStyle = theme.text;
    pen.fillText(title, x, 9);
    const long = pen.measureText(title).width;
    pen.fillStyle = colour;
    pen.fillRect(align === "right" ? x - long : x, 17, long, 3);
  }
  if (!view.isolated || header.heads.length === 1) return;
  const shown = view.shownSlots();
  const cell = cellWidth(layout, shown.length);
  const start = view.isolated.side === "query" ? width - layout.gutter : layout.gutter - cell * shown.length;
  pen.textAlign = "center";
  pen.font = `${FONT_SIZE - 1}px ${theme.font}`;
  shown.forEach((slot, place) => {
    const { colour } = view.lookOf(slot);
    const x = start + place * cell;
    pen.fillStyle = theme.text;
    pen.fillText(cell >= 44 ? tr("head {head}", { head: header.heads[slot] }) : String(header.heads[slot]), x + cell / 2, 9);
    pen.fillStyle = colour;
    pen.fillRect(x + 1, 17, cell - 2, 3);
  });
}

// The heads' names and line styles, for the saved picture.
function nameHeads(pen, view, y) {
  let x = EDGE;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.font = `12px ${view.theme.font}`;
  for (const slot of view.shownSlots()) {
    const { colour, dashes } = view.lookOf(slot);
    pen.strokeStyle = colour;
    pen.lineWidth = 3;
    pen.setLineDash(dashes);
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x + 30, y);
    pen.stroke();
    pen.fillStyle = view.theme.text;
    const name = tr("head {head}", { head: view.header.heads[slot] });
    pen.fillText(name, x + 36, y);
    x += 54 + pen.measureText(name).width;
  }
  pen.setLineDash([]);
}
