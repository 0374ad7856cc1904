// needs: page/history.js page/links.js
// The keys component: Shift with an arrow key chooses the layer or the head, wherever on the page the focus is.
// It is one module with history.js and links.js, which come before it.

const views = new WeakMap();
const MOVES = {
  ArrowUp: ["layer", -1],
  ArrowDown: ["layer", 1],
  ArrowLeft: ["head", -1],
  ArrowRight: ["head", 1],
};

export default function mount(component) {
  const { parentElement } = component;
  if (!views.has(parentElement)) views.set(parentElement, new KeysView(parentElement));
  const view = views.get(parentElement);
  view.update(component);
  return () => {
    document.removeEventListener("keydown", view.onKey);
    views.delete(parentElement);
  };
}

class KeysView {
  constructor(root) {
    oneEntryAPage();
    linksWaitForText();
    const hint = root.querySelector(".keys");
    const text = (words) => document.createTextNode(words);
    const key = (name) => Object.assign(document.createElement("kbd"), { textContent: name });
    hint.replaceChildren(key("Shift"), text(" + "), key("↑ ↓"), text(" layer, "), key("← →"), text(" head"));
    this.asked = [];
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    this.limits = { layer: data.layers, head: data.heads };
    // Of several key presses the earlier answers arrive while the later ones are still under way.
    const answered = this.asked.findIndex((place) => place.layer === data.layer && place.head === data.head);
    this.asked = this.asked.slice(answered < 0 ? this.asked.length : answered + 1);
    this.place = this.asked.at(-1) ?? { layer: data.layer, head: data.head };
  }

  key(event) {
    const move = MOVES[event.key];
    const modified = event.altKey || event.ctrlKey || event.metaKey || !event.shiftKey;
    if (!move || modified || event.defaultPrevented || event.composedPath().some(takesArrows)) return;
    const [what, by] = move;
    const wanted = this.place[what] + by;
    event.preventDefault();
    if (wanted < 0 || wanted >= this.limits[what]) return;
    this.place = { ...this.place, [what]: wanted };
    this.asked.push(this.place);
    this.send("move", this.place);
  }
}

// Where a person writes, selects text or moves a slider, these keys have a meaning already.
function takesArrows(node) {
  const roles = ["slider", "combobox", "listbox", "menu", "spinbutton", "textbox"];
  const fields = ["INPUT", "TEXTAREA", "SELECT"];
  const takes = fields.includes(node.tagName) && !["radio", "checkbox", "button"].includes(node.type);
  return takes || node.isContentEditable || roles.includes(node.getAttribute?.("role"));
}
