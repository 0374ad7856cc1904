// The chosen row of the temperature component: a bar and a number for each key, and how spread out the weights are.

class RowBars {
  constructor() {
    this.panel = element("div", "row");
    this.title = element("div", "title");
    this.entropy = element("div", "entropy");
    this.head = element("div", "entropy");
    this.bars = element("div", "bars");
    this.bars.setAttribute("role", "list");
    this.bars.tabIndex = 0;
    this.bars.setAttribute("aria-label", "Weights of the chosen row");
    this.said = element("div", "spoken");
    this.said.setAttribute("aria-live", "polite");
    this.panel.append(this.title, this.entropy, this.head, this.bars, this.said);
    this.asked = null;
    this.chosen = 0;
  }

  draw(matrix) {
    const size = matrix.columns.size;
    const weights = matrix.values.subarray(this.chosen * size, (this.chosen + 1) * size);
    const allowed = matrix.allowed.subarray(this.chosen * size, (this.chosen + 1) * size);
    this.title.textContent = `Row ${nameOf(matrix.rows, this.chosen)}`;
    const visible = allowed.reduce((sum, seen) => sum + seen, 0);
    const nats = entropyOf(weights);
    const most = visible ? Math.log(visible) : 0;
    const bits = (nats / Math.LN2).toFixed(3);
    this.entropy.textContent = `Entropy ${nats.toFixed(3)} nats = ${bits} bits; at most ln ${visible} = ${most.toFixed(3)}`;
    this.entropy.dataset.nats = nats;
    const rows = Array.from({ length: matrix.rows.size }, (_, row) => entropyOf(matrix.values, row * size, size));
    const mean = rows.reduce((sum, row) => sum + row, 0) / rows.length;
    this.head.textContent = `Mean of the head's rows: ${mean.toFixed(3)} nats`;
    this.head.dataset.nats = mean;
    if (this.parts?.length !== size) this.build(size);
    for (let key = 0; key < size; key += 1) this.bar(this.parts[key], matrix.columns.labels[key], weights[key], allowed[key]);
  }

  // The row that was chosen, for people who do not see it.
  say({ values, columns, rows }) {
    const weights = values.subarray(this.chosen * columns.size, (this.chosen + 1) * columns.size);
    const most = Math.max(...weights);
    const where = columns.labels[weights.indexOf(most)];
    this.said.textContent = `Row ${nameOf(rows, this.chosen)}: most, ${most.toFixed(3)}, on ${where}`;
  }

  build(size) {
    this.parts = Array.from({ length: size }, () => {
      const [bar, track, fill] = ["bar", "track", "fill"].map((name) => element("div", name));
      const [name, number] = ["label", "number"].map((name) => element("span", name));
      bar.setAttribute("role", "listitem");
      track.append(fill);
      bar.append(name, track, number);
      return { bar, name, track, fill, number };
    });
    this.bars.replaceChildren(...this.parts.map(({ bar }) => bar));
  }

  bar({ name, track, fill, number }, label, weight, allowed) {
    if (name.textContent !== label) name.textContent = label;
    number.textContent = allowed ? weight.toFixed(4) : "masked";
    track.classList.toggle("hatched", !allowed);
    fill.style.width = `${100 * weight}%`;
  }
}

// In nats; 0 ln 0 = 0.
function entropyOf(weights, start = 0, size = weights.length) {
  let sum = 0;
  for (let place = start; place < start + size; place += 1) {
    if (weights[place] > 0) sum -= weights[place] * Math.log(weights[place]);
  }
  return Math.max(sum, 0);
}

function nameOf(axis, position) {
  const note = axis.notes[position] ? ` (${axis.notes[position]})` : "";
  return `${axis.labels[position]}${note}`;
}

// The colours' range, and what hatching means where there is some.
function legend({ scale, allowed }, tables) {
  const bar = element("canvas");
  [bar.width, bar.height] = [96, 1];
  const pen = bar.getContext("2d");
  for (let x = 0; x < 96; x += 1) {
    pen.fillStyle = `rgb(${colourOf(tables[scale], x, 0, 95).join(",")})`;
    pen.fillRect(x, 0, 1, 1);
  }
  const range = element("span", "range");
  range.append("attention weight: 0", bar, "1");
  return allowed.includes(0) ? [range, element("span", "masked", "masked")] : [range];
}
