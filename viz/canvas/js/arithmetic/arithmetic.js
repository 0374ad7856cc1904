// needs: shared/picture.js arithmetic/arithmetic_picture.js
// The arithmetic component: the chosen cell's number after each step, and the terms of its sums, number by number.

const CELL = 50; // pixels of a column
const LABEL = 124; // pixels of the row labels
const MOST_WRAPPED = 64; // columns: wider strips scroll instead

class View extends Picture {
  update({ data, setTriggerValue }) {
    [this.header, this.send] = [data, setTriggerValue];
    this.draw();
  }

  draw() {
    super.draw();
    const tables = lookupTables(this.header.scales, this.theme.background);
    const strips = this.header.strips.map((strip) => stripOf(strip, tables, this.width));
    this.root.replaceChildren(chainOf(this.header, this.send), ...strips);
    for (const chosen of this.root.querySelectorAll("th.chosen")) scrollIntoMiddle(chosen);
    for (const frame of this.root.querySelectorAll(".frame")) makeReachable(frame);
  }

  paint(canvas, caption) {
    return paintArithmetic(this.root, this.header, canvas, caption);
  }
}

function chainOf({ chain, step }, send) {
  const items = chain.map(([name, value], index) => {
    const state = index > step ? "later" : index === step ? "now" : "";
    const link = element("button", state, element("span", "name", name), " ", element("span", "value", value));
    // The name contains the button's text, so that voice control finds it.
    link.setAttribute("aria-label", `${tr("Step {step}", { step: index + 1 })}: ${name} ${value}`);
    link.addEventListener("click", () => send("step", index + 1));
    return element("li", "", link);
  });
  return element("ol", "chain", ...items);
}

function stripOf(strip, tables, width) {
  const table = element("table");
  for (const [from, to] of pieces(strip.columns.length, width)) {
    const names = strip.columns.slice(from, to).map((name, index) => heading(name, from + index === strip.chosen));
    table.append(element("tr", "", element("td"), ...names), ...strip.rows.flatMap((row) => rowsOf(row, strip.chosen, tables, from, to)));
  }
  const frame = element("div", "frame", table);
  frame.setAttribute("aria-label", strip.title);
  return element("figure", "", element("figcaption", "", strip.title), frame, element("p", "result", strip.result));
}

// The columns [from, to) of each piece, so that the pieces fit below each other without scrolling.
function pieces(size, width) {
  const fitting = Math.max(Math.floor((width - LABEL) / CELL), 1);
  const count = size > MOST_WRAPPED ? 1 : Math.ceil(size / fitting);
  const each = Math.ceil(size / count);
  return Array.from({ length: count }, (_, piece) => [piece * each, Math.min((piece + 1) * each, size)]);
}

function heading(name, chosen) {
  const cell = element("th", chosen ? "chosen" : "", name);
  cell.scope = "col";
  cell.title = name;
  return cell;
}

function rowsOf(row, chosen, tables, from, to) {
  const [low, plain] = row.scale === "viridis" ? [0, true] : [-row.limit, false];
  const label = element("th", "label", row.label);
  label.scope = "row";
  label.title = tr("colours from {low} to {high}", { low: exactText(low), high: exactText(row.limit) });
  if (row.colour) label.style.borderColor = row.colour;
  const numbers = element("tr", "", label);
  for (let column = from; column < to; column += 1) {
    const cell = element("td", column === chosen ? "chosen" : "", row.texts[column]);
    const value = row.values[column];
    if (value === null || row.masked[column]) cell.classList.add("masked");
    else {
      const colour = colourOf(tables[row.scale], value, low, row.limit);
      cell.style.background = `rgb(${colour.join(",")})`;
      cell.style.color = inkOn(colour);
      cell.title = exactText(Math.fround(value));
    }
    numbers.append(cell);
  }
  return row.bars ? [barsOf(row, plain, from, to), numbers] : [numbers];
}

// Bars upwards for positive terms, downwards for negative ones, all on one scale.
function barsOf(row, plain, from, to) {
  const bars = element("tr", "bars", element("td"));
  bars.setAttribute("aria-hidden", "true");
  const largest = Math.max(...row.values.map((value) => Math.abs(value))) || 1;
  const signs = row.values.some((value) => value < 0);
  for (const value of row.values.slice(from, to)) {
    const bar = element("i", plain ? "plain" : value < 0 ? "down" : "up");
    bar.style.height = `${(Math.abs(value) / largest) * (signs ? 50 : 100)}%`;
    bar.style[value < 0 ? "top" : "bottom"] = signs ? "50%" : "0";
    bars.append(element("td", "", bar));
  }
  return bars;
}

function scrollIntoMiddle(cell) {
  const frame = cell.closest(".frame");
  frame.scrollLeft = cell.offsetLeft - frame.clientWidth / 2;
}
