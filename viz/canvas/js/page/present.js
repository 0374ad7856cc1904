// needs: shared/mount.js
// The present component: makes the picture of the page as large as what is left of the window, and F shows the window
// on the whole screen. A picture of our own is enlarged, so that its labels can be read from afar. A text is shown a
// screen at a time: the arrow keys go through its screens before they go on to the next tab.

const STAGE = ".st-key-present-stage";
const TEXT = ".st-key-present-text";
const OWN = "[data-testid^=stBidi]";
const CHART = "[data-testid=stElementContainer]:has(.stPlotlyChart)";
const TITLES = "h1, h2, h3, h4, h5, h6";
const WHOLE = `${OWN}, .stPlotlyChart, [data-testid=stCode], .katex-display, p, tr`;
// By how much a picture is enlarged, and the share of the width in percent: the first at which its height fits. The
// smallest labels of our pictures have 11 pixels, enlarged by 1.46 they have 16.
const ENLARGED = 1.46;
const SIZES = [
  ...[100, 85, 72, 60, 50].map((width) => [ENLARGED, width]),
  ...[1.3, 1.15, 1, 0.85, 0.7, 0.55].map((zoom) => [zoom, 100]),
];
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
    [this.number, this.screens, this.fitted] = [0, [], new WeakMap()];
    const fit = () => this.fitSoon();
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
  }

  update({ data }) {
    if (String(data.names) !== String(this.names)) this.number = 0;
    this.names = data.names;
    document.querySelector("[data-testid=stMain]").scrollTo(0, 0);
    this.room = null;
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
    [this.text, this.screens] = [document.querySelector(TEXT), []];
    if (this.text) this.cut();
    this.show();
    const stage = document.querySelector(STAGE);
    if (stage) this.fitStage(stage);
  }

  fitStage(stage) {
    const picture = stage.querySelector(OWN);
    const room = roomBelow(stage);
    if (room === this.room && picture === this.picture) return;
    [this.room, this.picture] = [room, picture];
    stage.style.setProperty("--stage", `${room}px`);
    if (picture) enlarge(picture, room, () => this.picture === picture && this.room === room);
  }

  // Pictures of our own are drawn late: each change of a height cuts the text again.
  cut() {
    const { text } = this;
    const room = roomBelow(text);
    text.style.setProperty("--stage", `${room}px`);
    text.style.setProperty("--room", room / ENLARGED);
    for (const part of text.children) this.observers[1].observe(part);
    for (const picture of text.querySelectorAll(OWN)) this.fitInText(picture, room);
    const charts = [...text.querySelectorAll(CHART)].filter((chart) => chart.offsetHeight);
    for (const chart of charts) chart.style.removeProperty("--chart");
    const lowest = charts[0]?.offsetHeight;
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

  async fitInText(picture, room) {
    if (picture.getBoundingClientRect().height <= room + 1 || this.fitted.get(picture) === room) return;
    this.fitted.set(picture, room);
    const fits = await enlarge(picture, room, () => this.fitted.get(picture) === room && picture.isConnected);
    if (fits) this.fitted.delete(picture);
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

// Give a picture the first of the sizes in which it fits, as long as it is `wanted`. Returns whether there is one.
async function enlarge(picture, room, wanted) {
  for (const [zoom, width] of SIZES) {
    if (!wanted()) return false;
    Object.assign(picture.style, { zoom, width: `${width}%`, marginInline: "auto" });
    picture.style.setProperty("--room", room / zoom);
    await drawn();
    if (picture.getBoundingClientRect().height <= room + 1) return true;
  }
  return false;
}

// Pictures are drawn again once their new width is known.
function drawn() {
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
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
