// The model: loading it, and what it is asked.

const progress = { loaded: 0, total: words.files.reduce((sum, { size }) => sum + size, 0) };

function note(text) {
  at("note").textContent = text;
}

async function loadModel() {
  at("ask").hidden = true;
  at("loading").hidden = false;
  const onProgress = (bytes) => {
    progress.loaded += bytes;
    at("bar").value = progress.loaded / progress.total;
  };
  try {
    const [weights, vocabulary] = await Promise.all(words.files.map((file) => load(file, onProgress, note)));
    performance.mark("last-byte");
    thread = new Thread(words.engine ?? URL.createObjectURL(new Blob([at("engine").textContent], { type: "text/javascript" })));
    await thread.ask("load", { weights, vocabulary, config }, { moved: [weights, vocabulary] });
  } catch (error) {
    at("loading").hidden = true;
    state.failed = error instanceof Failure ? error.message : error instanceof RangeError || /memory|alloc/i.test(error.message) ? tooLittleMemory() : tr("The model could not be started: {error}. What you see is a recorded run.", { error: error.message });
    note(state.failed);
    for (const each of document.querySelectorAll(".picture-note")) each.textContent = state.failed;
    return;
  }
  at("loading").hidden = true;
  state.live = true;
  // What waited has no place on screen until it is shown again.
  for (const host of document.querySelectorAll(".picture.waits")) host.classList.remove("waits");
  document.body.dataset.live = "";
  performance.mark("model-ready");
  if (state.waiting ?? words.asked) await read(state.waiting ?? words.asked);
  else {
    await rerun();
    await prove();
  }
}

async function read(text) {
  if (state.live) await take(text, (onProgress) => search(text, onProgress));
  else {
    state.waiting = text;
    note(state.failed ?? tr("Your text waits for the model."));
    showLink();
  }
}

// What the model makes of a text, drawn. `searched(onProgress)` gives what is new in the run.
async function take(text, searched) {
  note("");
  Object.assign(state, { working: text, waiting: null });
  words.asked = null;
  showLink();
  if (text !== state.run.text) at("written").textContent = "";
  try {
    const found = await searched((sofar) => (at("growing").textContent = `${sofar} …`));
    if (!found) return;
    state.run = { ...state.run, ...found };
    done();
    beginHere();
    await rerun();
    await prove();
  } catch (error) {
    done();
    note(error.message);
  }
}

function done() {
  state.working = false;
  at("growing").textContent = "";
  showWritten();
}

// Writes beside each claim below the story how well it holds for the run without changes.
async function prove() {
  const { source, target } = state.run;
  const claims = await thread.ask("prove", { source, target });
  for (const { name, error, holds } of claims ?? []) {
    const node = document.querySelector(`[data-claim="${name}"] small`);
    const most = written(error ? error.toExponential(1) : "0");
    node.textContent = holds ? tr("✓ holds, largest error {most}", { most }) : tr("✗ does not hold, largest error {most}", { most });
  }
}

// The run on the same target with the changes as they are, drawn; then what the changed model writes.
async function rerun() {
  if (!state.live || state.working) return;
  const { source, target } = state.run;
  const { changes } = state;
  at("changed").textContent = "";
  try {
    const answer = await thread.ask("trace", { source, target, changes });
    if (!answer) return;
    state.run = { ...state.run, ...answer, changes };
    say();
    weightsOf(pathOf(state.place)).catch(() => {}); // which the pictures of a head need, also on paper
    nextFrame().then(() => {
      redraw();
      performance.mark("run-drawn");
    });
    if (!changes.length) return;
    const text = await searchAnew(changes, (sofar) => (at("changed").textContent = `${sofar} …`));
    if (text) at("changed").textContent = text === at("written").textContent ? tr("{text} (as before)", { text }) : text;
  } catch (error) {
    note(tr("The change cannot be made: {error}.", { error: error.message }));
    // The one made last; of a link any may be wrong.
    state.changes = state.made ? state.changes.slice(0, -1) : [];
    say();
  }
}
