// needs: arithmetic/arithmetic.css arithmetic/arithmetic_picture.js
// The numbers of the own_vectors component: Q above K; beside each key its score, what the softmax reads, its weight and its
// value; below these Z. A head's vectors, and long ones, are left to the planes.

const MOST_CELLS = 4; // numbers of a vector in the table
const MOST_QUERIES = 4; // with more of them only the chosen one is there

function drawTable(view) {
  const { header, q, k, v, at } = view;
  const { roles } = header;
  const [ofKeys, ofValues] = [k, v].map(([{ length }]) => (header.typed && length <= MOST_CELLS ? length : 0));
  const queries = q.length <= MOST_QUERIES ? [...q.keys()] : [at.row];
  const capped = header.softcap !== null || header.biased;
  const divided = Math.abs(header.scale * Math.sqrt(k[0].length) - 1) < 1e-3 ? "÷√dₖ" : `× ${threeDigits(header.scale)}`;
  const reads = header.scale !== 1 || capped ? [[capped ? tr("what the softmax reads") : divided, 1]] : [];
  const heads = [["q, k", ofKeys], ["q · k", 1], ...reads, [tr("weight"), 1], ["v, z", ofValues]].filter(([, count]) => count);
  const scores = 2 + reads.length;
  const allowed = view.part(view.mask);
  const keys = k.map((_, key) => {
    const score = [scoreCell(view.products[key]), ...reads.map(() => scoreCell(view.reads[key], allowed[key])), weightCell(view.shown[key], allowed[key])];
    return lineOf(header.keys[key], [...(ofKeys ? cellsOf(at.keys[key], roles.k) : []), ...score, ...(ofValues ? cellsOf(v[key], roles.v) : [])]);
  });
  const chosen = (row, line) => {
    line.classList.toggle("chosen", row === at.row);
    if (row !== at.row) line.addEventListener("click", () => view.snap(row));
    return line;
  };
  const gap = (count) => Array.from({ length: count }, () => element("td", "none"));
  const above = queries.map((row) => chosen(row, lineOf(header.queries[row], [...cellsOf(row === at.row ? at.q : q[row], roles.q), ...gap(scores + ofValues)])));
  const below = queries.map((row) => chosen(row, lineOf(q.length > 1 ? `z: ${header.queries[row]}` : "z", [...gap(ofKeys + scores), ...cellsOf(view.mixedOf(row), roles.v)])));
  const titles = heads.map(([title, count]) => Object.assign(element("th", "", title), { colSpan: count, scope: "colgroup", title }));
  view.table.replaceChildren(element("tr", "", element("td", "none"), ...titles), ...(ofKeys ? above : []), ...keys, ...(ofValues ? below : []));
}

function lineOf(name, cells) {
  return element("tr", "", Object.assign(element("th", "label", name), { scope: "row", title: name }), ...cells);
}

// The first of them has the vectors' colour.
function cellsOf(vector, colour) {
  const text = (value) => (Math.abs(value) < 0.1 && value ? fixed(value, 2) : threeDigits(value));
  const cells = Array.from(vector, (value) => titled(element("td", "", text(value)), value));
  cells[0].style.borderColor = colour;
  return cells;
}

function scoreCell(value, allowed = true) {
  return titled(element("td", allowed ? "" : "masked", allowed ? fixed(value, Math.abs(value) < 100 ? 2 : 0) : ""), value);
}

function weightCell(value, allowed) {
  const cell = titled(element("td", allowed ? "weight" : "masked", allowed ? fixed(value, 3) : ""), value);
  cell.style.setProperty("--share", `${100 * value}%`);
  return cell;
}

function titled(cell, value) {
  cell.title = exactText(Math.fround(value));
  return cell;
}

// In a file, each number where it stands in the table.
function paintTable(pen, view, [x, y]) {
  const origin = view.table.getBoundingClientRect();
  for (const node of view.table.querySelectorAll("th, td:not(.none)")) {
    const { left, top, width, height } = node.getBoundingClientRect();
    paintNode(pen, node, [x + left - origin.left, y + top - origin.top, width, height], view.theme);
  }
}
