// needs: shared/mount.js page/enter.js page/history.js page/links.js page/menu.js page/typed.js
// The here component: Shift with an arrow key chooses layer or head, wherever the focus is. It draws nothing.

const MOVES = {
  ArrowUp: ["layer", -1],
  ArrowDown: ["layer", 1],
  ArrowLeft: ["head", -1],
  ArrowRight: ["head", 1],
};

class View {
  constructor() {
    keepOneEntryPerAct();
    makeLinksWaitForText();
    submitTextOnEnter();
    this.pending = new Pending();
    this.menu = new Menu();
    this.typed = new Typed();
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  close() {
    this.menu.close();
    this.typed.close();
    document.removeEventListener("keydown", this.onKey);
  }

  update({ data, setTriggerValue }) {
    history.arriveAt(data.page, data.at, data.entries);
    this.send = setTriggerValue;
    this.menu.update(data.lacks);
    this.typed.ran(data.texts);
    [this.kinds, this.off] = [data.kinds, data.off];
    this.place = this.pending.afterAnswer(data.place);
    requestIdleCallback(() => setTimeout(letFormulasScroll, 500));
    // Streamlit's menu names the sections only, and marks none.
    for (const section of document.querySelectorAll("[data-testid=stTopNavSection]")) {
      section.toggleAttribute("data-current", section.textContent.startsWith(data.section));
    }
  }

  go(change) {
    this.place = { ...this.place, ...change };
    this.pending.sent.push(this.place);
    this.send("move", this.place);
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

// A formula that is wider than its place scrolls by the arrow keys, in every browser.
function letFormulasScroll() {
  for (const formula of document.querySelectorAll(".katex-display")) {
    if (formula.scrollWidth > formula.clientWidth + 1) formula.tabIndex = 0;
    else formula.removeAttribute("tabindex");
  }
}
