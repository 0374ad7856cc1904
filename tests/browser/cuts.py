"""What nobody can read or reach on a page: text that its box cuts, words that lie on one another, links that are none,
and a chart's buttons on a control.

`watch_canvases` has to be in a window before its page: what a canvas shows is known by what it was asked to draw.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

WATCH = """(() => {
  window.everything = (root = document) => [...root.querySelectorAll("*")].flatMap((each) =>
    [each, ...(each.shadowRoot ? everything(each.shadowRoot) : [])]);
  const drawn = new WeakMap(), proto = CanvasRenderingContext2D.prototype;
  const { fillText, clearRect } = proto;
  const note = (context, text, x, y) => {
    const { width, actualBoundingBoxLeft: left, actualBoundingBoxRight: right } = context.measureText(text);
    const at = context.getTransform();
    const ends = [x - left, x + right].map((end) => at.transformPoint(new DOMPoint(end, y)));
    const size = parseFloat(context.font.match(/([\\d.]+)px/)[1]) * Math.hypot(at.a, at.b);
    const texts = drawn.get(context.canvas) ?? new Map();
    drawn.set(context.canvas, texts);
    texts.set(`${text}@${Math.round(ends[0].x)},${Math.round(ends[0].y)}`, { text, ends, width, size });
  };
  proto.fillText = function (text, x, y, ...rest) {
    if (String(text).trim()) note(this, String(text), x, y);
    return fillText.call(this, text, x, y, ...rest);
  };
  proto.clearRect = function (x, y, width, height) {
    if (width >= this.canvas.clientWidth && height >= this.canvas.clientHeight) drawn.delete(this.canvas);
    return clearRect.call(this, x, y, width, height);
  };
  for (const side of ["width", "height"]) {
    const own = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, side);
    const set = function (size) {
      drawn.delete(this);
      own.set.call(this, size);
    };
    Object.defineProperty(HTMLCanvasElement.prototype, side, { ...own, set });
  }
  window.drawnOn = (canvas) => [...(drawn.get(canvas)?.values() ?? [])];
})()"""
"""Remembers the texts of each canvas since it was last cleared, with their ends and sizes in pixels of the canvas; and
finds all elements of a page, those inside our own pictures, too."""
CUTS = """() => {
  const found = [], main = document.querySelector("[data-testid=stApp]");
  const above = (node) => node.parentElement ?? node.getRootNode().host;
  const place = (node) => {
    for (let each = node; each; each = above(each)) {
      const key = typeof each.className === "string" && each.className.match(/st-key-[\\w-]+/);
      if (key) return key[0];
    }
    return node.closest("[data-testid]")?.dataset.testid ?? "";
  };
  const shown = (node) => {
    if (!node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    for (let each = node; each; each = above(each)) {
      if (each.getAttribute("aria-hidden") === "true" || each.inert) return false;
      const { clipPath, clip, position } = getComputedStyle(each);
      if (clipPath === "inset(50%)" || (clip !== "auto" && position === "absolute")) return false;
    }
    return true;
  };
  // Where a text is shortened, the whole is said on hover and focus by one of these.
  const whole = (node) => {
    for (let each = node, steps = 0; each && steps < 6; each = above(each), steps += 1)
      if (each.title || each.dataset?.whole || each.dataset?.testid === "stTooltipHoverTarget") return true;
    return false;
  };
  const words = [];
  for (const node of everything(main)) {
    if (/^(script|style|option|annotation|title|desc)$/i.test(node.tagName)) continue;
    if (node.closest(".katex-mathml, .modebar-container, [data-testid=stIconMaterial]")) continue;
    const texts = [...node.childNodes].filter((each) => each.nodeType === 3 && each.data.trim());
    if (!texts.length || !shown(node)) continue;
    for (const text of texts) {
      const range = document.createRange();
      range.selectNodeContents(text);
      const rects = [...range.getClientRects()].filter((each) => each.width > 1 && each.height > 1);
      if (!rects.length) continue;
      const box = rects.reduce((all, each) => ({ left: Math.min(all.left, each.left), top: Math.min(all.top, each.top),
        right: Math.max(all.right, each.right), bottom: Math.max(all.bottom, each.bottom) }),
        { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity });
      let cut = "", scrolls = false;
      for (let each = node; each && each !== main; each = above(each)) {
        const style = getComputedStyle(each), { overflowX: x, overflowY: y } = style;
        if (each instanceof SVGElement && each.tagName !== "svg") continue;
        if (x === "visible" && y === "visible" && each.tagName !== "svg") continue;
        if (/inline$/.test(style.display) && each.tagName !== "svg") continue;
        const frame = each.getBoundingClientRect();
        const wide = !scrolls && box.right > frame.right + 2 || box.left < frame.left - 2;
        const tall = box.bottom > frame.bottom + 3 || box.top < frame.top - 3;
        if (/auto|scroll/.test(x + y)) { scrolls = true; break; }
        if (wide && /hidden|clip/.test(x) || tall && /hidden|clip/.test(y)) { cut = each; break; }
      }
      if (cut && !whole(node)) found.push(["cut", place(node), text.data.trim().slice(0, 60)]);
      if (!cut && !scrolls && !node.closest("[data-testid=stHeader], [data-testid=stSidebar]"))
        for (const rect of rects) words.push({ node, text: text.data.trim(), rect });
      const link = getComputedStyle(node);
      if (/underline/.test(link.textDecorationLine) && !/dotted/.test(link.textDecorationStyle) &&
          !node.closest("a[href], button, [role=button], summary, [role=tab], abbr"))
        found.push(["no link", place(node), text.data.trim().slice(0, 60)]);
    }
  }
  const tops = words.sort((one, other) => one.rect.top - other.rect.top);
  for (let at = 0; at < tops.length; at += 1) {
    const one = tops[at];
    for (let next = at + 1; next < tops.length && tops[next].rect.top < one.rect.bottom - 4; next += 1) {
      const other = tops[next];
      if (one.node === other.node || one.node.contains(other.node) || other.node.contains(one.node)) continue;
      if (one.node.closest(".katex") && one.node.closest(".katex") === other.node.closest(".katex")) continue;
      const wide = Math.min(one.rect.right, other.rect.right) - Math.max(one.rect.left, other.rect.left);
      const tall = Math.min(one.rect.bottom, other.rect.bottom) - Math.max(one.rect.top, other.rect.top);
      const low = Math.min(one.rect.height, other.rect.height);
      if (wide > 3 && tall > 0.4 * low)
        found.push(["on another", place(one.node), `${one.text.slice(0, 30)} | ${other.text.slice(0, 30)}`]);
    }
  }
  // What a chart's buttons lie on while they are shown.
  const acts = (node) => node.matches("button, input, label, a[href], [role=tab]");
  const controls = everything(main).filter((each) => acts(each) && shown(each));
  for (const bar of main.querySelectorAll(".modebar")) {
    const own = bar.getBoundingClientRect();
    for (const control of controls.filter((each) => own.width && !each.closest(".js-plotly-plot"))) {
      const { left, top, right, bottom } = control.getBoundingClientRect();
      const wide = Math.min(own.right, right) - Math.max(own.left, left);
      if (wide > 3 && Math.min(own.bottom, bottom) - Math.max(own.top, top) > 3)
        found.push(["buttons on a control", place(bar), control.textContent.trim().slice(0, 60)]);
    }
  }
  // A table's canvas scrolls, and a click on a cell shows all of it.
  const canvases = everything(main).filter((each) => each.tagName === "CANVAS" && shown(each));
  for (const canvas of canvases.filter((each) => !each.closest("[data-testid=stDataFrame]")))
    for (const { text, ends } of drawnOn(canvas)) {
      const lost = Math.max(-ends[0].x, ends[1].x - canvas.width, -ends[0].y, ends[1].y - canvas.height);
      if (lost > 3 && ends[0].x < canvas.width && ends[0].y < canvas.height && ends[1].x > 0 && ends[0].y > 0)
        found.push(["cut on a canvas", place(canvas), text.slice(0, 60)]);
    }
  return found;
}"""


PICTURES = """() => [...document.querySelectorAll(
  "[data-testid=stMain] :is(.stPlotlyChart, .stBidiComponent, [data-testid=stDataFrame], table, img)")]
  .filter((node) => node.checkVisibility() && node.getBoundingClientRect().height > 60).length"""


def watch_canvases(window: "BrowserContext | Page") -> None:
    """From its next page on, remember what is drawn on each canvas."""
    window.add_init_script(WATCH)


def cuts(page: "Page") -> list[tuple[str, str, str]]:
    """(kind, place, text) of everything that cannot be read, or only looks like a link, as the page is now."""
    return sorted({tuple(each) for each in page.evaluate(CUTS)})


def pictures(page: "Page") -> int:
    """How many pictures and tables the open tab shows."""
    return page.evaluate(PICTURES)
