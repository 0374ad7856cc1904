// Colour scales as tables of 256 colours, and the colours of the page's theme.

// From evenly spaced [red, green, blue] anchors.
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

// A table for each scale by its name, as it is on this background.
function lookupTables(scales, background) {
  const dark = isDark(background);
  const anchors = (name) => (dark && scales[`${name}_on_dark`]) || scales[name];
  return Object.fromEntries(Object.keys(scales).map((name) => [name, lookupTable(anchors(name))]));
}

function isDark(background) {
  return inkOn(rgbOf(background)) === "#ffffff";
}

// The 256 colours as pixels of an ImageData, red first in memory.
function packedColours(table) {
  const pixel = (at) => (255 << 24) | (table[at + 2] << 16) | (table[at + 1] << 8) | table[at];
  return Uint32Array.from({ length: 256 }, (_, step) => pixel(3 * step));
}

// Which of the 256 colours a value has in a range from low to high; values outside have the nearest end's.
function colourStep(value, low, high) {
  const fraction = high > low ? (value - low) / (high - low) : 0.5;
  return Math.round(255 * clamp(fraction, 0, 1));
}

// [red, green, blue] of a value.
function colourOf(table, value, low, high) {
  const step = colourStep(value, low, high);
  return [table[step * 3], table[step * 3 + 1], table[step * 3 + 2]];
}

// Black or white, whichever is easier to read on this colour (relative luminance of WCAG 2).
function inkOn([red, green, blue]) {
  const linear = (part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue) > 0.179 ? "#000000" : "#ffffff";
}

// [red, green, blue] of a CSS colour.
function rgbOf(colour) {
  // willReadFrequently: a canvas on the GPU would have to finish all drawing before it can be read.
  const pen = element("canvas").getContext("2d", { willReadFrequently: true });
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

// The theme of the page, from the CSS variables that Streamlit sets on a component.
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
