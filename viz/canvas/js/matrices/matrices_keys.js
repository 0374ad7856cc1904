// Keyboard access to the cells. One matrix is in the Tab order; the arrow keys move between its cells, Page up and Page
// down between matrices, Enter chooses. The cell's number is shown and read out.

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const HOW = tr("Arrow keys go from cell to cell, Page up and Page down to the other matrices, Enter chooses the cell.");

class Cursor {
  constructor(view) {
    this.view = view;
    this.at = 0;
    this.cell = null;
  }

  get active() {
    return this.cell !== null;
  }

  get matrix() {
    return this.matrices[this.at];
  }

  // Whether one of the matrices has the focus.
  get focused() {
    return Boolean(this.matrices?.includes(this.focusedMatrix()));
  }

  focusedMatrix() {
    const { activeElement } = this.view.root.getRootNode();
    return this.matrices.find(({ marks }) => marks === activeElement);
  }

  // New matrices replace the old ones; the cursor stays in the matrix at the same place.
  attach(matrices, title) {
    this.matrices = matrices;
    this.at = Math.min(this.at, matrices.length - 1);
    matrices.forEach((matrix, index) => this.listen(matrix, index, title));
  }

  listen({ marks, symbol, rows, columns }, index, title) {
    const sizes = sizesOf({ rows, columns });
    marks.tabIndex = index === this.at ? 0 : -1;
    marks.setAttribute("role", "application");
    marks.setAttribute("aria-label", `${plainSymbol(symbol)}: ${sizes}. ${title}. ${HOW}`);
    marks.addEventListener("keydown", (event) => this.key(event));
    marks.addEventListener("blur", () => this.leave());
    marks.addEventListener("focus", () => {
      this.at = index;
      for (const [other, { marks: each }] of this.matrices.entries()) each.tabIndex = other === index ? 0 : -1;
      // Not after a click: then the pointer shows its cell.
      if (marks.matches(":focus-visible")) this.show(this.cell || this.start());
    });
  }

  start() {
    const { rows, columns } = this.matrix;
    const { chosen } = this.view;
    return [chosen[rows.name] ?? 0, chosen[columns.name] ?? 0];
  }

  // Takes the focus in a matrix that was built again, at this cell; null: where the choice is.
  resume(cell) {
    this.cell = cell;
    this.matrix.marks.focus({ preventScroll: true });
  }

  leave() {
    this.cell = null;
    this.view.point(null, null);
  }

  key(event) {
    if (hasModifier(event)) return;
    const [row, column] = this.cell || this.start();
    const last = this.matrix.columns.size - 1;
    const to = { Home: [row, 0], End: [row, last] }[event.key];
    const other = { PageUp: -1, PageDown: 1 }[event.key];
    const move = MOVES[event.key];
    if (move) this.show([row + move[0], column + move[1]]);
    else if (to) this.show(to);
    else if (other) this.go(this.at + other);
    else if (event.key === "Enter" || event.key === " ") this.view.choose(this.matrix, this.view.positions(this.matrix, [row, column]));
    else return;
    event.preventDefault();
  }

  go(index) {
    this.matrices[clamp(index, 0, this.matrices.length - 1)].marks.focus();
  }

  show([row, column]) {
    const { matrix, view } = this;
    this.cell = [clamp(row, 0, matrix.rows.size - 1), clamp(column, 0, matrix.columns.size - 1)];
    view.point(matrix, this.cell, this.pixel());
    view.spoken.textContent = [plainSymbol(matrix.symbol), ...view.inWords(matrix, this.cell)].join(", ");
  }

  // The cell's place on the screen, after scrolling it into view.
  pixel() {
    const { stage } = this.view;
    const { marks, margins, cellWidth, cellHeight } = this.matrix;
    const place = () => {
      const box = marks.getBoundingClientRect();
      const [row, column] = this.cell;
      return [box.left + margins.left + (column + 0.5) * cellWidth, box.top + margins.top + (row + 0.5) * cellHeight];
    };
    const frame = stage.getBoundingClientRect();
    const [x, y] = place();
    if (x < frame.left || x > frame.right) stage.scrollLeft += x - (frame.left + frame.right) / 2;
    if (y < frame.top || y > frame.bottom) stage.scrollTop += y - (frame.top + frame.bottom) / 2;
    const [clientX, clientY] = place();
    return { clientX, clientY };
  }
}
