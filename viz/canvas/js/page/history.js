// Back undoes one act: each page, and each step, tab, station and head that somebody opens, is an entry of the history.
// What belongs to the whole visit, such as the sentence, stays as it is. Written for Streamlit 1.67, which adds an entry
// for each query parameter that changes and one without parameters for each page.

const VISIT = ["source", "typed", "target", "checkpoint", "device", "new_tokens", "chat", "turns", "tau", "scope"];
const PATIENCE = 400; // milliseconds after which a page that is not the address's is opened again

function keepOneEntryPerAct() {
  if (history.hasOneEntryPerAct) return;
  history.hasOneEntryPerAct = true;
  // Streamlit changes the path only after it has drawn the new page. Query parameters that the new page writes before
  // then end up in the entry of the old page, which gets back the address it had when the link was clicked.
  let left = null;
  const isLink = (each) => each instanceof HTMLAnchorElement;
  const remember = (event) => (left = event.composedPath().some(isLink) ? new URL(location) : left);
  document.addEventListener("click", remember, true);
  // One act may change several parameters, one after another; only the first of them adds an entry.
  let [acts, entered] = [0, 0];
  for (const type of ["pointerdown", "keydown"]) addEventListener(type, () => (acts += 1), true);
  let entries = [];
  const valuesOf = (url) => entries.map((key) => url.searchParams.get(key) ?? "").join("\n");
  // After Back or Forward, what the page that was left still writes is ignored: the entry gone to has its own address.
  let moving = false;
  let last = new URL(location);
  const page = () => location.pathname.split("/").at(-1);
  let carries = false;
  const arrive = () => {
    if (carries) return;
    moving = true;
    entered = acts;
    const wanted = new URL(location);
    for (const key of VISIT) {
      if (last.searchParams.has(key)) wanted.searchParams.set(key, last.searchParams.get(key));
      else wanted.searchParams.delete(key);
    }
    last = wanted;
    if (wanted.href === location.href) return;
    replace(history.state, "", wanted);
    // Streamlit has read the address by now: it reads it again.
    carries = true;
    dispatchEvent(new PopStateEvent("popstate"));
    carries = false;
  };
  // What people chose, by parameter, until a run has read it. An earlier run may still write the address that it began
  // with, and Streamlit never mends that.
  const chosen = new Map();
  const note = (before, after) => {
    for (const key of new Set([...before.keys(), ...after.keys()])) {
      if (before.get(key) !== after.get(key)) chosen.set(key, after.get(key));
    }
  };
  const restore = (at) => {
    const wanted = new URL(location);
    for (const [key, value] of chosen) {
      if ((at[key] ?? null) !== value) continue;
      chosen.delete(key);
      if (value === null) wanted.searchParams.delete(key);
      else wanted.searchParams.set(key, value);
    }
    if (wanted.search !== location.search) replace(history.state, "", wanted);
    last = new URL(location);
  };
  let timer;
  history.arriveAt = (shown, at, keys) => {
    entries = keys;
    if (shown === page() && !moving) restore(at);
    const same = keys.every((key) => (at[key] ?? "") === (new URL(location).searchParams.get(key) ?? ""));
    if (shown === page() && same) moving = false;
    clearTimeout(timer);
    if (shown !== page()) timer = setTimeout(openAgain, PATIENCE, shown);
  };
  // Back in the same moment as a link: Streamlit may end with the link's page at the address of another.
  const openAgain = (shown) => {
    if (isRunning()) timer = setTimeout(openAgain, PATIENCE, shown);
    else if (shown !== page()) dispatchEvent(new PopStateEvent("popstate"));
  };
  const ignored = () => (moving &&= !left);
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  addEventListener("popstate", arrive, true);
  // Python writes a parameter with pushState, and a widget that is bound to one with replaceState.
  const write = (otherwise) => (state, title, address) => {
    if (ignored()) return;
    const there = new URL(address ?? location, location);
    if (there.pathname === location.pathname) {
      if (otherwise === replace) note(new URL(location).searchParams, there.searchParams);
      const opens = !left && acts > entered && valuesOf(there) !== valuesOf(new URL(location));
      if (opens) entered = acts;
      (opens ? push : replace)(state, title, address);
    } else {
      if (left?.pathname === location.pathname) replace(history.state, title, left);
      left = null;
      entered = acts;
      chosen.clear();
      otherwise(state, title, address);
    }
    last = new URL(location);
  };
  history.pushState = write(push);
  history.replaceState = write(replace);
}
