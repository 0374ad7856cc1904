// needs: shared/mount.js page/enter.js page/history.js page/links.js
// The here component: the model's attentions as a small map, a column for each kind and a row for each layer, with the
// chosen head lit. A click chooses kind and layer; Shift with an arrow key chooses layer or head, wherever the focus is.

const MOVES = {
  ArrowUp: ["layer", -1],
  ArrowDown: ["layer", 1],
  ArrowLeft: ["head", -1],
  ArrowRight: ["head", 1],
};

class View {
  constructor(root) {
    keepOneEntryPerPage();
    makeLinksWaitForText();
    submitTextOnEnter();
    this.map = element("div", "map");
    this.map.setAttribute("role", "group");
    this.map.setAttribute("aria-label", "You are here");
    const key = (name) => element("kbd", "", name);
    this.keys = element("div", "keys");
    this.keys.append(key("Shift"), " + ", key("↑ ↓"), " layer, ", key("← →"), " head");
    root.append(this.map, this.keys);
    this.pending = new Pending();
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  close() {
    document.removeEventListener("keydown", this.onKey);
  }

  update({ data, setTriggerValue }) {
    history.arriveAt(data.page);
    this.send = setTriggerValue;
    [this.kinds, this.off] = [data.kinds, data.off];
    this.place = this.pending.afterAnswer(data.place);
    this.draw();
    // Streamlit's menu names the sections only, and marks none.
    for (const section of document.querySelectorAll("[data-testid=stTopNavSection]")) {
      section.toggleAttribute("data-current", section.textContent.startsWith(data.section));
    }
  }

  draw() {
    const stacks = [...new Set(this.kinds.map(({ stack }) => stack))].map((name) => {
      const stack = element("div", "stack");
      const columns = element("div", "columns");
      columns.append(...this.kinds.filter((kind) => kind.stack === name).map((kind) => this.column(kind)));
      stack.append(element("div", "title", name), columns);
      return stack;
    });
    this.map.replaceChildren(...stacks);
    this.map.classList.toggle("off", this.off);
    this.keys.hidden = this.off;
  }

  column({ name, title, short, layers }) {
    const column = element("div", "column");
    const boxes = layers.map((layer) => {
      const here = name === this.place.kind && layer === this.place.layer;
      const label = here ? `head ${this.place.head}` : String(layer);
      const box = button(label, `${title}, layer ${layer}`, () => this.go({ kind: name, layer }));
      box.setAttribute("aria-pressed", String(here));
      box.disabled = this.off;
      return box;
    });
    column.append(element("div", "name", short), ...boxes);
    return column;
  }

  go(change) {
    this.place = { ...this.place, ...change };
    this.pending.sent.push(this.place);
    this.send("move", this.place);
    this.draw();
  }

  key(event) {
    const move = MOVES[event.key];
    const { altKey, ctrlKey, metaKey, shiftKey } = event;
    if (!move || this.off || !shiftKey || altKey || ctrlKey || metaKey) return;
    if (event.defaultPrevented || happensIn(event, FIELDS)) return;
    event.preventDefault();
    const [what, by] = move;
    const { layers, heads } = this.kinds.find(({ name }) => name === this.place.kind);
    const wanted = this.place[what] + by;
    if (what === "layer" ? layers.includes(wanted) : wanted >= 0 && wanted < heads) this.go({ [what]: wanted });
  }
}
