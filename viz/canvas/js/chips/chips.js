// needs: shared/mount.js shared/elements.js
// The chips component: tokens as buttons, written by viz/html.py with all text escaped; a click chooses one.

class View {
  constructor(root) {
    this.root = root;
    rove(root);
    root.addEventListener("click", (event) => {
      const chip = event.target.closest("[data-position]");
      if (chip) this.send("pick", Number(chip.dataset.position));
    });
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const focused = this.root.getRootNode().activeElement?.dataset.position;
    this.root.innerHTML = data.html;
    const [held, chosen] = [`[data-position="${focused}"]`, "[aria-pressed=true]"].map((what) => this.root.querySelector(what));
    stopAt(this.root, held ?? chosen ?? undefined);
    held?.focus();
  }
}
