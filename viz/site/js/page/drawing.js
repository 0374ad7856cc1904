// When pictures are drawn, and what is done in them.

// The learned arrays of an attention; several pictures wait for the same ones.
function weightsOf(path) {
  if (state.learned.path !== path) state.learned = { path, arrays: thread.ask("weights", { path, topic: path }) };
  return state.learned.arrays;
}

// Draws what is on screen, and the rest when it comes there; what leaves it does not hold its pixels.
const visible = new Set();
const stale = new Set(Object.keys(PICTURES));
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) visible.add(target.id);
    else {
      visible.delete(target.id);
      letGo(target);
    }
  }
  drawVisible();
}, { rootMargin: "200px" });

function redraw(ids = Object.keys(PICTURES)) {
  for (const id of ids) stale.add(id);
  drawVisible();
}

// One after another, each in a frame of its own, so that the page stays at hand.
async function drawVisible() {
  if (state.drawing) return;
  state.drawing = true;
  for (let id = nextToDraw(); id; id = nextToDraw()) {
    stale.delete(id);
    draw(id); // what asks the model first does not hold up the others
    await nextFrame();
  }
  state.drawing = false;
}

// Paper has every picture but those that wait for an answer of the model.
function print() {
  if (!state.whole) return;
  state.printing = true;
  for (const id of stale) {
    stale.delete(id);
    draw(id);
  }
}

function printed() {
  state.printing = false;
  for (const id of Object.keys(PICTURES)) if (!visible.has(id)) letGo(at(id));
}

// After the browser has painted; while nobody sees the page it paints nothing.
function nextFrame() {
  return new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
}

// Of the pictures that are not drawn the one nearest to the screen. The first picture does not wait for what the others
// need.
function nextToDraw() {
  const missing = [...visible].filter((id) => stale.has(id) && (state.whole || id === FIRST) && (state.live || !at(id).classList.contains("waits")));
  const distances = missing.map((id) => {
    const { top, bottom } = at(id).getBoundingClientRect();
    return Math.max(top - innerHeight, -bottom, 0);
  });
  return missing[distances.indexOf(Math.min(...distances))];
}

async function draw(id) {
  const host = at(id);
  try {
    const picture = await PICTURES[id]();
    if (picture && (visible.has(id) || state.printing)) mount(host, picture);
    else stale.add(id); // a newer question came first, or it has left the screen
    host.classList.remove("waits");
  } catch (error) {
    host.classList.add("waits");
    if (!(error instanceof NotRecorded)) note(tr("A picture could not be drawn: {error}", { error: error.message }));
    else if (!state.live) stale.add(id);
  }
}

function mount(host, { component, data, key }) {
  if (!host.shadowRoot) host.attachShadow({ mode: "open" }).innerHTML = window.components[component].html;
  const send = (event, value) => ON[event]?.(value, host.id);
  const before = host.shadowRoot.querySelectorAll("canvas");
  window.components[component].mount({ parentElement: host.shadowRoot, data, key, setTriggerValue: send, setStateValue() {} });
  // What the picture has replaced would hold its pixels until the browser's next cleaning.
  for (const canvas of before) if (!canvas.isConnected) canvas.width = 0;
  if (!performance.getEntriesByName("first-picture").length) performance.mark("first-picture");
}

// Frees the canvases of a picture, which keep their places; it is drawn again when it comes back.
function letGo({ id, shadowRoot }) {
  for (const canvas of shadowRoot?.querySelectorAll("canvas") ?? []) {
    if (!canvas.style.height) continue; // of a legend: a few pixels, drawn once
    canvas.width = canvas.height = 0;
    stale.add(id);
  }
}

const ON = {
  move(at) {
    moveTo(at);
    sayToken();
    sayHere();
    redraw(["tokens-picture"]);
  },
  switch({ at, off }) {
    moveTo(at);
    setChanges([...state.changes.filter((change) => !isSwitch(textOf(change))), ...readChanges(off)]);
  },
  open({ at, step }) {
    moveTo(at);
    goTo(SECTIONS.findIndex(({ id }) => id === step));
    return true;
  },
  choose: (place) => choosePlace(place),
  tau: setTemperature,
  row: chooseQuery,
  look: ({ row }) => chooseQuery(row),
  step: (step, id) => id === "part-picture" && setPart(step - 1),
  pick(picked, id) {
    if (id === "tokens-picture") return chooseToken(picked);
    Object.assign(state.chosen, Object.fromEntries(Object.entries(picked).filter(([name]) => name in state.chosen)));
    say();
    redraw();
  },
};
