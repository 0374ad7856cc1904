// What a page that continues a text has of its own.

const OWN = {};
const SETTINGS = ["temperature", "topK", "topP", "seed"]; // of drawing; a temperature of 0 takes the most probable token

state.drawn = { ...words.drawn };
beginHere();

function idsRead() {
  return [words.begin, ...state.run.target.slice(0, -1)];
}

// The text goes on for at most `most` tokens. `ids`: all that it goes on from.
async function write(question, onProgress) {
  const answer = await thread.ask("write", { drawn: state.drawn, changes: [], topic: "sentence", ...question }, { onProgress });
  if (!answer) return null;
  const { ids, prompt: text, written, count: prompt, ended } = answer;
  return { text, written, prompt, ended, target: [...ids.slice(1), words.end] };
}

function search(text, onProgress) {
  return write({ text, most: words.most }, onProgress);
}

// `ids`: those to go on from.
async function goOn(ids, most) {
  state.run.ended = false;
  await take(state.run.text, (onProgress) => write({ ids, count: Math.min(state.run.prompt, ids.length), most }, onProgress));
  if (state.run.ended && idsRead().length === ids.length) note(tr("The model ends the text here: choose another token to go on with, or a higher T."));
}

async function searchAnew(changes, onProgress) {
  const { prompt, text } = state.run;
  const answer = await thread.ask("write", { ids: idsRead().slice(0, prompt), count: prompt, most: words.most, drawn: state.drawn, changes }, { onProgress });
  return answer && text + answer.written;
}

function showWritten() {
  const { text, written } = state.run;
  at("written").replaceChildren(text, Object.assign(document.createElement("b"), { textContent: written }));
}

function changeHere() {
  return {};
}

// The tokens that are most probable after the chosen one, as buttons: the text goes on with the one that is clicked.
async function sayNext() {
  if (!state.live) return;
  const ids = idsRead().slice(0, chosenToken() + 1);
  const answer = await thread.ask("next", { ids, drawn: state.drawn, changes: state.run.changes }).catch(() => null);
  if (!answer) return;
  at("after").textContent = answer.text;
  const list = at("candidates");
  list.replaceChildren(...answer.candidates.map((each) => candidateItem(ids, each)));
  stopAt(list, list.querySelector("button:enabled"));
  at("cut").textContent = state.drawn.temperature ? tr("{count} of {all} tokens can be drawn.", answer) : tr("At T = 0 the model takes the first one.");
}

function candidateItem(ids, { id, piece, model, drawn }) {
  const node = document.createElement("li");
  const button = Object.assign(document.createElement("button"), { type: "button", disabled: id === words.end });
  const share = percent(drawn);
  const textContent = drawn === model ? share : tr("{share}; the model’s own: {model}", { share, model: percent(model) });
  button.style.setProperty("--share", `${100 * drawn}%`);
  button.append(labels([piece])[0], " ", Object.assign(document.createElement("small"), { textContent }));
  button.addEventListener("click", () => goOn([...ids, id], 0));
  node.append(button);
  return node;
}

function percent(share) {
  return `${fixed(100 * share, 1)}%`;
}

// The chosen token is the one after which the model begins to write.
function beginHere() {
  state.at[1] = state.run.prompt - 1;
}

function sayHere() {
  for (const name of SETTINGS) at(name).value = state.drawn[name];
  for (const name of ["temperature", "topK", "topP"]) at(`${name}-value`).textContent = written(String(state.drawn[name]));
  for (const id of ["one", "all"]) at(id).disabled = !state.live;
  sayNext();
}

function listenHere() {
  rove(at("candidates"));
  at("one").addEventListener("click", () => goOn(idsRead(), 1));
  at("all").addEventListener("click", () => goOn(idsRead(), words.most));
  at("again").addEventListener("click", () => at("form").requestSubmit());
  for (const name of SETTINGS) {
    at(name).addEventListener("input", ({ target }) => {
      state.drawn[name] = Number(target.value);
      sayHere();
    });
  }
}
