// needs: shared/mount.js
// The present component: makes the picture of the page as large as what is left of the window, and F shows the window
// on the whole screen. A picture of our own is enlarged, so that its labels can be read from afar.

const STAGE = ".st-key-present-stage";
// By how much a picture is enlarged, and the share of the width in percent: the first at which its height fits. The
// smallest labels of our pictures have 11 pixels, enlarged by 1.46 they have 16.
const SIZES = [
  ...[100, 85, 72, 60, 50].map((width) => [1.46, width]),
  ...[1.3, 1.15, 1, 0.85, 0.7, 0.55].map((zoom) => [zoom, 100]),
];
const MARGIN = 12; // pixels

class View {
  constructor(root) {
    root.append(button("F", tr("Full screen"), () => this.fill()));
    this.onKey = (event) => this.key(event);
    this.onResize = () => this.fit();
    document.addEventListener("keydown", this.onKey);
    addEventListener("resize", this.onResize);
    this.observer = new MutationObserver(() => this.fit());
    this.observer.observe(document.querySelector("[data-testid=stMain]"), { childList: true, subtree: true });
  }

  close() {
    document.removeEventListener("keydown", this.onKey);
    removeEventListener("resize", this.onResize);
    this.observer.disconnect();
  }

  update() {
    document.querySelector("[data-testid=stMain]").scrollTo(0, 0);
    this.room = null;
    requestAnimationFrame(() => this.fit());
  }

  key(event) {
    if (event.key.toLowerCase() === "f" && !hasModifier(event) && !happensIn(event, FIELDS)) this.fill();
  }

  fill() {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen?.();
  }

  async fit() {
    const stage = document.querySelector(STAGE);
    const picture = stage?.querySelector("[data-testid^=stBidi]") ?? null;
    const room = stage && innerHeight - stage.getBoundingClientRect().top - MARGIN;
    if (!stage || (room === this.room && picture === this.picture)) return;
    [this.room, this.picture] = [room, picture];
    stage.style.setProperty("--stage", `${room}px`);
    if (!picture) return;
    for (const [zoom, width] of SIZES) {
      if (this.picture !== picture || this.room !== room) return; // another picture came meanwhile
      Object.assign(picture.style, { zoom, width: `${width}%`, marginInline: "auto" });
      picture.style.setProperty("--room", room / zoom);
      await drawn();
      if (picture.getBoundingClientRect().height <= room + 1) return;
    }
  }
}

// Pictures are drawn again once their new width is known.
function drawn() {
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
}
