// needs: shared/mount.js
// The search component: the keys of the search dialog. Its field has the focus at first; ↓ and ↑ go from result to
// result, and Enter in the field opens the first one, once the results are those of what is typed. It draws nothing.

const DIALOG = "[role=dialog]";
const RESULTS = `${DIALOG} :is(a[data-testid=stPageLink-NavLink], .stButton button)`;

class View {
  constructor(root) {
    this.root = root;
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey, true);
    // The dialog takes the focus itself when it opens, before or after the field is drawn, whose script may load late.
    this.onFocus = ({ target }) => target.matches?.(DIALOG) && this.begin();
    document.addEventListener("focusin", this.onFocus);
    this.drawn = new MutationObserver(() => this.begin());
    this.drawn.observe(document.body, { childList: true, subtree: true });
  }

  close() {
    this.drawn.disconnect();
    document.removeEventListener("focusin", this.onFocus);
    document.removeEventListener("keydown", this.onKey, true);
  }

  update({ data }) {
    this.word = data.word;
    if (!this.field) requestAnimationFrame(() => this.begin());
    if (this.opens) requestAnimationFrame(() => this.openFirst());
  }

  begin() {
    const [field, focused] = [document.querySelector(`${DIALOG} input`), document.activeElement];
    const elsewhere = this.field === field && focused !== document.body && !focused.matches(DIALOG);
    if (!field || elsewhere || !this.root.isConnected) return;
    this.field = field;
    field.focus();
    // What is still being faded in takes no focus.
    if (document.activeElement !== field) requestAnimationFrame(() => this.begin());
  }

  key(event) {
    if (event.isComposing || hasModifier(event) || !event.target.closest?.(DIALOG)) return;
    const stops = [this.field, ...document.querySelectorAll(RESULTS)];
    const at = stops.indexOf(event.target);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (at < 0) return;
    if (stops[to]) {
      event.preventDefault();
      stops[to].focus();
    } else if (event.key === "Enter" && at === 0) {
      this.opens = true;
      this.openFirst();
    }
  }

  openFirst() {
    if (this.word !== this.field.value) return;
    this.opens = false;
    if (this.field.value.trim()) document.querySelector(RESULTS)?.click();
  }
}
