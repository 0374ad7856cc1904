// needs: shared/elements.js
// Figure 1 of the paper, small: a box for each layer and kind of attention, input below and output above. A click looks
// there; the chosen one is lit.

const KIND_NAMES = { encoder_self: tr("self"), decoder_self: tr("self"), cross: tr("cross") };

class Picker {
  constructor(view) {
    this.view = view;
    this.node = strip("picker", tr("Where in the model: kind of attention and layer"));
  }

  draw() {
    const { stacks } = this.view.header;
    const made = JSON.stringify(stacks);
    if (made !== this.made) this.build(stacks);
    this.made = made;
    this.mark();
  }

  build(stacks) {
    this.boxes = [];
    const columns = stacks.map(({ name, kinds }) => {
      const layers = [...new Set(kinds.flatMap((kind) => kind.layers))].sort((one, other) => other - one);
      const rows = layers.map((layer) => this.layer(kinds, layer));
      const title = { encoder: tr("encoder"), decoder: tr("decoder") }[name] ?? name;
      return element("div", "where-stack", element("span", "where-name", title), element("div", "where-layers", ...rows));
    });
    // A stack with two kinds of attention needs more room.
    this.node.style.gridTemplateColumns = stacks.map(({ kinds }) => `minmax(0, ${1 + kinds.length}fr)`).join(" ");
    this.node.replaceChildren(element("span", "where-title", tr("where, in figure 1")), ...columns);
  }

  layer(kinds, layer) {
    const row = element("div", "where-layer");
    for (const kind of kinds.filter(({ layers }) => layers.includes(layer))) {
      const box = element("button", "where", kinds.length > 1 ? KIND_NAMES[kind.name] : String(layer));
      box.title = tr("{kind}, layer {layer}", { kind: kind.title, layer });
      box.setAttribute("aria-label", box.title);
      box.addEventListener("click", () => this.choose(kind.name, layer));
      this.boxes.push({ box, kind: kind.name, layer });
      row.append(box);
    }
    return row;
  }

  choose(kind, layer) {
    this.mark(kind, layer);
    this.view.say(tr("{kind}, layer {layer}, chosen", { kind: KIND_NAMES[kind], layer }));
    this.view.send("place", { kind, layer });
  }

  // Of many layers, in their own box: the page does not move.
  reveal(box) {
    const layers = box.closest(".where-layers");
    const [outer, inner] = [layers, box].map((node) => node.getBoundingClientRect());
    if (inner.top < outer.top || inner.bottom > outer.bottom) layers.scrollTop += inner.top - outer.top - outer.height / 2;
  }

  // At once, before the run that shows it is here.
  mark(kind = this.view.header.kind, layer = this.view.header.place[0]) {
    for (const one of this.boxes) {
      const lit = one.kind === kind && one.layer === layer;
      one.box.classList.toggle("lit", lit);
      one.box.setAttribute("aria-pressed", String(lit));
      one.box.tabIndex = lit ? 0 : -1;
      if (lit) requestAnimationFrame(() => this.reveal(one.box)); // once it is laid out
    }
  }
}
