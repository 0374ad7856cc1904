// The address says what is on screen, and a link brings it back.

const HERE = ["localhost", "127.0.0.1", "[::1]"];
const LOCAL_APP = "http://localhost:8501/"; // as `make run` starts it

// Sentence, head and changes with the names and the form that the app's links have (model/interventions/link.py).
function parameters() {
  const { kind, layer, head } = state.place;
  const query = new URLSearchParams({ source: state.working || state.waiting || words.asked || state.run.text, see: `${kind}.${layer}.${head}` });
  if (state.changes.length) query.set("changes", `[${state.changes.map(textOf).join(",")}]`);
  return query;
}

function showLink() {
  const query = parameters();
  const here = `?${query}${state.step ? `#${SECTIONS[state.step].id}` : ""}`;
  // A new address makes the browser compute the style of everything again.
  if (here === state.link) return;
  state.link = here;
  for (const link of document.querySelectorAll("#languages a")) link.href = link.getAttribute("href").replace(/[?#].*|$/, here);
  if (words.language !== "en") query.set("lang", words.language);
  if (words.page) query.set("checkpoint", words.checkpoint);
  // Where the page comes from one's own computer, the app may run there too.
  const app = words.app || (HERE.includes(location.hostname) ? LOCAL_APP : "");
  at("open").hidden = !app;
  at("open").href = `${app}${state.changes.length ? "what_if" : words.page}?${query}`;
  try {
    history.replaceState(null, "", here);
  } catch {
    // A file opened from a disk may have no address of its own; nothing else depends on it.
  }
}

function readLink() {
  const query = new URLSearchParams(location.search);
  const [kind, layer, head] = (query.get("see") ?? "").split(".");
  const place = { kind, layer: Number(layer), head: Number(head) };
  if (Object.hasOwn(kinds, kind) && layersOf(kind).includes(place.layer) && range(config.n_heads).includes(place.head)) state.place = place;
  if (query.get("source")?.trim()) {
    words.asked = query.get("source").trim().split(/\s+/).join(" ");
    at("sentence").value = words.asked;
    if (words.asked === state.run.text) words.asked = null;
  }
  try {
    state.changes = readChanges(query.get("changes"));
  } catch {
    note(tr("The changes in this link are incomplete: was it cut off when it was copied?"));
  }
}
