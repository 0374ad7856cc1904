// Colour scales: the payload brings evenly spaced anchors, the pictures look up 256 steps between them.

function lookupTable(anchors) {
  const table = new Uint8ClampedArray(256 * 3);
  for (let step = 0; step < 256; step += 1) {
    const place = (step / 255) * (anchors.length - 1);
    const left = Math.min(Math.floor(place), anchors.length - 2);
    for (let part = 0; part < 3; part += 1) {
      const [from, to] = [anchors[left][part], anchors[left + 1][part]];
      table[step * 3 + part] = Math.round(from + (to - from) * (place - left));
    }
  }
  return table;
}

function lookupTables(scales) {
  return Object.fromEntries(Object.entries(scales).map(([name, anchors]) => [name, lookupTable(anchors)]));
}

// The 256 steps as pixels of an ImageData, red first in memory.
function packedColours(table) {
  const pixel = (at) => (255 << 24) | (table[at + 2] << 16) | (table[at + 1] << 8) | table[at];
  return Uint32Array.from({ length: 256 }, (_, step) => pixel(3 * step));
}

// The colours from the lowest to the highest, for a legend.
function colourBar(table) {
  const bar = element("canvas");
  [bar.width, bar.height] = [256, 1];
  const image = new ImageData(256, 1);
  new Uint32Array(image.data.buffer).set(packedColours(table));
  bar.getContext("2d").putImageData(image, 0, 0);
  return bar;
}

// Which of the 256 steps a value between low and high falls in; values outside take the nearest end.
function colourStep(value, low, high) {
  const fraction = high > low ? (value - low) / (high - low) : 0.5;
  return Math.round(255 * Math.min(Math.max(fraction, 0), 1));
}

// [red, green, blue] of a value.
function colourOf(table, value, low, high) {
  const step = colourStep(value, low, high);
  return [table[step * 3], table[step * 3 + 1], table[step * 3 + 2]];
}

// Black or white, whichever is easier to read on this colour (relative luminance as in WCAG 2).
function inkOn([red, green, blue]) {
  const linear = (part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue) > 0.179 ? "#000000" : "#ffffff";
}

// The theme of the page, through the CSS variables that Streamlit sets on a component.
function themeOf(element) {
  const style = getComputedStyle(element);
  const read = (name, otherwise) => style.getPropertyValue(`--st-${name}`).trim() || otherwise;
  return {
    text: read("text-color", "#31333f"),
    background: read("background-color", "#ffffff"),
    panel: read("secondary-background-color", "#f0f2f6"),
    primary: read("primary-color", "#ff4b4b"),
    font: read("font", "sans-serif"),
  };
}

// A float32 written with as few digits as still name it exactly.
function exactly(value) {
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  for (let digits = 1; digits < 10; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return signed(String(short));
  }
  return signed(String(value));
}

function signed(text) {
  return text.replace(/-/g, "−");
}

// "W_Q" and "K^T" as text with a subscript or superscript.
function symbolParts(symbol) {
  return [...symbol.matchAll(/([_^]?)([^_^]+)/g)].map(([, mark, text]) => ({ mark, text }));
}

function symbolNode(symbol) {
  const node = document.createElement("span");
  for (const { mark, text } of symbolParts(symbol)) {
    const part = document.createElement({ _: "sub", "^": "sup" }[mark] || "span");
    part.textContent = text;
    node.append(part);
  }
  return node;
}

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}
