// Draws the whole model: lines as thick as the vectors they carry, boxes, heads in miniature, tokens and candidates.

const THICKEST = 11; // pixels, of the longest vector
const FILL = 0.26; // opacity of a box's colour

function drawModel(canvas, view) {
  const { layout, theme } = view;
  const pen = sizedCanvas(canvas, layout.width, layout.height);
  pen.textBaseline = "middle";
  const draw = { pen, view, layout, theme, most: longestVector(view) };
  for (const frame of layout.frames) drawFrame(draw, frame);
  for (const column of layout.columns.values()) drawFlow(draw, column);
  if (!layout.opened && view.header.memory !== null) drawMemory(draw);
  for (const box of view.boxes) if (layout.places.has(box.name)) drawBox(draw, box, layout.places.get(box.name));
  if (layout.candidates) drawCandidates(draw);
  view.chips = [...layout.columns.values()].flatMap((column) => drawTokens(draw, column));
  return pen;
}

// Of all that the lines carry: vectors of d_model numbers, of the chosen tokens.
function longestVector(view) {
  const vectors = view.boxes.filter(({ part }) => part !== "output" && part !== "softmax");
  const lengths = vectors.flatMap((box) => ["in", "out", "residual"].map((name) => view.value(box, name) ?? 0));
  return Math.max(...lengths, view.header.memory ?? 0);
}

function thickness({ most, layout }, length) {
  return Math.max(((layout.narrow ? 0.6 : 1) * THICKEST * length) / most, 1);
}

function drawFrame({ pen, theme, view, layout }, { layer, column, top, bottom }) {
  const colour = view.header.stacks[column.name];
  pen.globalAlpha = 0.1;
  pen.fillStyle = colour;
  pen.beginPath();
  pen.roundRect(column.left, top, column.width, bottom - top, 10);
  pen.fill();
  pen.globalAlpha = 0.7;
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.stroke();
  pen.save();
  pen.globalAlpha = 0.8;
  pen.fillStyle = theme.text;
  pen.font = `${layout.narrow ? 10 : 11}px ${theme.font}`;
  pen.textAlign = "center";
  const inset = layout.narrow ? 6 : 9;
  const edge = column.outer < 0 ? column.left + inset : column.left + column.width - inset;
  pen.translate(edge, (top + bottom) / 2);
  pen.rotate((column.outer * Math.PI) / 2);
  pen.fillText(tr("layer {layer}", { layer }), 0, 0);
  pen.restore();
  pen.globalAlpha = 1;
}

// The stream upwards through the boxes of a stack, and the residual connections beside them.
function drawFlow(draw, column) {
  const { view, layout, theme } = draw;
  const boxes = view.boxes.filter(({ name, stack }) => stack === column.name && layout.places.has(name));
  const stream = view.header.stacks[column.name];
  let from = { y: column.bottom - TOKENS + 10, length: view.value(boxes[0], "in"), colour: stream };
  let layerStart = null;
  boxes.forEach((box, index) => {
    const place = layout.places.get(box.name);
    const bottom = place.y + place.height;
    const before = boxes[index - 1];
    const starts = box.sublayer && before?.sublayer !== box.sublayer;
    const fork = bottom + (STEP_UP * layout.scale) / 2;
    if (box.layer !== before?.layer) layerStart = fork;
    const apart = starts && box.beside && before?.layer === box.layer;
    drawLine(draw, [[column.middle, from.y], [column.middle, apart ? fork : bottom]], from.length, from);
    if (apart) drawLayerInput(draw, column, place, layerStart, view.value(box, "in"), stream);
    if (starts) drawResidual(draw, column, boxes.slice(index), fork, stream);
    const isOutput = box.part === "output";
    const sublayer = box.sublayer === box.part;
    const off = sublayer && view.isOff(box, "off");
    const length = isOutput ? 0 : view.value(box, "out");
    from = { y: place.y, length, colour: isOutput ? theme.text : sublayer ? box.colour : stream, dashed: off };
  });
  const last = boxes.at(-1);
  if (!layout.opened || last.part === "softmax") return;
  drawLine(draw, [[column.middle, from.y], [column.middle, from.y - 14]], from.length, from);
}

// From the layer's input past its first sub-layer to a second one that reads the same.
function drawLayerInput(draw, column, place, start, length, colour) {
  const { layout } = draw;
  const edge = column.outer < 0 ? place.x + place.width : place.x;
  const x = edge - 0.55 * column.outer * layout.inner;
  const y = place.y + Math.min(place.height / 2, 15);
  drawLine(draw, [[column.middle, start], [x, start], [x, y], [edge, y]], length, { colour });
  drawArrow(draw, [edge, y], [column.outer, 0], length, colour);
}

// From before the sub-layer to the sum after it, around both.
function drawResidual(draw, column, boxes, start, colour) {
  const { view, layout } = draw;
  const sum = boxes.find(({ part, sublayer }) => sublayer === boxes[0].sublayer && /^add/.test(part));
  if (!sum) return;
  const place = layout.places.get(sum.name);
  const edge = column.outer < 0 ? place.x : place.x + place.width;
  const x = edge + column.outer * layout.loop * (layout.narrow ? 0.34 : 0.42);
  const y = place.y + Math.min(place.height / 2, 15);
  const dashed = view.isOff(sum, "residual");
  const length = view.value(sum, "residual");
  drawLine(draw, [[column.middle, start], [x, start], [x, y], [edge, y]], length, { colour, dashed });
  if (!dashed) drawArrow(draw, [edge, y], [-column.outer, 0], length, colour);
}

// What the encoder hands to every cross-attention.
function drawMemory(draw) {
  const { view, layout, pen, theme } = draw;
  const encoder = layout.columns.get("encoder");
  const targets = view.boxes.filter(({ part }) => part === "cross_attn").map(({ name }) => layout.places.get(name));
  const colour = view.header.stacks.encoder;
  const start = view.boxes.filter(({ stack }) => stack === "encoder").at(-1);
  const y = layout.places.get(start.name).y;
  const top = y - AROUND * layout.scale - 12;
  const bus = encoder.left + encoder.width + layout.gutter * 0.3;
  const length = view.header.memory;
  drawLine(draw, [[encoder.middle, y], [encoder.middle, top], [bus, top]], length, { colour });
  for (const place of targets) {
    const middle = place.y + place.height / 2;
    drawLine(draw, [[bus - 8, top], [bus, top], [bus, middle], [place.x, middle]], length, { colour });
    drawArrow(draw, [place.x, middle], [1, 0], length, colour);
  }
  pen.fillStyle = theme.text;
  pen.font = `600 ${layout.narrow ? 10 : 12}px ${theme.font}`;
  pen.textAlign = "right";
  pen.fillText(tr("Memory"), bus - 14, top - 12);
  if (layout.narrow) return;
  const end = bus - 18 - pen.measureText(`${tr("Memory")} `).width;
  pen.globalAlpha = 0.75;
  pen.font = `11px ${theme.font}`;
  const count = view.rowOf("encoder").tokens.length;
  const words = tr("{count} vectors, length {length} on average", { count, length: digits(length) });
  // Smaller where the column has less room than a language's words: a cut first digit would be another number. In
  // Present such words would be too small for the back of a room, and are left out.
  const size = Math.min(1, (end - 4) / pen.measureText(words).width);
  pen.font = `${11 * size}px ${theme.font}`;
  if (size === 1 || !layout.presents) pen.fillText(words, end, top - 12);
  pen.globalAlpha = 1;
}

// Through the points, with round corners.
function drawLine(draw, points, length, { colour, dashed }) {
  const { pen } = draw;
  pen.strokeStyle = colour;
  pen.lineWidth = dashed ? 1.5 : thickness(draw, length);
  pen.globalAlpha = dashed ? 0.6 : 0.85;
  pen.setLineDash(dashed ? [3, 4] : []);
  pen.beginPath();
  pen.moveTo(...points[0]);
  points.slice(1).forEach((point, index) => {
    const next = points[index + 2];
    if (!next) return pen.lineTo(...point);
    const before = towards(point, points[index], 8);
    const after = towards(point, next, 8);
    pen.lineTo(...before);
    pen.quadraticCurveTo(...point, ...after);
  });
  pen.stroke();
  pen.setLineDash([]);
  pen.globalAlpha = 1;
}

// The point at most `distance` pixels, and half the way, from one point to another.
function towards([x, y], [toX, toY], distance) {
  const whole = Math.hypot(toX - x, toY - y) || 1;
  const part = Math.min(distance, whole / 2) / whole;
  return [x + (toX - x) * part, y + (toY - y) * part];
}

function drawArrow(draw, [x, y], [right], length, colour) {
  const { pen } = draw;
  const size = Math.max(thickness(draw, length) * 0.9, 4);
  pen.fillStyle = colour;
  pen.beginPath();
  pen.moveTo(x + right, y);
  pen.lineTo(x - right * size, y - size);
  pen.lineTo(x - right * size, y + size);
  pen.fill();
}

function drawBox(draw, box, place) {
  const { pen, theme, view, layout } = draw;
  const off = view.isOff(box, "off");
  pen.beginPath();
  pen.roundRect(place.x, place.y, place.width, place.height, Math.min(6, place.height / 2));
  pen.fillStyle = theme.background;
  pen.fill();
  pen.globalAlpha = off ? 0.06 : FILL;
  pen.fillStyle = box.colour;
  pen.fill();
  pen.globalAlpha = 1;
  pen.strokeStyle = box.colour;
  pen.lineWidth = 1.2;
  pen.setLineDash(off ? [4, 3] : []);
  pen.stroke();
  pen.setLineDash([]);
  if (layout.opened) drawOpened(draw, box, place, off);
  else drawClosed(draw, box, place, off);
}

// One line: name, heads in miniature, the vector's length; along the bottom the share, of the sum or of the most parameters.
function drawClosed(draw, box, place, off) {
  const { pen, theme, view, layout } = draw;
  const small = isSmall(box);
  if (small && layout.presents) return;
  const measured = view.counts ? box.parameters && !box.shared : view.has(box, "share");
  const share = measured && !small && !off && !layout.presents;
  const middle = place.y + (place.below ? 12 : place.height / 2 - (share ? 1 : 0)) + 0.5;
  const least = layout.presents ? LEAST_LABEL : small ? 9 : 10;
  const size = Math.max((small ? 11 : layout.narrow ? 11.5 : 13.5) * Math.sqrt(layout.scale), least);
  const brief = place.width < (box.heads && !place.below ? 290 : 180);
  const state = off ? `: ${tr("off")}` : small && view.isOff(box, "residual") ? `, ${tr("no residual")}` : "";
  const [left, right] = [place.x + 8, place.x + place.width - 8];
  pen.fillStyle = theme.text;
  pen.font = `${small || box.part === "positions" ? "" : "600 "}${size}px ${theme.font}`;
  pen.textAlign = "left";
  const title = (brief ? box.short : box.title) + state;
  writeIn(pen, title, place.width - 50, left, middle);
  const used = left + Math.min(pen.measureText(title).width, place.width - 50) + 8;
  pen.font = `${Math.min(size, 11)}px ${theme.font}`;
  pen.textAlign = "right";
  pen.fillText(view.numberOf(box), right, middle);
  const room = right - 40 - used;
  if (box.heads && !off) {
    const [width, height] = place.below ? [place.width - 16, 22] : [room, place.height - 8];
    const side = Math.min(height, Math.floor(width / box.heads.count) - 2);
    const x = place.below ? left : right - 40 - box.heads.count * (side + 2);
    const y = place.below ? place.y + 21 : middle - side / 2;
    if (side >= 5) drawHeads(draw, box, [x, y], side, side + 2);
  } else if (!small && room > 90 && box.parameters && !view.counts) {
    pen.globalAlpha = 0.85;
    pen.fillText(tr("{count} parameters", { count: compact(box.parameters) }), right - 46, middle);
    pen.globalAlpha = 1;
  }
  if (share) drawShare(draw, box, place);
}

// The share of the new in the sum, or of the most parameters, as a line along the bottom of the box.
function drawShare({ pen, view }, box, place) {
  const [x, y, width] = [place.x + 4, place.y + place.height - 3, place.width - 8];
  const share = view.counts ? box.parameters / view.most : view.value(box, "share");
  pen.fillStyle = box.colour;
  pen.globalAlpha = 0.3;
  pen.fillRect(x, y, width, 2);
  pen.globalAlpha = 1;
  pen.fillRect(x, y, width * share, 2);
}

// Name, size and work, the words with their numbers, and the heads.
function drawOpened(draw, box, place, off) {
  const { pen, theme, view, layout } = draw;
  const [x, right] = [place.x + 12, place.x + place.width - 12];
  let y = place.y + 18;
  pen.fillStyle = theme.text;
  pen.textAlign = "left";
  pen.font = `600 14px ${theme.font}`;
  pen.fillText(off ? `${box.title}: ${tr("off")}` : box.title, x, y);
  pen.textAlign = "right";
  pen.font = `12px ${theme.font}`;
  pen.fillText(view.has(box, "share") && !off ? `${tr("share")} ${percent(view.value(box, "share"))}` : "", right, y);
  pen.textAlign = "left";
  pen.font = `13px ${theme.font}`;
  for (const line of purposeLines(box, place.width)) pen.fillText(line, x, (y += ROW_OF_WORDS));
  pen.globalAlpha = 0.75;
  y += ROW_OF_WORDS;
  drawFormula(pen, sizeOf(box, layout.narrow), [x, y], ["", 12, theme.font]);
  pen.globalAlpha = 1;
  for (const [formula, text] of box.words) {
    y += ROW_OF_WORDS;
    drawFormula(pen, formula, [x, y], ["italic ", 13, theme.font]);
    pen.font = `13px ${theme.font}`;
    if (layout.narrow) y += ROW_OF_WORDS;
    const start = x + (layout.narrow ? 10 : Math.min(190, 0.36 * place.width));
    writeIn(pen, view.fill(text, box), right - start, start, y);
  }
  if (!box.heads) return;
  const side = headSide(box, place.width);
  drawHeads(draw, box, [x, y + 14], side, side + 5);
  pen.font = `11px ${theme.font}`;
  pen.textAlign = "center";
  for (let head = 0; head < box.heads.count; head += 1) {
    pen.fillText(String(head), x + head * (side + 5) + side / 2, y + side + 23);
  }
}

// Letters after an underscore are a subscript.
function drawFormula(pen, formula, [x, y], [style, size, font]) {
  for (const [index, text] of formulaParts(formula).entries()) {
    pen.font = `${style}${index % 2 ? LEAST_LABEL : size}px ${font}`;
    pen.fillText(text, x, y + (index % 2 ? 4 : 0));
    x += pen.measureText(text).width;
  }
}

// Text and subscripts in turn: "x · W_Q" is ["x · W", "Q", ""].
function formulaParts(formula) {
  return formula.split(/_(\p{L}+|\d+)/u);
}

// Every head, (query, key), from left to right; on large ones the row of the chosen token is framed.
function drawHeads({ pen, view, theme }, box, [x, y], side, step) {
  const { count, queries, cells } = box.heads;
  pen.save();
  for (let head = 0; head < count; head += 1) {
    pen.imageSmoothingEnabled = false;
    pen.drawImage(view.headImage(box, head), x + head * step, y, side, side);
    pen.strokeStyle = theme.text;
    pen.globalAlpha = 0.35;
    pen.lineWidth = 0.5;
    pen.strokeRect(x + head * step, y, side, side);
    pen.globalAlpha = 1;
    if (side < 30) continue;
    const row = Math.floor((view.positions[box.stack] * cells[0]) / queries);
    pen.strokeStyle = theme.primary;
    pen.lineWidth = 1.5;
    pen.strokeRect(x + head * step, y + (row * side) / cells[0], side, side / cells[0]);
  }
  pen.restore();
}

// The chosen token in the middle of its neighbours; returns where each one is.
function drawTokens({ pen, view, theme }, column) {
  const { tokens, title } = view.rowOf(column.name);
  const chosen = view.positions[column.name];
  const [top, height] = [column.bottom - TOKENS + 10, 22];
  pen.font = `600 12px ${theme.font}`;
  pen.textAlign = "center";
  const middle = column.middle;
  const chips = [];
  const add = (index, x, width) => chips.push({ stack: column.name, index, x, y: top, width, height });
  const wide = (index) => Math.min(pen.measureText(tokens[index]).width + 14, column.width * 0.6);
  const own = wide(chosen);
  add(chosen, middle - own / 2, own);
  for (let [index, x] = [chosen - 1, middle - own / 2]; index >= 0; index -= 1) {
    x -= wide(index) + 3;
    if (x < column.left) break;
    add(index, x, wide(index));
  }
  for (let [index, x] = [chosen + 1, middle + own / 2 + 3]; index < tokens.length; index += 1) {
    if (x + wide(index) > column.left + column.width) break;
    add(index, x, wide(index));
    x += wide(index) + 3;
  }
  for (const { index, x, y, width } of chips) {
    const lit = index === chosen;
    pen.beginPath();
    pen.roundRect(x, y, width, height, 6);
    pen.fillStyle = lit ? view.header.stacks[column.name] : theme.panel;
    pen.globalAlpha = lit ? 0.45 : 1;
    pen.fill();
    pen.globalAlpha = lit ? 1 : 0.75;
    pen.fillStyle = theme.text;
    pen.font = `${lit ? "600 " : ""}12px ${theme.font}`;
    writeIn(pen, tokens[index], width - 8, x + width / 2, y + height / 2 + 0.5);
  }
  pen.globalAlpha = 0.75;
  pen.font = `11px ${theme.font}`;
  pen.fillText(tr("{title}, token {chosen} of {count}", { title, chosen, count: tokens.length }), middle, top + height + 8);
  pen.globalAlpha = 1;
  return chips;
}

function drawCandidates(draw) {
  const { pen, view, theme, layout } = draw;
  const { left, width, top, beside } = layout.candidates;
  const softmax = view.boxes.at(-1);
  const { candidates, predicts, tokens } = view.rowOf(softmax.stack);
  const position = view.positions[softmax.stack];
  const place = layout.places.get(softmax.name);
  const y = place.y + place.height / 2;
  pen.strokeStyle = softmax.colour;
  pen.lineWidth = 2;
  pen.beginPath();
  if (beside) [pen.moveTo(place.x, y), pen.lineTo(left + width + 4, y)];
  else [pen.moveTo(place.x + place.width / 2, place.y), pen.lineTo(place.x + place.width / 2, place.y - 10)];
  pen.stroke();
  pen.font = `600 12px ${theme.font}`;
  pen.textAlign = "left";
  pen.fillStyle = theme.text;
  const said = softmax.stack === "decoder" ? tr("Next token after") : tr("Token at the place of");
  writeIn(pen, `${said} ${inQuotes(tokens[position])}`, width, left + 2, top + 9);
  const label = Math.min(0.36 * width, 110);
  candidates[position].slice(0, layout.most).forEach(([token, share], index) => {
    const row = top + 20 + index * CANDIDATE;
    pen.fillStyle = softmax.colour;
    pen.globalAlpha = 0.25;
    pen.fillRect(left + label + 6, row + 2, width - label - 52, CANDIDATE - 5);
    pen.globalAlpha = 1;
    pen.fillRect(left + label + 6, row + 2, (width - label - 52) * share, CANDIDATE - 5);
    pen.fillStyle = theme.text;
    pen.font = `${token === predicts[position] ? "600 " : ""}12px ${theme.font}`;
    pen.textAlign = "right";
    writeIn(pen, token, label, left + label, row + CANDIDATE / 2);
    pen.font = `11px ${theme.font}`;
    pen.fillText(percent(share), left + width, row + CANDIDATE / 2);
  });
  pen.textAlign = "left";
  pen.font = `12px ${theme.font}`;
  writeIn(pen, `${tr("log p of the text")}: ${view.score()}`, width, left + 2, top + layout.most * CANDIDATE + AROUND_CANDIDATES - 12);
}

// The chosen box, the one under the pointer, and the token that travels.
function drawMarksOfModel(canvas, view) {
  const { layout, theme } = view;
  const pen = sizedCanvas(canvas, layout.width, layout.height);
  for (const [box, thick, colour] of [[view.hovered?.box, 1.5, theme.text], [view.box, 3, theme.primary]]) {
    const place = box && layout.places.get(box.name);
    if (!place) continue;
    pen.strokeStyle = colour;
    pen.lineWidth = thick;
    pen.beginPath();
    pen.roundRect(place.x - 1.5, place.y - 1.5, place.width + 3, place.height + 3, 7);
    pen.stroke();
  }
  drawTraveller(pen, view);
}

// A pill with the token: at the inner side of the box, or where it enters an opened one.
function drawTraveller(pen, view) {
  const { layout, theme, box, traveller } = view;
  if (!layout.places.has(box.name)) return;
  const token = view.rowOf(box.stack).tokens[view.positions[box.stack]];
  pen.font = `600 ${layout.narrow ? 10 : 12}px ${theme.font}`;
  const text = shortened(pen, token, layout.narrow ? 44 : 84);
  const width = pen.measureText(text).width + 16;
  const { inside, outer, middle } = layout.columns.get(box.stack);
  const beside = outer < 0 ? inside[0] + inside[1] - 6 : inside[0] - width + 6;
  const x = clamp(layout.opened ? middle - width / 2 : beside, 2, layout.width - width - 2);
  pen.beginPath();
  pen.roundRect(x, traveller - 10, width, 20, 10);
  pen.fillStyle = theme.primary;
  pen.fill();
  pen.strokeStyle = theme.background;
  pen.lineWidth = 1.5;
  pen.stroke();
  pen.fillStyle = theme.background;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(text, x + width / 2, traveller + 0.5);
}

// Shapes, parameters and multiply-adds.
function sizeOf(box, narrow) {
  const parts = [narrow ? "" : box.shape];
  const count = written((box.parameters || 0).toLocaleString("en"));
  const learned = box.shared ? tr("{count} parameters, those of the embedding", { count }) : tr("{count} parameters", { count });
  if (box.parameters) parts.push(learned);
  if (box.work) parts.push(tr("{count} multiply-adds", { count: compact(box.work) }));
  return parts.filter(Boolean).join("; ") || tr("nothing learned");
}

// 2.05M, in the units of the page's language: 2,05 Mio., 205万.
function compact(number) {
  return number.toLocaleString(document.documentElement.lang || "en", { notation: "compact", maximumSignificantDigits: 3 });
}

function percent(share) {
  return `${fixed(100 * share, share < 0.0995 ? 1 : 0)} %`;
}

// Three digits, with commas: 0.0123, 24.8, 13,600
function digits(number) {
  return written(number.toLocaleString("en", { maximumSignificantDigits: 3 }));
}
