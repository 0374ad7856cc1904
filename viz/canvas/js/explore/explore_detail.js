// needs: matrices/matrices_draw.js
// A box that is open: the full matrices of its step, for all tokens, in place of the boxes; a second click closes it.

class Detail {
  constructor(view) {
    this.view = view;
    this.nav = strip("nav", tr("Steps"));
    this.why = element("p", "why");
    this.stage = element("div", "stage");
    this.close = button("×", tr("Close: back to one word"), () => this.view.toggle(this.view.opened));
    this.close.className = "close";
    this.line = element("div", "line", this.why);
    this.node = element("div", "detail", element("div", "head", this.nav, this.close), this.line, this.stage);
    this.hovered = {};
  }

  draw() {
    const { view } = this;
    this.node.hidden = view.opened === null;
    if (this.node.hidden) return;
    this.box = view.boxes.find(({ name }) => name === view.opened);
    this.nav.replaceChildren(...view.boxes.map((box, index) => this.step(box, index)));
    stopAt(this.nav, this.nav.querySelector(".open"));
    this.why.textContent = this.box.why;
    const held = this.grids?.find(({ focused }) => focused);
    const cell = held?.cell;
    this.build();
    this.layOut();
    if (held) focusGrid(this.grids, cell);
  }

  step({ name, title }, index) {
    const open = name === this.view.opened;
    const number = element("span", "number", String(index + 1));
    const node = element("button", open ? "name open" : "name", number, open ? subscripted(title) : undefined);
    node.dataset.box = name;
    node.title = title.replace(/_/g, "");
    node.setAttribute("aria-label", `${index + 1}, ${node.title}: ${open ? tr("close the full matrices") : tr("open the full matrices")}`);
    node.setAttribute("aria-expanded", String(open));
    node.addEventListener("click", () => this.view.toggle(name));
    return node;
  }

  // On a narrow screen each matrix has a line of its own.
  build() {
    const parts = this.box.parts.filter((part) => part.symbol !== "masked");
    this.lines = this.view.narrow ? parts.filter((part) => part.rows).map((part) => [part]) : [parts];
    const nodes = this.lines.map((line) => {
      const parts = line.map((part) => (part.rows ? this.figure(part) : element("div", "operator", part)));
      return element("div", "equation", ...parts);
    });
    this.stage.replaceChildren(...nodes);
    this.grids = joinGrids(this.parts.map(({ grid }) => grid), this.grids);
  }

  figure(part) {
    const symbol = element("b", part.symbol, subscripted(part.symbol));
    const facts = [`${part.rows.size} × ${part.columns.size}`];
    if (part.scale !== "mask") facts.push(tr("{low} to {high}", { low: threeDigits(part.low), high: threeDigits(part.high) }));
    if (part.rows.size === 1 && this.view.keys.size > 1) facts.push(tr("this row alone: the whole is too large"));
    const caption = element("figcaption", "", symbol, element("span", "of", facts.join(" · ")));
    caption.title = part.note;
    const layers = matrixLayers(part, this.view, {
      scroller: this.stage,
      start: () => [part.rows, part.columns].map(({ name }) => this.view.header[name] ?? 0),
      point: (cell) => this.point(part, cell),
      describe: (cell) => this.describe(part, cell),
      say: (cell) => this.describe(part, cell).join(", "),
      choose: (cell, point) => this.pick(part, cell, point),
    });
    part.marks.setAttribute("aria-label", `${part.symbol.replace(/_/g, " ")}, ${sizesOf(part)}. ${HOW}`);
    return element("figure", "", caption, layers);
  }

  layOut() {
    const { theme } = this.view;
    const pen = element("canvas").getContext("2d");
    pen.font = `600 ${FONT_SIZE}px ${theme.font}`;
    const height = this.view.narrow ? 330 * this.lines.length : this.stage.clientHeight;
    layOut(this.lines, this.stage.clientWidth - 12, height - 14, 1, pen);
    for (const part of this.parts) part.font = theme.font;
  }

  get parts() {
    return this.lines.flat().filter((part) => part.rows);
  }

  redraw() {
    if (this.node.hidden) return;
    const { view } = this;
    for (const part of this.parts) {
      const again = view.again && part.symbol === "weights";
      const values = again ? softmaxRows(view.part("masked"), view.slider.tau) : part.values;
      drawMatrix(part.cells, { ...part, values }, view.tables, view.theme);
    }
    this.mark();
  }

  mark() {
    const { query, key } = this.view.header;
    for (const part of this.parts) {
      const at = (place) => (part.rows.size === 1 && place !== undefined ? 0 : place);
      const chosen = { [part.rows.name]: at({ query, key }[part.rows.name]) };
      if (part.columns.name === "key") chosen.key = key;
      drawMarks(part.marks, part, chosen, this.hovered, this.view.theme);
    }
  }

  point(part, cell) {
    this.hovered = cell ? { [part.rows.name]: cell[0], [part.columns.name]: cell[1] } : {};
    this.mark();
  }

  describe(part, [row, column]) {
    const place = row * part.columns.size + column;
    const masked = part.allowed && !part.allowed[place];
    const note = part.rows.notes[row] ? ` (${part.rows.notes[row]})` : "";
    const name = part.columns.name === "key" ? `${tr("key")} ${part.columns.labels[column]}` : tr("dimension {column}", { column });
    const number = part.scale === "mask" ? tr("visible") : exactText(part.values[place]);
    return [masked ? tr("masked") : number, `${roleText(part.rows.name)} ${part.rows.labels[row]}${note}`, name];
  }

  // A click on a cell, or on a label, chooses its query, or its key.
  pick(part, cell, point) {
    const { query, key } = cell ? { [part.rows.name]: cell[0] } : labelAt(part, point) || {};
    if (key !== undefined) this.view.chooseKey(key);
    else if (query !== undefined && part.rows.size > 1) {
      this.view.chooseQuery(this.view.header.sides.find(({ asks }) => asks), query);
    }
  }
}
