// needs: shared/component.css shared/elements.js
// Mounts a component. Its script defines `class View` with a constructor that takes the component's root element and a
// method `update(component)`, which Streamlit calls with new data at every run of the page.

const views = new WeakMap();

export default function mount(component) {
  const { parentElement } = component;
  if (!views.has(parentElement)) {
    const root = parentElement.querySelector(".component");
    // The same place may have been drawn by the component in another language.
    root.replaceChildren();
    const view = new View(root);
    // A picture that goes on paper, where the theme is light, is drawn again.
    const paper = matchMedia("print");
    const redraw = () => view.draw?.();
    paper.addEventListener("change", redraw);
    const close = () => {
      paper.removeEventListener("change", redraw);
      view.close?.();
      views.delete(parentElement);
    };
    views.set(parentElement, { view, close });
  }
  const { view, close } = views.get(parentElement);
  view.update(component);
  // Text on a canvas that was drawn before the page's font had loaded is drawn again.
  if (document.fonts.status === "loading") document.fonts.ready.then(() => view.draw?.());
  return close;
}

// Key presses that Python has not answered yet: the answer to an early one must not undo the later ones.
class Pending {
  constructor() {
    this.sent = [];
  }

  // The value to show after Python has answered `value`: the one sent last if answers are still to come.
  afterAnswer(value) {
    const index = this.sent.findIndex((each) => JSON.stringify(each) === JSON.stringify(value));
    this.sent = index < 0 ? [] : this.sent.slice(index + 1);
    return this.sent.at(-1) ?? value;
  }
}
