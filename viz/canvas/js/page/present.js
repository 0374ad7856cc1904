// needs: shared/mount.js
// The present component: makes the picture of the page as large as what is left of the window, and F shows the window
// on the whole screen. A larger screen is seen from further away, so all that is written grows with it. A text is shown a
// screen at a time: the arrow keys go through its screens before they go on to the next tab.

const STAGE = ".st-key-present-stage";
const TEXT = ".st-key-present-text";
const LINE = ".st-key-present-line"; // of tokens, above the stage
const OWN = "[data-testid^=stBidi]";
const CHART = "[data-testid=stElementContainer]:has(.stPlotlyChart)";
const TITLES = "h1, h2, h3, h4, h5, h6";
const WHOLE = `${OWN}, .stPlotlyChart, [data-testid=stCode], .katex-display, p, tr`;
// By how much a picture of our own is enlarged on a screen of this size, and on a smaller one: the smallest labels have 11
// pixels, enlarged by 1.46 they have 16. On a larger screen everything has the same share of it.
const ENLARGED = 1.46;
const SCREEN = [1280, 720];
const LEAST = 0.5; // of that, where a picture is too high for the screen all the same
const MARGIN = 12; // pixels
const CARRIED = 0.35; // of a screen, at most, goes along with a title that would stand near its foot

class View {
  constructor(root) {
    this.title = element("span", "title");
    this.way = element("span", "way");
    this.count = element("span");
    this.back = button("‹", tr("Screen before"), () => this.turn(-1));
    this.next = button("›", tr("Next screen"), () => this.turn(1));
    this.way.append(this.back, this.count, this.next);
    root.append(this.title, this.way, button("F", tr("Full screen"), () => this.fill()));
    [this.number, this.screens, this.sizes] = [0, [], new WeakMap()];
    const fit = () => this.fitSoon();
    this.page = document.documentElement.style;
    this.observers = [new MutationObserver(fit), new ResizeObserver(fit)];
    this.observers[0].observe(document.querySelector("[data-testid=stMain]"), { childList: true, subtree: true });
    this.listening = new AbortController();
    const { signal } = this.listening;
    // Before the buttons of the tabs, which the arrow keys press, too.
    addEventListener("keydown", (event) => this.key(event), { capture: true, signal });
    addEventListener("focusin", (event) => this.turnTo(event.target), { signal });
    addEventListener("resize", fit, { signal });
  }

  close() {
    this.listening.abort();
    cancelAnimationFrame(this.asked);
    for (const observer of this.observers) observer.disconnect();
    this.page.removeProperty("--by");
  }

  update({ data, setStateValue }) {
    [this.told, this.tell] = [data.by, (by) => setStateValue("by", by)];
    if (String(data.names) !== String(this.names)) this.number = 0;
    this.names = data.names;
    document.querySelector("[data-testid=stMain]").scrollTo(0, 0);
    this.sizes = new WeakMap();
    this.fitSoon();
  }

  key(event) {
    if (hasModifier(event) || happensIn(event, FIELDS)) return;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && this.turn(by)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
    if (event.key.toLowerCase() === "f") this.fill();
  }

  fill() {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen();
  }

  // Once for all that changes until the browser draws.
  fitSoon() {
    this.asked ??= requestAnimationFrame(() => {
      this.asked = null;
      this.fit();
    });
  }

  fit() {
    this.by = Math.max(Math.min(innerWidth / SCREEN[0], innerHeight / SCREEN[1]), 1);
    this.page.setProperty("--by", this.by);
    this.tellSize();
    [this.text, this.screens] = [document.querySelector(TEXT), []];
    if (this.text) this.cut();
    this.show();
    const stage = document.querySelector(STAGE);
    if (!stage) return;
    const line = document.querySelector(LINE);
    if (line) this.observers[1].observe(line);
    const room = roomBelow(stage);
    stage.style.setProperty("--stage", `${room}px`);
    for (const picture of stage.querySelectorAll(OWN)) this.fitPicture(picture, room);
  }

  // Plotly measures its place as it is drawn, so Python makes the letters of a chart larger.
  tellSize() {
    const by = Math.ceil(this.by * 10 - 1e-6) / 10;
    if (!this.tell || by === this.told) return;
    this.told = by;
    this.tell(by);
  }

  // One size for all pictures on this screen; one that is too high in it is drawn smaller, until it fits. By the next frame
  // it has been drawn again.
  fitPicture(picture, room) {
    this.observers[1].observe(picture);
    const zoom = ENLARGED * this.by;
    const { height } = picture.getBoundingClientRect();
    let size = this.sizes.get(picture);
    if (size?.room !== room) size = { room, zoom };
    else if (height > room + 1 && size.zoom > LEAST * zoom) size.zoom *= Math.max(room / height, 0.8);
    else return;
    this.sizes.set(picture, size);
    picture.style.zoom = size.zoom;
    picture.style.setProperty("--room", room / size.zoom);
    for (const { shadowRoot } of picture.querySelectorAll("*")) shadowRoot?.querySelector(".component")?.dispatchEvent(new Event("room"));
    this.fitSoon();
  }

  // Pictures of our own are drawn late: each change of a height cuts the text again.
  cut() {
    const { text } = this;
    const room = roomBelow(text);
    text.style.setProperty("--stage", `${room}px`);
    for (const part of text.children) this.observers[1].observe(part);
    for (const picture of text.querySelectorAll(OWN)) this.fitPicture(picture, room);
    const charts = [...text.querySelectorAll(CHART)].filter((chart) => chart.offsetHeight);
    for (const chart of charts) chart.style.removeProperty("--chart");
    const lowest = charts[0]?.getBoundingClientRect().height;
    this.screens = screensOf(linesOf(text, room), room, text);
    // Charts beside each other, the only ones of their screen, take what the rest leaves.
    for (const { top, bottom } of this.screens) {
      const its = charts.filter((chart) => topIn(text, chart) >= top && topIn(text, chart) < bottom);
      const level = its.every((chart) => Math.abs(topIn(text, chart) - topIn(text, its[0])) < 2);
      const height = `${Math.floor(lowest + room - (bottom - top))}px`;
      if (level) for (const chart of its) chart.style.setProperty("--chart", height);
    }
    if (charts.length) this.screens = screensOf(linesOf(text, room), room, text);
  }

  // Whether there is a screen that far from the one that is shown.
  turn(by) {
    const to = this.number + by;
    if (!(to in this.screens)) return false;
    this.number = to;
    this.show();
    return true;
  }

  // What the Tab key chooses may stand on another screen.
  turnTo(node) {
    if (!this.text?.contains(node)) return;
    const top = topIn(this.text, node);
    this.number = this.screens.findLastIndex((screen) => screen.top <= top);
    this.show();
  }

  show() {
    const { text, screens } = this;
    this.number = clamp(this.number, 0, Math.max(screens.length - 1, 0));
    this.way.hidden = screens.length < 2;
    this.count.textContent = `${this.number + 1} / ${screens.length}`;
    this.back.disabled = this.number === 0;
    this.next.disabled = this.number === screens.length - 1;
    const screen = screens[this.number];
    const names = [...this.names, ...(screen?.title ? [screen.title] : [])];
    this.title.replaceChildren(element("b", "", names[0]), names.slice(1).map((name) => ` · ${name}`).join(""));
    if (!screen) return;
    text.style.maxHeight = `${screen.bottom - screen.top}px`;
    text.scrollTop = screen.top;
  }
}

function roomBelow(node) {
  return innerHeight - node.getBoundingClientRect().top - MARGIN;
}

function topIn(text, node) {
  return node.getBoundingClientRect().top - text.getBoundingClientRect().top + text.scrollTop;
}

// What is not cut, from top to bottom: what stands side by side is one line, { nodes, top, bottom }.
function linesOf(text, room) {
  const lines = [];
  const places = [...text.children].flatMap((part) => piecesOf(part, room)).map((node) => {
    const top = topIn(text, node);
    return { nodes: [node], top, bottom: top + node.getBoundingClientRect().height };
  });
  for (const place of places.sort((one, other) => one.top - other.top)) {
    const last = lines.at(-1);
    if (!last || place.top > last.bottom - 1) lines.push(place);
    else Object.assign(last, { nodes: [...last.nodes, ...place.nodes], bottom: Math.max(last.bottom, place.bottom) });
  }
  return lines;
}

// Parts of the page that fit on a screen, and pictures, paragraphs and rows of tables. The head of a table stays.
function piecesOf(node, room) {
  const { height } = node.getBoundingClientRect();
  if (!height || node.tagName === "THEAD") return [];
  const parts = node.matches(WHOLE) || height <= room ? [] : [...node.children].flatMap((part) => piecesOf(part, room));
  return parts.length ? parts : [node];
}

// The lines in groups that fit below each other: { top, bottom, title }, where the title is one that stands above. A title
// goes along with what it names; where both do not fit, it stands in the row above alone.
function screensOf(lines, room, text) {
  const place = (from, to) => placeOf(lines, from, to, text);
  const fits = (from, to, share = 1) => place(from, to).bottom - place(from, to).top <= share * room;
  const screens = []; // [first line, last line]
  lines.forEach((_, number) => {
    const last = screens.at(-1);
    if (last && fits(last[0], number)) {
      last[1] = number;
      return;
    }
    const title = last ? lines.findLastIndex((line, at) => at >= last[0] && at < number && titleOf(line)) : -1;
    const goesAlong = title > (last?.[0] ?? 0) && fits(title, number - 1, CARRIED) && fits(title, number);
    if (goesAlong || (title >= 0 && title === number - 1)) last[1] = title - 1;
    if (last && last[1] < last[0]) screens.pop();
    screens.push([goesAlong ? title : number, number]);
  });
  return screens.map(([from, to]) => {
    const above = lines.slice(0, from).findLast(titleOf);
    return { ...place(from, to), title: above && !titleOf(lines[from]) ? titleOf(above) : "" };
  });
}

// With the frames that begin or end there.
function placeOf(lines, from, to, text) {
  const first = largestWithout(lines[from].nodes[0], lines[from - 1]?.nodes.at(-1), text);
  const last = largestWithout(lines[to].nodes.at(-1), lines[to + 1]?.nodes[0], text);
  const head = first.tagName === "TR" ? first.closest("table").tHead?.offsetHeight ?? 0 : 0;
  return { top: topIn(text, first) - head, bottom: Math.max(lines[to].bottom, topIn(text, last) + last.getBoundingClientRect().height) };
}

// The largest part of the text around a node that does not hold another one.
function largestWithout(node, other = null, text) {
  let part = node;
  while (part.parentElement !== text && !part.parentElement.contains(other)) part = part.parentElement;
  return part;
}

// What a line says that is a title alone.
function titleOf({ nodes }) {
  const title = nodes[0].matches(TITLES) ? nodes[0] : nodes[0].querySelector(TITLES);
  const text = title?.textContent.trim();
  return text === nodes[0].textContent.trim() ? text : "";
}
