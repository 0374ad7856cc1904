// What the page listens to, and how it begins.

function listen() {
  for (const id of ["head-list", "parts"]) rove(at(id));
  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = at("sentence").value.trim().split(/\s+/).join(" ");
    if (text) read(text);
    else note(tr("Type an English text first."));
  });
  at("ask").addEventListener("click", loadModel);
  listenHere();
  at("gate").addEventListener("click", () => toggle("HeadGate", { gate: 0 }));
  at("trained").addEventListener("click", () => setChanges([]));
  at("add").addEventListener("click", () => setChanges([...state.changes, offered(at("more").value)]));
  at("kind").addEventListener("change", ({ target }) => choosePlace({ kind: target.value, layer: Math.min(state.place.layer, layersOf(target.value).length - 1) }));
  at("layer").addEventListener("change", ({ target }) => choosePlace({ layer: Number(target.value) }));
  at("back").addEventListener("click", () => goTo(state.step - 1));
  at("next").addEventListener("click", () => goTo(state.step + 1));
  at("present").addEventListener("click", () => {
    document.body.classList.toggle("present");
    goTo(state.step);
  });
  document.addEventListener("keydown", onKey);
  addEventListener("beforeprint", print);
  addEventListener("afterprint", () => nextFrame().then(printed));
  for (const event of ["wheel", "touchmove"]) {
    addEventListener(event, () => {
      going = false;
      requestAnimationFrame(follow);
    }, { passive: true });
  }
  let ending;
  addEventListener("scroll", () => {
    holdPlace();
    clearTimeout(ending);
    ending = setTimeout(arrive, REST);
  }, { passive: true });
  new ResizeObserver(holdPlace).observe(document.body);
  addEventListener("hashchange", () => goTo(stepOfHash()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
}

function stepOfHash() {
  return Math.max(SECTIONS.findIndex(({ id }) => `#${id}` === location.hash), 0);
}

function start() {
  at("parts").replaceChildren(...words.steps.map((title, part) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: `${part + 1}. ${title}` });
    button.addEventListener("click", () => setPart(part));
    return button;
  }));
  readLink();
  showWritten();
  listen();
  const toCard = location.hash === "#card"; // as the pages of other languages link to it
  const [step, scroll] = [stepOfHash(), Boolean(location.hash) && !toCard];
  say();
  goTo(step, scroll);
  if (toCard) {
    at("card").open = true;
    at("card").scrollIntoView();
  }
  for (const id of Object.keys(PICTURES)) observer.observe(at(id));
}

// What stands behind the scripts, because the first picture does without it.
async function startTheRest() {
  await whole;
  const { arrays } = state.run;
  Object.assign(arrays, recordedArrays(JSON.parse(at("recorded-head").textContent)));
  if (headers.positions) {
    const [embedding, positional, sum] = headers.positions.arrays;
    arrays[sum] = { ...arrays[positional], values: arrays[positional].values.map((added, at) => added + arrays[embedding].values[at]) };
  }
  state.whole = true;
  drawVisible();
  if (isMetered()) at("ask").hidden = false;
  else loadModel();
  if (words.serviceWorker) navigator.serviceWorker?.register("service-worker.js").catch(() => {});
}

start();
startTheRest();
window.started = true;
