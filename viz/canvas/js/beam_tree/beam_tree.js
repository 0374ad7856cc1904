// needs: shared/mount.js shared/colours.js shared/save_picture.js
// The beam_tree component: a beam search as a tree, a column for each step, its most probable prefix in the top row.

const WIDE = 144; // pixels from column to column
const TALL = 29; // pixels from row to row
const BOX = [114, 23];
const HEAD = 26; // pixels above the first row
const FATES = {
  kept: tr("kept: extended"),
  finished: tr("finished"),
  pruned: tr("pruned: not among the best"),
  left: tr("left: enough were finished"),
};
const KEYS = tr("Arrow keys move through the tree, Enter goes to a step or pins a prefix.");

class View {
  constructor(root) {
    [this.root, this.zoom] = [root, 1];
    this.stage = element("div", "stage");
    this.tip = element("div", "tip");
    this.tip.setAttribute("aria-live", "polite");
    root.append(this.bar(), this.stage, this.tip);
    root.addEventListener("save-picture", ({ detail }) => this.save(detail));
  }

  bar() {
    const kinds = [["winner", tr("best score")], ["kept", tr("kept")], ["finished", tr("finished")], ["pruned", tr("pruned")]];
    const label = element("label", "", tr("pruned ones"));
    this.pruned = element("input");
    Object.assign(this.pruned, { type: "checkbox", checked: true });
    this.pruned.addEventListener("change", () => this.build());
    label.prepend(this.pruned);
    return element(
      "div",
      "bar",
      ...kinds.map(([kind, name]) => legend(kind, name)),
      element("span", "space"),
      label,
      button("−", tr("Zoom out"), () => this.scale(this.zoom / 1.25)),
      button("+", tr("Zoom in"), () => this.scale(this.zoom * 1.25)),
      button("SVG", tr("Save the tree as an SVG file"), () => this.save({ format: "svg", file: "beam-tree", caption: [] })),
    );
  }

  update({ data, setTriggerValue }) {
    const moved = !this.data || this.data.step !== data.step || this.data.nodes.length !== data.nodes.length;
    this.send = setTriggerValue;
    const text = JSON.stringify(data);
    if (text === this.text) return;
    Object.assign(this, { data, text, pinned: undefined });
    this.root.style.setProperty("--winner", data.colour);
    this.build();
    if (moved) this.centre();
  }

  build() {
    const { nodes } = this.data;
    this.shown = nodes.map((node) => this.pruned.checked || node.fate !== "pruned");
    this.winner = new Set(this.data.winner);
    const steps = nodes[nodes.length - 1].step + 1;
    const rows = nodes.reduce((most, node, id) => (this.shown[id] ? Math.max(most, node.rank) : most), 0) + 1;
    this.size = [(steps + 1) * WIDE + 10, HEAD + rows * TALL + 8];
    this.svg = svgElement("svg", { viewBox: `0 0 ${this.size.join(" ")}`, role: "group" });
    this.svg.setAttribute("aria-label", `${tr("Tree of the beam search, {steps} steps.", { steps })} ${KEYS}`);
    this.edges = nodes.map((node, id) => this.shown[id] && this.edge(node, id));
    this.boxes = nodes.map((node, id) => this.shown[id] && this.box(node, id));
    const heads = Array.from({ length: steps }, (_, step) => this.head(step));
    // The most important edges are drawn last, above the others.
    const order = this.edges.filter(Boolean).sort((one, other) => weight(one) - weight(other));
    this.svg.append(...heads, ...order, this.start(), ...this.boxes.filter(Boolean));
    const focus = this.focused();
    this.stage.replaceChildren(this.svg);
    this.scale(this.zoom);
    this.rest();
    if (focus) this.svg.querySelector(focus)?.focus({ preventScroll: true });
  }

  // A selector of the node or step that has the focus: the new tree gives the focus back to it.
  focused() {
    const { node, step } = this.root.getRootNode().activeElement?.dataset ?? {};
    if (node) return `[data-node="${node}"]`;
    return step && `[data-step="${step}"]`;
  }

  place({ step, rank }) {
    return [8 + (step + 1) * WIDE, HEAD + rank * TALL];
  }

  start() {
    const group = svgElement("g", { class: "node kept" });
    group.append(rectangle([8, HEAD], BOX), label([18, HEAD + 16], cut(this.data.start, 8), "", this.data.start));
    return group;
  }

  edge(node, id) {
    const from = node.parent < 0 ? [8, HEAD] : this.place(this.data.nodes[node.parent]);
    const to = this.place(node);
    const [x, y] = [from[0] + BOX[0], from[1] + BOX[1] / 2];
    const [end, low] = [to[0], to[1] + BOX[1] / 2];
    const bend = (end - x) / 2;
    const kind = this.winner.has(id) ? "winner" : node.fate;
    return svgElement("path", { class: kind, d: `M${x} ${y} C${x + bend} ${y} ${end - bend} ${low} ${end} ${low}` });
  }

  box(node, id) {
    const [x, y] = this.place(node);
    const best = this.winner.has(id);
    const group = svgElement("g", { class: `node ${node.fate}${best ? " winner" : ""}`, tabindex: "-1", role: "button" });
    group.dataset.node = id;
    group.setAttribute("aria-label", this.inWords(id));
    const ends = node.fate === "finished" ? (this.data.winner.at(-1) === id ? "★ " : "■ ") : "";
    const number = node.fate === "finished" ? node.score : node.total;
    group.append(
      rectangle([x, y], BOX),
      label([x + 7, y + 15.5], ends + cut(node.label, ends ? 6 : 8), "", ends + node.label),
      label([x + BOX[0] - 5, y + 15.5], fixed(number, 2), "number"),
    );
    group.addEventListener("pointerenter", () => this.trace(id));
    group.addEventListener("pointerleave", () => this.rest());
    group.addEventListener("focus", () => this.trace(id));
    group.addEventListener("click", () => this.choose(id));
    group.addEventListener("keydown", (event) => this.key(event, id));
    return group;
  }

  head(step) {
    const now = step === this.data.step;
    const group = svgElement("g", { class: `step${now ? " now" : ""}`, role: "button", tabindex: now ? "0" : "-1" });
    group.dataset.step = step;
    group.setAttribute("aria-label", now ? tr("Step {step}, chosen", { step }) : tr("Step {step}", { step }));
    const x = (step + 1) * WIDE - 6;
    const band = rectangle([x, 0], [WIDE - 4, now ? this.size[1] : HEAD - 4]);
    band.setAttribute("class", "band");
    if (!now) band.setAttribute("fill-opacity", "0");
    group.append(band, label([x + 14, 16], tr("step {step}", { step }), ""));
    group.addEventListener("click", () => this.send("step", step));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.send("step", step);
      if (event.key === "ArrowDown") this.focus(this.data.nodes.findIndex((node) => node.step === step));
    });
    return group;
  }

  // A click pins this prefix; the page shows the attention of a finished one.
  choose(id) {
    this.pinned = id;
    this.trace(id);
    if (this.data.nodes[id].fate === "finished") this.send("pick", this.data.ranked.indexOf(id));
  }

  // Traces the pinned prefix or the chosen sentence while nothing is under the pointer.
  rest() {
    this.trace(this.pinned ?? this.data.chosen.at(-1));
  }

  // Marks the path from the start to this node and shows its numbers below.
  trace(id) {
    for (const old of this.svg.querySelectorAll(".traced")) old.classList.remove("traced");
    for (const box of this.svg.querySelectorAll(".node[tabindex='0']")) box.setAttribute("tabindex", "-1");
    this.boxes[id]?.setAttribute?.("tabindex", "0");
    const words = [];
    for (let node = id; node >= 0; node = this.data.nodes[node].parent) {
      if (id !== this.data.winner.at(-1)) {
        this.boxes[node]?.classList?.add("traced");
        this.edges[node]?.classList?.add("traced");
      }
      words.unshift(this.data.nodes[node].label);
    }
    this.tip.replaceChildren(element("div", "", this.inWords(id)), element("div", "", words.slice(-24).join(" ")));
  }

  inWords(id) {
    const { step, label: name, fate, token, total, score } = this.data.nodes[id];
    const facts = { step, name, token: fixed(token, 5), prefix: fixed(total, 5), score: fixed(score, 5), fate: FATES[fate] };
    return tr("Step {step}: {name}. log p of the token {token}, of the prefix {prefix}, over the length penalty {score}. {fate}.", facts);
  }

  key(event, id) {
    const { nodes } = this.data;
    const beside = (step, by) => nodes.findIndex((n, i) => this.shown[i] && n.step === step && n.rank === by);
    const { step, rank, parent } = nodes[id];
    const to = {
      ArrowLeft: parent,
      ArrowRight: nodes.findIndex((node, i) => this.shown[i] && node.parent === id),
      ArrowUp: beside(step, rank - 1),
      ArrowDown: beside(step, rank + 1),
    }[event.key];
    if (event.key === "Enter" || event.key === " ") this.choose(id);
    else if (to === undefined) return;
    event.preventDefault();
    if (to >= 0) this.focus(to);
  }

  focus(id) {
    const box = this.boxes[id];
    if (!box) return;
    box.focus({ preventScroll: true });
    box.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  scale(zoom) {
    this.zoom = clamp(zoom, 0.3, 2);
    this.svg.setAttribute("width", this.size[0] * this.zoom);
    this.svg.setAttribute("height", this.size[1] * this.zoom);
  }

  centre() {
    const middle = ((this.data.step + 1.4) * WIDE) * this.zoom;
    this.stage.scrollLeft = middle - this.stage.clientWidth / 2;
  }

  // The file has no style sheet: each shape gets its computed style.
  save({ format, file, caption }) {
    const tree = this.svg.cloneNode(true);
    const copies = tree.querySelectorAll("*");
    this.svg.querySelectorAll("*").forEach((node, index) => {
      const style = getComputedStyle(node);
      const names = ["fill", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity"];
      if (node.tagName === "text") names.push("font-size", "font-weight", "font-family");
      for (const name of names) copies[index].style.setProperty(name, style.getPropertyValue(name));
      if (node.dataset.whole) writeWhole(copies[index], node.textContent, node.dataset.whole);
    });
    const canvas = new SvgCanvas();
    const range = tr("Numbers: log p of the prefix, of a finished one (■, the best ★) its score; dashed: pruned");
    const titles = { title: tr("Beam search, step by step"), range, caption };
    const { pen, size, top } = startPicture(canvas, this.size, themeOf(this.root), titles);
    for (const [name, value] of Object.entries({ x: EDGE, y: top, width: this.size[0], height: this.size[1] })) {
      tree.setAttribute(name, value);
    }
    pen.add("g", {}).append(tree);
    const svg = canvas.node(...size);
    if (format === "svg") downloadSvg(svg, file);
    else rasterise(svg, size).then((blob) => download(blob, `${file}.png`));
  }
}

// The picture as a PNG file with two pixels for each of its own.
async function rasterise(svg, [width, height]) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;
  await image.decode();
  const canvas = element("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
  return new Promise((resolve) => canvas.toBlob(resolve));
}

function legend(kind, name) {
  const svg = svgElement("svg", { viewBox: "0 0 26 16", "aria-hidden": "true" });
  const group = svgElement("g", { class: `node ${kind}` });
  group.append(rectangle([2, 2], [22, 12]));
  svg.append(group);
  return element("span", "key", svg, element("span", "", name));
}

function weight(edge) {
  return ["pruned", "left", "kept", "finished", "winner"].indexOf(edge.getAttribute("class"));
}

function cut(text, most) {
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
}

function rectangle([x, y], [width, height]) {
  return svgElement("rect", { x, y, width, height, rx: 5 });
}

// `whole`: what a file says where the text is cut.
function label([x, y], text, kind, whole = text) {
  const node = svgElement("text", { x, y, class: kind, "text-anchor": kind ? "end" : "start" });
  node.textContent = text;
  if (whole !== text) node.dataset.whole = whole;
  return node;
}

// The whole of a label that was cut, in as many smaller lines as fit its place.
function writeWhole(node, cut, whole) {
  const lines = linesIn(whole, [...whole].length / [...cut].length);
  const size = parseFloat(node.style.fontSize) / lines.length;
  node.style.fontSize = `${size}px`;
  const first = size * (1 - lines.length);
  const spans = lines.map((line, index) => svgElement("tspan", { x: node.getAttribute("x"), dy: index ? 1.1 * size : first }));
  spans.forEach((span, index) => (span.textContent = lines[index]));
  node.replaceChildren(...spans);
}
