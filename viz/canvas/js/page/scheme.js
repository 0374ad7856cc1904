// needs: shared/mount.js
// The scheme component: a button that turns the page from light to dark and back. pages/frame/scheme.js, which stands in
// the page itself, does it and remembers the choice; where the page comes without that, there is no button.

class View {
  constructor(root) {
    const turn = button("", tr("Light or dark"), () => this.turn());
    const picture = svgElement("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" });
    picture.append(svgElement("path", { d: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20Zm0 2v16a8 8 0 0 1 0-16Z" }));
    turn.append(picture);
    root.append(turn);
    root.hidden = !document.documentElement.dataset.turnsScheme;
  }

  turn() {
    document.dispatchEvent(new Event("turn-scheme"));
  }

  // `turns` counts how often an action of the search has asked for it.
  update({ data }) {
    if (this.turns !== undefined && data.turns > this.turns) this.turn();
    this.turns = data.turns;
  }
}
