// What Streamlit and Plotly say themselves, in English, to a screen reader and above a chart's buttons, in the language
// of the app. Written for Streamlit 1.67.

const HELP = "Help for ";
const SPOKEN = { "aria-label": "[aria-label]", "data-title": ".modebar-btn[data-title]" };
const said = new WeakMap(); // element -> attribute -> its own words, and ours in their place

function ownWords() {
  return {
    Sidebar: tr("Sidebar"),
    "Collapse sidebar": tr("Collapse sidebar"),
    "App pages": tr("App pages"),
    "Scroll tabs left": tr("Scroll tabs left"),
    "Scroll tabs right": tr("Scroll tabs right"),
    Open: tr("Open"),
    Help: tr("Help"),
    Zoom: tr("Zoom"),
    Pan: tr("Pan"),
    "Zoom in": tr("Zoom in"),
    "Zoom out": tr("Zoom out"),
    "Reset axes": tr("Reset axes"),
    Fullscreen: tr("Fullscreen"),
  };
}

function translateOwnWords() {
  const words = ownWords();
  for (const [attribute, selector] of Object.entries(SPOKEN)) {
    for (const node of document.querySelectorAll(selector)) {
      const now = node.getAttribute(attribute);
      const known = said.get(node)?.[attribute];
      const own = known?.ours === now ? known.own : now;
      const help = own.startsWith(HELP) && tr("Help for {name}", { name: own.slice(HELP.length) });
      const ours = help || (Object.hasOwn(words, own) ? words[own] : own);
      if (ours === now) continue;
      said.set(node, { ...said.get(node), [attribute]: { own, ours } });
      node.setAttribute(attribute, ours);
    }
  }
}
