// What a page that translates has of its own.

const OWN = { "beam-picture": beamTree };

async function beamTree() {
  if (!state.live) throw new NotRecorded("the search");
  const answer = await thread.ask("tree", { text: state.run.text, beam: words.beam, changes: state.changes });
  return answer && { component: "beam_tree", data: treeData(answer) };
}

// What the beam_tree component takes (viz/canvas/beam_tree.py): a node for each candidate of each step.
function treeData({ steps, pieces }) {
  const nodes = [];
  let parents = [-1];
  for (const [step, { candidates }] of steps.entries()) {
    const first = nodes.length;
    candidates.forEach(({ row, token, logProbability, score, fate }, rank) => {
      const parent = parents[row];
      nodes.push({ step, rank, parent, label: labels([pieces[token]])[0], fate, token: logProbability - (nodes[parent]?.total ?? 0), total: logProbability, score });
    });
    parents = range(nodes.length).filter((index) => index >= first && nodes[index].fate === "kept");
  }
  const ranked = range(nodes.length).filter((index) => nodes[index].fate === "finished");
  ranked.sort((one, other) => nodes[other].score - nodes[one].score);
  const path = [];
  for (let node = ranked[0]; node >= 0; node = nodes[node].parent) path.unshift(node);
  return { ...headers.beam, nodes, winner: path, chosen: path, ranked: ranked.slice(0, words.beam) };
}

function idsRead() {
  return state.run.source;
}

async function search(text, onProgress) {
  const answer = await thread.ask("translate", { text, beam: words.beam, changes: [], topic: "sentence" }, { onProgress });
  return answer && { text, written: answer.text, source: answer.source, target: answer.tokens };
}

// What the changed model writes, or null.
async function searchAnew(changes, onProgress) {
  const answer = await thread.ask("translate", { text: state.run.text, beam: words.beam, changes }, { onProgress });
  return answer?.text;
}

function showWritten() {
  at("written").textContent = state.run.written;
}

function changeHere() {
  return {
    token: { type: "ForbidSource", positions: [chosenToken()] },
    reversed: { type: "PositionsShuffled", order: range(state.run.source.length).reverse(), side: "source" },
  };
}

function beginHere() {}

function sayHere() {}

function listenHere() {}
