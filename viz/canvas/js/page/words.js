// What Streamlit and Plotly say themselves, in English, to a screen reader and above a chart's buttons, in the language
// of the app. Written for Streamlit 1.67.

const SPOKEN = { "aria-label": "[aria-label]", "data-title": ".modebar-btn[data-title]" };
const HELP = /^Help for (.*)$/s;
const said = new WeakMap(); // element -> attribute -> its own words, and ours in their place

// By what is written here the page knows which words to bring along.
function ownWords() {
  return new Set([
    ...[tr("Sidebar"), tr("Collapse sidebar"), tr("App pages"), tr("Scroll tabs left"), tr("Scroll tabs right")],
    ...[tr("Open"), tr("Help"), tr("Zoom"), tr("Pan"), tr("Zoom in"), tr("Zoom out"), tr("Reset axes"), tr("Fullscreen")],
  ]);
}

function translateOwnWords() {
  const words = ownWords();
  for (const [attribute, selector] of Object.entries(SPOKEN)) {
    for (const node of document.querySelectorAll(selector)) {
      const now = node.getAttribute(attribute);
      const known = said.get(node)?.[attribute];
      const own = known?.ours === now ? known.own : now;
      const of = own.match(HELP);
      const ours = of ? tr("Help for {name}", { name: of[1] }) : words.has(tr(own)) ? tr(own) : own;
      if (ours === now) continue;
      said.set(node, { ...said.get(node), [attribute]: { own, ours } });
      node.setAttribute(attribute, ours);
    }
  }
}
