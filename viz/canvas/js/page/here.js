// needs: shared/mount.js shared/colours.js page/dialogs.js page/enter.js page/history.js page/links.js page/menu.js page/scrolls.js page/slow.js page/typed.js page/words.js
// The here component: Shift with an arrow key chooses layer or head, wherever the focus is, and a click on a word of a
// sentence (viz/html.py) its row; and whether the screen is narrow, which decides how panels stand, or dark, which decides
// the colours of charts. It draws nothing.

const MOVES = {
  ArrowUp: ["layer", -1],
  ArrowDown: ["layer", 1],
  ArrowLeft: ["head", -1],
  ArrowRight: ["head", 1],
};

const STEPS = { sentence: ".st-key-source textarea", temperature: ".st-key-tau input" }; // of the tour -> its control
const STACKED = "(max-width: 768px)"; // as in the style sheet

class View {
  constructor(root) {
    this.root = root;
    this.narrow = matchMedia(STACKED);
    this.onWidth = () => this.tell("narrow", this.narrow.matches);
    this.narrow.addEventListener("change", this.onWidth);
    keepOneEntryPerAct();
    makeLinksWaitForText();
    submitTextOnEnter();
    this.pending = new Pending();
    this.menu = new Menu();
    this.shown = new WeakMap();
    this.typed = new Typed();
    this.scrolls = new Scrolls();
    this.slow = new Slow();
    this.dialogs = new Dialogs();
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
    this.onClick = (event) => this.click(event);
    document.addEventListener("click", this.onClick);
  }

  close() {
    this.narrow.removeEventListener("change", this.onWidth);
    clearTimeout(this.timer);
    clearTimeout(this.wait);
    clearTimeout(this.seek);
    this.menu.close();
    this.typed.close();
    this.scrolls.close();
    this.slow.close();
    this.dialogs.close();
    document.removeEventListener("keydown", this.onKey);
    document.removeEventListener("click", this.onClick);
  }

  update({ data, setStateValue, setTriggerValue }) {
    history.arriveAt(data.page, data.at, data.entries);
    // Assigning it, even the same value, makes the browser restyle every element.
    if (document.documentElement.lang !== data.lang) document.documentElement.lang = data.lang;
    [this.send, this.tell] = [setTriggerValue, setStateValue];
    // The new page writes its address while the browser still has that of the page that was left.
    if (data.tab) this.tab = { page: data.page, key: data.entries.at(-1), title: data.tab };
    if (this.tab) this.nameTab();
    if (data.narrow !== this.narrow.matches) this.onWidth();
    const dark = isDark(themeOf(this.root).background);
    if (data.dark !== dark) setStateValue("dark", dark);
    this.menu.update(data.lacks, data.section);
    this.typed.ran(data.texts);
    [this.kinds, this.off] = [data.kinds, data.off];
    this.place = this.pending.afterAnswer(data.place);
    this.showTab();
    if (data.leads) this.showSection(data.leads);
  }

  // The address names the tab that a link has opened, as soon as the page is there.
  nameTab() {
    clearTimeout(this.timer);
    const there = new URL(location);
    if (isRunning() || there.pathname.split("/").at(-1) !== this.tab.page) {
      this.timer = setTimeout(() => this.nameTab(), 100);
      return;
    }
    const { key, title } = this.tab;
    this.tab = null;
    const open = [...document.querySelectorAll("[role=tab][aria-selected=true]")].some((tab) => tab.innerText === title);
    if (!open || there.searchParams.has(key)) return;
    there.searchParams.set(key, title);
    history.replaceState(history.state, "", there);
  }

  // The open tab may lie beside what a row of many shows: it is brought into view, once, without moving the page.
  showTab() {
    clearTimeout(this.wait);
    for (const tab of document.querySelectorAll("[data-testid=stMain] [role=tab][aria-selected=true]")) {
      const name = `${location.pathname} ${tab.textContent}`;
      if (this.shown.get(tab) === name) continue;
      this.shown.set(tab, name);
      bringIntoView(tab, tab.closest("[role=tablist]"));
    }
    if (isRunning()) this.wait = setTimeout(() => this.showTab(), 100);
  }

  // The section that a link leads to is at the top once the page has been drawn, and Tab goes on from there.
  showSection(name) {
    clearTimeout(this.seek);
    const [place] = document.getElementsByClassName(`st-key-${name}`);
    if (isRunning()) {
      this.seek = setTimeout(() => this.showSection(name), 100);
    } else if (place) {
      place.tabIndex = -1;
      place.focus({ preventScroll: true });
      place.scrollIntoView();
    }
  }

  go(change) {
    this.place = { ...this.place, ...change };
    this.pending.sent.push(this.place);
    this.send("move", this.place);
  }

  click({ target }) {
    const { kind, query } = target.closest(".sentence [data-query]")?.dataset ?? {};
    if (kind) this.send("move", { kind, query: Number(query) });
    const step = Object.keys(STEPS).find((name) => target.closest(`.st-key-tour-${name} button`));
    if (step) focusControl(STEPS[step]);
  }

  key(event) {
    const move = MOVES[event.key];
    const { altKey, ctrlKey, metaKey, shiftKey } = event;
    if (!move || this.off || !shiftKey || altKey || ctrlKey || metaKey) return;
    if (event.defaultPrevented || happensIn(event, FIELDS)) return;
    event.preventDefault();
    const [what, by] = move;
    const { layers, heads } = this.kinds.find(({ name }) => name === this.place.kind);
    const wanted = this.place[what] + by;
    if (what === "layer" ? layers.includes(wanted) : wanted >= 0 && wanted < heads) this.go({ [what]: wanted });
  }
}

// Where the sidebar is closed, it opens first.
function focusControl(selector) {
  const seen = () => [...document.querySelectorAll(selector)].find((node) => node.closest(".stElementContainer")?.offsetParent);
  if (!seen()) document.querySelector("[data-testid=stExpandSidebarButton]")?.click();
  setTimeout(() => seen()?.focus(), seen() ? 0 : 400);
}

function isRunning() {
  return !document.querySelector("[data-testid=stApp][data-test-script-state=notRunning]");
}

function bringIntoView(tab, row) {
  const [inner, outer] = [tab.getBoundingClientRect(), row.getBoundingClientRect()];
  const outside = inner.left < outer.left || inner.right > outer.right;
  if (outside) row.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
}
