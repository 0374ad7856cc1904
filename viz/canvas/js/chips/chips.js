// needs: shared/mount.js
// The chips component: tokens as buttons, written by viz/html.py with all text escaped; a click chooses one.

class View {
  constructor(root) {
    this.root = root;
    root.addEventListener("click", (event) => {
      const chip = event.target.closest("[data-position]");
      if (chip) this.send("pick", Number(chip.dataset.position));
    });
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const focused = this.root.getRootNode().activeElement?.dataset.position;
    this.root.innerHTML = data.html;
    if (focused !== undefined) this.root.querySelector(`[data-position="${focused}"]`)?.focus();
  }
}
