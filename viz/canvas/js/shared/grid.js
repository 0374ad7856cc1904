// needs: shared/picture.js
// Cells under a pointer and a cursor. What lies above a picture takes both: the cell that is pointed at is marked and has a
// tooltip; one to which keys go is scrolled into view and read out, too. The picture says what its cells are:
//
//   layout           { left, top, width, height, rows, columns }: where the first cell is, how large one is, how many
//   point(cell)      marks [row, column]; null: none
//   describe(cell)   lines of its tooltip, texts or nodes; null: it has none
//
// and, where it has something of its own:
//
//   cellAt(point)    the cell there, or what else is there; null: nothing
//   boxOf(cell)      [left, top, width, height] of a cell, where they are not all alike
//   start()          the cell where the cursor begins; without it keys choose no cells
//   say(cell)        what is read out
//   choose(cell, point)  what a click does, Enter and Space; null: beside the cells
//   onKey(event)     any other key; false: it is not the picture's
//   scroller         the element in which it scrolls
//   leftward(cell)   whether the tooltip stands left of the pointer

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -Infinity], End: [0, Infinity] };

class Grid {
  // `view`: the Picture, which has tooltip and live region.
  constructor(view, picture, marks = element("canvas", "marks")) {
    Object.assign(this, { view, picture, marks, cell: null, others: [this] });
    marks.tabIndex = 0;
    marks.setAttribute("role", "application");
    marks.addEventListener("pointermove", (event) => this.show(this.cellAt(event), event));
    marks.addEventListener("pointerleave", () => this.show(null));
    marks.addEventListener("click", (event) => picture.choose?.(this.cellAt(event), pointIn(marks, event)));
    marks.addEventListener("keydown", (event) => this.onKey(event));
    marks.addEventListener("blur", () => this.leave());
    marks.addEventListener("focus", () => this.enter());
  }

  get focused() {
    return this.marks.getRootNode().activeElement === this.marks;
  }

  // Whether the focus came by keys.
  get byKeys() {
    return this.marks.matches(":focus-visible");
  }

  cellAt(event) {
    if (!this.view.header) return null;
    const point = pointIn(this.marks, event);
    return this.picture.cellAt ? this.picture.cellAt(point) : cellIn(this.picture.layout, point);
  }

  show(cell, event) {
    const { view, picture } = this;
    if (!view.header) return;
    picture.point(cell);
    view.tip.hidden = true;
    const lines = cell && picture.describe(cell);
    if (lines) view.showTip(lines, event, picture.leftward?.(cell));
  }

  // Nothing is under the pointer any more once the picture has scrolled below it.
  scrolled() {
    if (!this.cell) this.show(null);
  }

  enter() {
    for (const { marks } of this.others) marks.tabIndex = marks === this.marks ? 0 : -1;
    // Not after a click: then the pointer shows its cell.
    if (this.picture.start && this.byKeys) this.go(this.cell || this.picture.start());
  }

  leave() {
    this.cell = null;
    this.show(null);
  }

  onKey(event) {
    if (hasModifier(event)) return;
    const { picture, others } = this;
    const from = this.cell || picture.start?.();
    const move = from && MOVES[event.key];
    const page = others[1] && { PageUp: -1, PageDown: 1 }[event.key];
    if (move) this.go([from[0] + move[0], from[1] + move[1]]);
    else if (page) others[clamp(others.indexOf(this) + page, 0, others.length - 1)].marks.focus();
    else if (from && (event.key === "Enter" || event.key === " ")) picture.choose?.(from);
    else if (!picture.onKey?.(event)) return;
    event.preventDefault();
  }

  // The cursor goes to the cell that is nearest to these numbers.
  go([row, column]) {
    const { rows, columns } = this.picture.layout;
    this.cell = [clamp(row, 0, rows - 1), clamp(column, 0, columns - 1)];
    this.reveal();
    this.show(this.cell, this.middle);
    this.view.spoken.textContent = this.picture.say(this.cell);
  }

  // After the picture was drawn anew: the cursor stays where it was, or begins again.
  resume(stays) {
    if (!stays) this.cell = null;
    if (!this.focused) return;
    this.go(this.cell || this.picture.start());
    // After a click the tooltip is the pointer's.
    if (!this.byKeys) this.view.tip.hidden = true;
  }

  // Where the cursor's cell is on the screen: { left, top, right, bottom }.
  get place() {
    const [box, zoom] = [this.marks.getBoundingClientRect(), zoomOf(this.marks)];
    const { picture, cell } = this;
    const own = picture.boxOf?.(cell) ?? boxOf(picture.layout, cell);
    const [x, y, width, height] = own.map((side) => side * zoom);
    return { left: box.left + x, top: box.top + y, right: box.left + x + width, bottom: box.top + y + height };
  }

  get middle() {
    const { left, top, right, bottom } = this.place;
    return { clientX: (left + right) / 2, clientY: (top + bottom) / 2 };
  }

  reveal() {
    const { scroller } = this.picture;
    if (!scroller) return;
    const [frame, cell, zoom] = [scroller.getBoundingClientRect(), this.place, zoomOf(scroller)];
    const away = (from, to) => (cell[from] + cell[to] - frame[from] - frame[to]) / 2 / zoom;
    if (cell.left < frame.left || cell.right > frame.right) scroller.scrollLeft += away("left", "right");
    if (cell.top < frame.top || cell.bottom > frame.bottom) scroller.scrollTop += away("top", "bottom");
  }
}

// Of these grids one is in the Tab order, at the place of that of the grids before; Page up and Page down go to the others.
function joinGrids(grids, before = []) {
  const stop = clamp(before.findIndex(({ marks }) => marks.tabIndex === 0), 0, grids.length - 1);
  grids.forEach((grid, at) => {
    grid.others = grids;
    grid.marks.tabIndex = at === stop ? 0 : -1;
  });
  return grids;
}

// Gives the focus to grids that replace others, at this cell; null: where the cursor begins.
function focusGrid(grids, cell) {
  const grid = grids.find(({ marks }) => marks.tabIndex === 0);
  grid.cell = cell;
  grid.marks.focus({ preventScroll: true });
}

// [row, column] of the cell at a point; null if there is none.
function cellIn({ left, top, width, height, rows, columns }, [x, y]) {
  const [row, column] = [Math.floor((y - top) / height), Math.floor((x - left) / width)];
  return row >= 0 && column >= 0 && row < rows && column < columns ? [row, column] : null;
}

function boxOf({ left, top, width, height }, [row, column]) {
  return [left + column * width, top + row * height, width, height];
}
