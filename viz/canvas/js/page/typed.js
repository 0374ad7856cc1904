// A text that was typed and not run yet says so, with a frame and with the button that runs it, until a run has read it.

const PLACE = "[data-testid=stSidebar]";
const TYPED = `${PLACE} textarea`;

class Typed {
  constructor() {
    this.texts = {};
    // Whoever changes a field, a person or the app: React then writes its text into the page, maybe after the run, and may
    // put a new field in the place of the old one.
    this.watch = new MutationObserver(() => this.markAll());
  }

  close() {
    this.watch.disconnect();
  }

  // The texts of a run, by the key of their field.
  ran(texts) {
    this.texts = texts;
    const changes = { childList: true, characterData: true, subtree: true };
    document.querySelectorAll(PLACE).forEach((place) => this.watch.observe(place, changes));
    this.markAll();
  }

  markAll() {
    document.querySelectorAll(TYPED).forEach((field) => this.mark(field));
  }

  mark(field) {
    const key = Object.keys(this.texts).find((name) => field.closest(`.st-key-${name}`));
    if (!key) return;
    const changed = field.value.trim() !== this.texts[key].trim();
    const box = field.closest(`.st-key-${key}`), words = tr("Changed text, not yet run");
    if (changed) box.setAttribute("data-changed", words);
    else box.removeAttribute("data-changed");
    const button = document.querySelector(`.st-key-${key}-send`);
    button?.toggleAttribute("data-changed", changed);
    field.setAttribute("aria-description", changed ? words : "");
  }
}
