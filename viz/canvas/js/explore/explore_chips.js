// needs: shared/elements.js
// The tokens of both texts as buttons, shaded by the weights of the chosen word; the query and the key have frames.

class Chips {
  constructor(view) {
    this.view = view;
    this.buttons = ["query", "key"].map((what) => {
      const node = element("button", what);
      node.addEventListener("click", () => view.choose(what));
      return node;
    });
    const chooses = element("span", "dim", tr("the next click chooses the"));
    this.lists = element("div", "lists");
    this.legend = strip("chooses", tr("What the next click on a token chooses"), chooses, ...this.buttons);
    this.node = element("div", "texts", this.lists, this.legend);
  }

  draw() {
    const { header } = this.view;
    const made = JSON.stringify(header.sides.map(({ name, tokens, probabilities }) => [name, tokens, probabilities]));
    if (made !== this.made) this.build();
    this.made = made;
    this.press();
    header.sides.forEach((side, index) => this.frame(side, this.rows[index]));
  }

  build() {
    const { view } = this;
    this.rows = view.header.sides.map((side, index) => {
      const chips = side.tokens.map((token, place) => {
        const chip = element("button", "token", element("span", "word", token));
        const p = side.probabilities[place];
        if (side.probabilities.some((one) => one !== null)) {
          chip.append(element("span", "p", p === null ? "\u00a0" : fixed(p, 2)));
        }
        chip.tabIndex = -1;
        chip.dataset.place = place;
        // The side as it is now: what a click does depends on the chosen attention.
        chip.addEventListener("click", (event) => view.click(view.header.sides[index], place, event.shiftKey));
        return chip;
      });
      const list = strip("tokens", tr("Tokens of the {side}", { side: side.name }), ...chips);
      return { line: element("div", "side", element("span", "label", side.name), list), list, chips };
    });
    this.lists.replaceChildren(...this.rows.map(({ line }) => line));
  }

  frame(side, { list, chips }) {
    const { query, key } = this.view.header;
    let stop = chips[0];
    chips.forEach((chip, place) => {
      const roles = [
        ...(side.asks && place - side.first === query ? ["query"] : []),
        ...(side.answers && place === key ? ["key"] : []),
      ];
      this.give(chip, roles, side.tokens[place], side.probabilities[place]);
      if (roles.includes("query") || (roles.length && stop === chips[0])) stop = chip;
    });
    if (!list.contains(list.getRootNode().activeElement)) stopAt(list, stop);
  }

  give(chip, roles, token, p) {
    for (const role of ["query", "key"]) chip.classList.toggle(role, roles.includes(role));
    const said = [token, ...(p === null ? [] : [`${tr("probability")} ${fixed(p, 2)}`]), ...roles.map((role) => roleText(role))];
    chip.setAttribute("aria-label", said.join(", "));
    chip.setAttribute("aria-pressed", String(roles.length > 0));
  }

  // At once, before the run with this query is here.
  mark(side, row) {
    const { header } = this.view;
    header.sides.forEach((one, index) => {
      const isQuery = (place) => one === side && place - one.first === row;
      this.rows[index].chips.forEach((chip, place) => chip.classList.toggle("query", isQuery(place)));
    });
  }

  press() {
    const { names } = this.view.header;
    this.buttons.forEach((node, index) => {
      const what = ["query", "key"][index];
      node.setAttribute("aria-pressed", String(this.view.chooses === what));
      node.setAttribute("aria-label", `${roleText(what)}: ${names[what]}. ${tr("Press to choose another one with the next click.")}`);
      node.title = names[what];
      node.replaceChildren(element("span", "what", roleText(what)), element("span", "word", names[what]));
    });
  }

  // The darker a token, the larger the word's weight on it.
  shade(weights) {
    this.view.header.sides.forEach((side, index) => {
      this.rows[index].chips.forEach((chip, place) => {
        const weight = side.answers ? weights[place] || 0 : 0;
        chip.style.setProperty("--weight", `${Math.round(58 * weight)}%`);
      });
    });
  }

  point(key) {
    this.view.header.sides.forEach((side, index) => {
      const pointed = (place) => side.answers && place === key;
      this.rows[index].chips.forEach((chip, place) => chip.classList.toggle("pointed", pointed(place)));
    });
  }
}
