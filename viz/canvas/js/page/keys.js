// needs: shared/mount.js page/enter.js page/history.js page/links.js
// The keys component: Shift with an arrow key chooses the layer or the head, wherever on the page the focus is.

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
    const key = (name) => element("kbd", "", name);
    root.replaceChildren(key("Shift"), " + ", key("↑ ↓"), " layer, ", key("← →"), " head");
    this.pending = new Pending();
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  close() {
    document.removeEventListener("keydown", this.onKey);
  }

  update({ data: { layer, head, layers, heads, page }, setTriggerValue }) {
    history.arriveAt(page);
    this.send = setTriggerValue;
    this.limits = { layer: layers, head: heads };
    this.place = this.pending.afterAnswer({ layer, head });
  }

  key(event) {
    const move = MOVES[event.key];
    const { altKey, ctrlKey, metaKey, shiftKey } = event;
    if (!move || !shiftKey || altKey || ctrlKey || metaKey || event.defaultPrevented || happensIn(event, FIELDS)) return;
    const [what, by] = move;
    const wanted = this.place[what] + by;
    event.preventDefault();
    if (wanted < 0 || wanted >= this.limits[what]) return;
    this.place = { ...this.place, [what]: wanted };
    this.pending.sent.push(this.place);
    this.send("move", this.place);
  }
}
