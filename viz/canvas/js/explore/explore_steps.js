// needs: shared/grid.js
// The boxes, in the order of reading. Vectors are blocks of coloured cells; what has a number for each key has a column for
// each key, so that scores, mask and weights of a key stand below each other.

const MOST_KEYS = 120; // beside each other; of more, those with the largest weights are shown
const NUMBER = 16; // pixels of the number above the bar of a weight

class Steps {
  constructor(view) {
    this.view = view;
    this.node = element("div", "steps");
    this.badge = element("span", "state");
    this.output = element("output", "tau");
    const name = element("span", "", tr("temperature"));
    this.control = element("label", "control", name, this.output, view.slider.input, this.badge);
  }

  draw() {
    const { view } = this;
    this.node.hidden = view.opened !== null;
    this.shown = this.keysShown();
    const symbols = view.boxes.map(({ name, parts }) => [name, parts.map((part) => part.symbol || part)]);
    const made = JSON.stringify([symbols, this.shown, view.keys.labels, view.header.taus.length]);
    if (made !== this.made) this.build();
    this.made = made;
    if (this.node.hidden) return;
    view.boxes.forEach((box, index) => {
      const { title, why } = this.titles[index];
      title.replaceChildren(element("span", "number", String(index + 1)), subscripted(box.title));
      title.setAttribute("aria-label", `${index + 1}, ${box.title.replace(/_/g, " ")}: ${tr("open the full matrices")}`);
      why.textContent = why.title = box.why;
    });
    this.blocks.forEach((block) => this.drawBlock(block));
    this.labels.forEach(({ node, key }) => this.drawLabel(node, key));
    for (const line of this.lines) this.drawLine(line);
    this.stop();
    this.reveal();
  }

  // Of a long text, the chosen key is in view; afterwards the person scrolls.
  reveal() {
    const { header } = this.view;
    const place = JSON.stringify([header.query, header.key, header.kind, header.place]);
    const label = this.labels.find(({ key }) => key === header.key);
    if (place === this.revealed || !label) return;
    this.revealed = place;
    const scroller = this.node.querySelector(".scroller");
    const [box, name] = [scroller, label.node].map((node) => node.getBoundingClientRect());
    if (name.left < box.left || name.right > box.right) scroller.scrollLeft += name.left - box.left - box.width / 2;
  }

  // All keys, or of many those with the largest weights, in their order.
  keysShown() {
    const { keys, weights, header } = this.view;
    const all = Array.from({ length: keys.size }, (_, key) => key);
    if (keys.size <= MOST_KEYS) return all;
    const largest = new Set([...all].sort((one, other) => weights[other] - weights[one]).slice(0, MOST_KEYS));
    return all.filter((key) => largest.has(key) || key === header.key);
  }

  build() {
    const { view } = this;
    [this.blocks, this.lines, this.labels, this.titles] = [[], [], [], []];
    const [nodes, keyed] = [[], element("div", "keyed")];
    view.boxes.forEach((box, index) => {
      const wide = box.parts[0].columns.name === "key";
      if (wide && !keyed.children.length) keyed.append(this.buildLabels());
      const node = this.buildStep(box, index, wide);
      if (wide) keyed.append(node);
      else nodes.push(node);
      if (wide && keyed.children.length === 2) nodes.push(this.scroller(keyed));
    });
    const end = nodes.findIndex((node) => node.classList.contains("edges"));
    const first = element("div", "first", view.picker.node, ...nodes.splice(0, end));
    this.node.replaceChildren(first, ...nodes);
    const { keys } = view;
    this.node.style.setProperty("--keys", this.shown.length);
    const fewer = this.shown.length < keys.size;
    this.note.textContent = fewer ? tr("{shown} of {keys} keys: those with the largest weights", { shown: this.shown.length, keys: keys.size }) : "";
  }

  // Where keys lie beyond an edge, the edge says so.
  scroller(keyed) {
    const outer = element("div", "scroller", keyed);
    const edges = element("div", "edges", outer);
    const mark = () => {
      edges.toggleAttribute("data-before", outer.scrollLeft > 1);
      edges.toggleAttribute("data-after", outer.scrollLeft < outer.scrollWidth - outer.clientWidth - 1);
    };
    outer.addEventListener("scroll", mark);
    new ResizeObserver(mark).observe(outer);
    return edges;
  }

  buildLabels() {
    this.note = element("span", "note");
    const buttons = this.shown.map((key) => {
      const node = element("button", "key-name", this.view.keys.labels[key]);
      node.addEventListener("click", () => this.view.chooseKey(key));
      node.addEventListener("focus", () => this.view.say(this.view.keyInWords(key)));
      this.labels.push({ node, key });
      return node;
    });
    this.keyNames = strip("labels", tr("Keys: choose one"), this.note, element("div", "cells", ...buttons));
    return this.keyNames;
  }

  drawLabel(node, key) {
    const { header } = this.view;
    node.classList.toggle("chosen", key === header.key);
    node.title = this.view.keys.labels[key];
    node.setAttribute("aria-label", this.view.keyInWords(key));
    node.setAttribute("aria-pressed", String(key === header.key));
  }

  stop() {
    const chosen = this.labels.find(({ key }) => key === this.view.header.key) || this.labels[0];
    if (!this.keyNames.contains(this.keyNames.getRootNode().activeElement)) stopAt(this.keyNames, chosen.node);
  }

  buildStep(box, index, wide) {
    const title = element("button", "name");
    title.dataset.box = box.name;
    title.setAttribute("aria-expanded", "false");
    title.addEventListener("click", () => this.view.toggle(box.name));
    const why = element("span", "why");
    const head = element("div", "head", title, why);
    this.titles.push({ title, why });
    if (box.name === "softmax") this.softmax = head;
    const content = wide ? this.buildLine(box) : this.buildBlocks(box);
    return element("section", `step ${wide ? "wide" : "half"} ${box.name}`, head, content);
  }

  buildBlocks(box) {
    const nodes = box.parts.map((part) => {
      if (!part.rows) return element("span", "operator", part);
      const [caption, canvas] = [element("figcaption"), element("canvas")];
      const block = { box: box.name, symbol: part.symbol, caption, canvas };
      new Grid(this.view, this.cellsOf(block), canvas);
      this.blocks.push(block);
      return element("figure", "block", caption, canvas);
    });
    return element("div", "blocks", ...nodes);
  }

  partOf({ box, symbol }) {
    return this.view.boxes.find(({ name }) => name === box).parts.find((part) => part.symbol === symbol);
  }

  valuesOf(part) {
    return part.symbol === "z" ? this.view.mixture : this.view.row(part);
  }

  drawBlock(block) {
    const { view } = this;
    const part = this.partOf(block);
    const { names } = view.header;
    const whole = ["embedding", "position"].includes(part.symbol); // no room for more
    const whose = element("span", "of", whole ? "" : ` ${tr("of {name}", { name: names[part.rows.name] })}`);
    const said = { embedding: tr("embedding"), position: tr("position") }[part.symbol] ?? part.symbol;
    const symbol = element("b", part.symbol, subscripted(said));
    block.caption.replaceChildren(symbol, whose);
    block.caption.title = block.caption.textContent; // where it is too long for the box
    const values = this.valuesOf(part);
    const facts = { symbol: part.symbol.replace(/_/g, " "), name: names[part.rows.name], count: values.length };
    block.canvas.setAttribute("aria-label", tr("{symbol} of {name}: {count} numbers. The arrow keys read them.", facts));
    const [width, height] = [Math.max(Math.floor(block.canvas.parentNode.clientWidth), 20), 18];
    const pen = sizedCanvas(block.canvas, width, height);
    drawCellsOf(pen, values, part, view.tables[part.scale], width, height);
    frame(pen, [0.5, 0.5, width - 1, height - 1], view.theme.text, 0.35);
  }

  buildLine(box) {
    const nodes = this.shown.map((key) => {
      const cell = element("span", "cell");
      cell.dataset.key = key;
      if (box.name === "softmax") cell.append(element("i"), element("b"));
      return cell;
    });
    const cells = element("div", "cells", ...nodes);
    cells.setAttribute("aria-hidden", "true");
    cells.addEventListener("pointermove", (event) => this.hoverCell(box.name, event));
    cells.addEventListener("pointerleave", () => this.leave());
    cells.addEventListener("click", (event) => {
      const cell = event.target.closest("[data-key]");
      if (cell) this.view.chooseKey(Number(cell.dataset.key));
    });
    this.lines.push({ name: box.name, nodes });
    return cells;
  }

  drawLine({ name, nodes }) {
    const { view } = this;
    const [part] = view.boxes.find((box) => box.name === name).parts;
    const values = name === "softmax" ? view.weights : view.row(part);
    nodes.forEach((cell, index) => {
      const key = this.shown[index];
      const seen = view.visible(key);
      cell.classList.toggle("chosen", key === view.header.key);
      cell.classList.toggle("hidden", !seen && name !== "scores" && name !== "divided");
      if (name === "mask") cell.textContent = seen ? "✓" : "";
      else if (name === "softmax") this.drawWeight(cell, values[key], seen);
      else this.drawScore(cell, values[key], part, seen || name !== "before");
    });
  }

  drawWeight(cell, weight, seen) {
    const [bar, text] = cell.children;
    bar.style.height = seen ? `max(${weight} * (100% - ${NUMBER}px), 1px)` : "0";
    text.textContent = seen ? (weight < 0.005 ? "0" : fixed(weight, 2)) : "";
  }

  drawScore(cell, value, part, seen) {
    const colour = colourOf(this.view.tables[part.scale], value, part.low, part.high);
    cell.style.background = seen ? `rgb(${colour.join()})` : "";
    cell.style.color = seen ? inkOn(colour) : "";
    cell.textContent = seen ? scoreInCell(value) : "";
  }

  // What changes with τ.
  redraw() {
    const { view } = this;
    const { slider, again } = view;
    this.control.hidden = !view.header.taus.length;
    if (!this.control.hidden) {
      const state = again ? (slider.waits ? tr("running …") : tr("redrawn")) : slider.ran === 1 ? tr("the run") : tr("rerun");
      slider.show(state);
      this.output.textContent = `τ = ${slider.text}`;
      this.badge.textContent = state;
      this.badge.title = again
        ? tr("Weights and weighted values are computed in the browser; the output below is the run's. Let go to run the model.")
        : tr("As in the run");
    }
    if (this.node.hidden) return;
    this.drawLine(this.lines.find(({ name }) => name === "softmax"));
    for (const block of this.blocks.filter(({ symbol }) => symbol === "z")) this.drawBlock(block);
  }

  hoverCell(name, event) {
    const cell = event.target.closest("[data-key]");
    if (!cell) return;
    const { view } = this;
    const key = Number(cell.dataset.key);
    const [part] = view.boxes.find((box) => box.name === name).parts;
    const value = name === "softmax" ? view.weights[key] : view.row(part)[key];
    const number = name === "mask" ? (view.visible(key) ? tr("visible") : tr("masked")) : exactText(value);
    const [query, label] = [view.header.names.query, view.keys.labels[key]];
    view.showTip([`${singular(part.symbol)} ${number}`, `${tr("query")} ${query}`, `${tr("key")} ${label}`], event);
    view.chips.point(key);
  }

  leave() {
    this.view.tip.hidden = true;
    this.view.chips.point(null);
  }

  // What the grid of a block is.
  cellsOf(block) {
    const part = () => this.partOf(block);
    // The last row may be shorter.
    const at = ([row, column]) => Math.min(row * shapeOf(part().columns.size)[1] + column, part().columns.size - 1);
    const valueAt = (cell) => exactText(this.valuesOf(part())[at(cell)]);
    return {
      get layout() {
        const [rows, columns] = shapeOf(part().columns.size);
        const { clientWidth, clientHeight } = block.canvas;
        return { left: 0, top: 0, width: clientWidth / columns, height: clientHeight / rows, rows, columns };
      },
      start: () => [0, 0],
      point: () => {},
      describe: (cell) => {
        const { symbol, columns } = part();
        const facts = { symbol: symbol.replace("_", ""), at: at(cell), size: columns.size };
        return [valueAt(cell), tr("{symbol}, dimension {at} of {size}", facts)];
      },
      say: (cell) => `${tr("dimension {column}", { column: at(cell) })}: ${valueAt(cell)}`,
    };
  }
}

// Rows and columns of a block of cells: one row of up to 64, else four.
function shapeOf(size) {
  const rows = size <= 64 ? 1 : 4;
  return [rows, Math.ceil(size / rows)];
}

function drawCellsOf(pen, values, { low, high }, table, width, height) {
  const [rows, columns] = shapeOf(values.length);
  const colours = packedColours(table);
  const colourAt = (at) => (at < values.length ? colours[colourStep(values[at], low, high)] : 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(imageOf(columns, rows, colourAt), 0, 0, width, height);
}

function scoreInCell(value) {
  if (!Number.isFinite(value)) return "−∞";
  const size = Math.abs(value);
  return fixed(value, size < 9.95 ? 2 : size < 99.5 ? 1 : 0);
}
