// A formula that is wider than its place, and a list that is longer, scrolls by the arrow keys, in every browser.

const SCROLLS = ".katex-display, .st-key-effect [data-testid=stHtml], .st-key-active-changes";

class Scrolls {
  constructor() {
    this.sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => letScroll(target)));
    this.watch = () => (this.frame ||= requestAnimationFrame(() => this.measureAll()));
    this.drawn = new MutationObserver(this.watch);
    this.drawn.observe(document.body, { childList: true, subtree: true });
    // KaTeX's own fonts, once they are loaded, change the width of a formula, but not the size of its box.
    document.fonts.addEventListener("loadingdone", this.watch);
    this.watch();
  }

  close() {
    this.drawn.disconnect();
    this.sizes.disconnect();
    document.fonts.removeEventListener("loadingdone", this.watch);
    cancelAnimationFrame(this.frame);
  }

  // Each is measured at once, and again whenever its size changes, as in a tab that is opened.
  measureAll() {
    this.frame = 0;
    this.sizes.disconnect();
    document.querySelectorAll(SCROLLS).forEach((box) => this.sizes.observe(box));
  }
}

function letScroll(box) {
  const taller = box.scrollHeight > box.clientHeight + 1 && !box.matches(".katex-display");
  if (!taller && box.scrollWidth <= box.clientWidth + 1) box.removeAttribute("tabindex");
  else if (box.tabIndex !== 0) box.tabIndex = 0;
}
