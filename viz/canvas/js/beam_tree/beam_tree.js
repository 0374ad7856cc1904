// needs: shared/colours.js shared/svg_pen.js shared/save_picture.js
// The beam_tree component: a beam search as a tree, a column a step, the most probable prefix of each step on top.
// It is one module with colours.js, svg_pen.js and save_picture.js, which come before it.

const WIDE = 126; // pixels from column to column
const TALL = 29; // and from row to row
const BOX = [94, 23];
const HEAD = 26;
const SVG = "http://www.w3.org/2000/svg";
const FATES = {
  kept: "kept: it goes on",
  finished: "finished",
  pruned: "pruned: not among the best",
  left: "left: enough sentences were finished",
};
const HOW = "Arrow keys walk along the tree, Enter goes to a step or keeps a prefix.";
const views = new WeakMap();

export default function mount(component) {
  const root = component.parentElement.querySelector(".beam_tree");
  if (!views.has(root)) views.set(root, new TreeView(root));
  views.get(root).update(component);
}

class TreeView {
  constructor(root) {
    this.root = root;
    this.zoom = 1;
    this.stage = element("div", "stage");
    this.tip = element("div", "tip");
    this.tip.setAttribute("aria-live", "polite");
    root.replaceChildren(this.bar(), this.stage, this.tip);
    root.addEventListener("save-picture", ({ detail }) => this.save(detail));
  }

  bar() {
    const bar = element("div", "bar");
    const keys = [["winner", "best score"], ["kept", "kept"], ["finished", "finished"], ["pruned", "pruned"]];
    bar.append(...keys.map(([kind, name]) => legend(kind, name)), element("span", "space"));
    const label = element("label", "", "pruned ones");
    this.pruned = element("input");
    Object.assign(this.pruned, { type: "checkbox", checked: true });
    this.pruned.addEventListener("change", () => this.draw());
    label.prepend(this.pruned);
    bar.append(label);
    for (const [text, name, act] of [
      ["−", "Zoom out", () => this.scale(this.zoom / 1.25)],
      ["+", "Zoom in", () => this.scale(this.zoom * 1.25)],
      ["SVG", "Save the tree as an SVG file", () => this.save({ format: "svg", file: "beam-tree", caption: [] })],
    ]) {
      const button = element("button", "", text);
      button.setAttribute("aria-label", text === "SVG" ? `${text}: ${name}` : name);
      button.title = name;
      button.addEventListener("click", act);
      bar.append(button);
    }
    return bar;
  }

  update({ data, setTriggerValue }) {
    const moved = !this.data || this.data.step !== data.step || this.data.nodes.length !== data.nodes.length;
    this.send = setTriggerValue;
    const written = JSON.stringify(data);
    if (written === this.written) return;
    Object.assign(this, { data, written, pinned: undefined });
    this.root.style.setProperty("--winner", data.colour);
    this.draw();
    if (moved) this.centre();
  }

  draw() {
    const { nodes } = this.data;
    this.shown = nodes.map((node) => this.pruned.checked || node.fate !== "pruned");
    this.winner = new Set(this.data.winner);
    const steps = nodes[nodes.length - 1].step + 1;
    const rows = nodes.reduce((most, node, id) => (this.shown[id] ? Math.max(most, node.rank) : most), 0) + 1;
    this.size = [(steps + 1) * WIDE + 10, HEAD + rows * TALL + 8];
    this.svg = shape("svg", { viewBox: `0 0 ${this.size.join(" ")}`, role: "group" });
    this.svg.setAttribute("aria-label", `Tree of the beam search, ${steps} steps. ${HOW}`);
    this.edges = nodes.map((node, id) => this.shown[id] && this.edge(node, id));
    this.boxes = nodes.map((node, id) => this.shown[id] && this.box(node, id));
    const heads = Array.from({ length: steps }, (_, step) => this.head(step));
    // What matters most is drawn last.
    const order = this.edges.filter(Boolean).sort((one, other) => weight(one) - weight(other));
    this.svg.append(...heads, ...order, this.start(), ...this.boxes.filter(Boolean));
    const focus = this.focused();
    this.stage.replaceChildren(this.svg);
    this.scale(this.zoom);
    this.rest();
    if (focus) this.svg.querySelector(focus)?.focus({ preventScroll: true });
  }

  // Who went to a step by key goes on from there, in the tree that is drawn anew.
  focused() {
    const { node, step } = this.root.getRootNode().activeElement?.dataset ?? {};
    if (node) return `[data-node="${node}"]`;
    return step && `[data-step="${step}"]`;
  }

  place({ step, rank }) {
    return [8 + (step + 1) * WIDE, HEAD + rank * TALL];
  }

  start() {
    const group = shape("g", { class: "node kept" });
    group.append(rectangle([8, HEAD], BOX), label([18, HEAD + 16], "<s>", ""));
    return group;
  }

  edge(node, id) {
    const from = node.parent < 0 ? [8, HEAD] : this.place(this.data.nodes[node.parent]);
    const to = this.place(node);
    const [x, y] = [from[0] + BOX[0], from[1] + BOX[1] / 2];
    const [end, low] = [to[0], to[1] + BOX[1] / 2];
    const bend = (end - x) / 2;
    const kind = this.winner.has(id) ? "winner" : node.fate;
    return shape("path", { class: kind, d: `M${x} ${y} C${x + bend} ${y} ${end - bend} ${low} ${end} ${low}` });
  }

  box(node, id) {
    const [x, y] = this.place(node);
    const best = this.winner.has(id);
    const group = shape("g", { class: `node ${node.fate}${best ? " winner" : ""}`, tabindex: "-1", role: "button" });
    group.dataset.node = id;
    group.setAttribute("aria-label", this.inWords(id));
    const ends = node.fate === "finished" ? (this.data.winner.at(-1) === id ? "★ " : "■ ") : "";
    const number = node.fate === "finished" ? node.score : node.total;
    group.append(
      rectangle([x, y], BOX),
      label([x + 7, y + 15.5], ends + cut(node.label, ends ? 6 : 8), ""),
      label([x + BOX[0] - 5, y + 15.5], written(number, 2), "number"),
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
    const group = shape("g", { class: `step${now ? " now" : ""}`, role: "button", tabindex: now ? "0" : "-1" });
    group.dataset.step = step;
    group.setAttribute("aria-label", `Step ${step}${now ? ", chosen" : ""}`);
    const x = (step + 1) * WIDE - 6;
    const band = rectangle([x, 0], [WIDE - 4, now ? this.size[1] : HEAD - 4]);
    band.setAttribute("class", "band");
    if (!now) band.setAttribute("fill-opacity", "0");
    group.append(band, label([x + 14, 16], `step ${step}`, ""));
    group.addEventListener("click", () => this.send("step", step));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.send("step", step);
      if (event.key === "ArrowDown") this.focus(this.data.nodes.findIndex((node) => node.step === step));
    });
    return group;
  }

  // A click keeps this prefix traced; a finished one is also what the page looks at.
  choose(id) {
    this.pinned = id;
    this.trace(id);
    if (this.data.nodes[id].fate === "finished") this.send("pick", id);
  }

  // Nothing pointed at: the sentence that the page looks at; the winner is emphasised anyway.
  rest() {
    this.trace(this.pinned ?? this.data.chosen.at(-1));
  }

  // Light up the way from <s> to this node, and say its numbers below.
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
    const numbers = `log p of the token ${written(token, 5)}, of the prefix ${written(total, 5)}`;
    return `Step ${step}: ${name}. ${numbers}, over the length penalty ${written(score, 5)}. ${FATES[fate]}.`;
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
    this.zoom = Math.min(Math.max(zoom, 0.3), 2);
    this.svg.setAttribute("width", this.size[0] * this.zoom);
    this.svg.setAttribute("height", this.size[1] * this.zoom);
  }

  centre() {
    const middle = ((this.data.step + 1.4) * WIDE) * this.zoom;
    this.stage.scrollLeft = middle - this.stage.clientWidth / 2;
  }

  // The file stands alone: what the style sheet says goes along with each shape.
  save({ format, file, caption }) {
    const tree = this.svg.cloneNode(true);
    const [own, theirs] = [this.svg.querySelectorAll("*"), tree.querySelectorAll("*")];
    own.forEach((node, place) => {
      const style = getComputedStyle(node);
      const names = ["fill", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity"];
      if (node.tagName === "text") names.push("font-size", "font-weight", "font-family");
      for (const name of names) theirs[place].style.setProperty(name, style.getPropertyValue(name));
    });
    const canvas = new SvgCanvas();
    const range = "Numbers: log p of the prefix, of a finished sentence (■, the best ★) its score; dashed: pruned";
    const says = { title: "Beam search, step by step", range, caption };
    const { pen, whole, top } = startPicture(canvas, this.size, themeOf(this.root), says);
    for (const [name, value] of Object.entries({ x: EDGE, y: top, width: this.size[0], height: this.size[1] })) {
      tree.setAttribute(name, value);
    }
    pen.put("g", {}).append(tree);
    const text = new XMLSerializer().serializeToString(canvas.node(...whole));
    const blob = new Blob([text], { type: "image/svg+xml" });
    if (format === "svg") handOver(blob, `${file}.svg`);
    else rasterised(text, whole).then((pixels) => handOver(pixels, `${file}.png`));
  }
}

// An SVG file as a PNG file, twice as fine.
async function rasterised(text, [width, height]) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = element("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
  return new Promise((resolve) => canvas.toBlob(resolve));
}

function legend(kind, name) {
  const entry = element("span", "key");
  const svg = shape("svg", { viewBox: "0 0 26 16", "aria-hidden": "true" });
  const group = shape("g", { class: `node ${kind}` });
  group.append(rectangle([2, 2], [22, 12]));
  svg.append(group);
  entry.append(svg, element("span", "", name));
  return entry;
}

function weight(edge) {
  return ["pruned", "left", "kept", "finished", "winner"].indexOf(edge.getAttribute("class"));
}

function cut(text, most) {
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
}

function written(value, digits) {
  return value.toFixed(digits).replace("-", "−");
}

function rectangle([x, y], [width, height]) {
  return shape("rect", { x, y, width, height, rx: 5 });
}

function label([x, y], text, kind) {
  const node = shape("text", { x, y, class: kind, "text-anchor": kind ? "end" : "start" });
  node.textContent = text;
  return node;
}

function shape(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}
