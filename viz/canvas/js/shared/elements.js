// needs: shared/words.js
// HTML and SVG elements, key events, and numbers as text.

// `children`: texts and nodes; undefined: none.
function element(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== undefined));
  return node;
}

function svgElement(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

// `text` is on the button; `title` says what it does.
function button(text, title, onClick) {
  const node = element("button", "", text);
  node.title = title;
  // The visible text starts the accessible name, so that voice control finds the button by it.
  node.setAttribute("aria-label", /^[\p{L}\d]/u.test(text) ? `${text}: ${title}` : title);
  node.addEventListener("click", onClick);
  return node;
}

function toggleButton(text, title, onChange) {
  const node = button(text, title, () => {
    const pressed = node.getAttribute("aria-pressed") === "false";
    node.setAttribute("aria-pressed", String(pressed));
    onChange(pressed);
  });
  node.setAttribute("aria-pressed", "false");
  return node;
}

// Text for screen readers only, read out when it changes.
function liveRegion() {
  const node = element("div", "spoken");
  node.setAttribute("aria-live", "polite");
  return node;
}

const FIELDS =
  "input:not([type=radio], [type=checkbox], [type=button]), textarea, select, [contenteditable=true], [role=slider], " +
  "[role=combobox], [role=listbox], [role=menu], [role=spinbutton], [role=textbox]";

// Whether the event happens in an element that matches the selector, shadow roots included.
function happensIn(event, selector) {
  return event.composedPath().some((node) => node instanceof Element && node.matches(selector));
}

// On many keyboards plus needs Shift, on others the equals sign, too.
function hasModifier({ altKey, ctrlKey, metaKey, shiftKey, key }) {
  return altKey || ctrlKey || metaKey || (shiftKey && !"+=".includes(key));
}

// Arrow keys, Home and End go from button to button; the Tab key stops at one of them.
function rove(node) {
  node.addEventListener("keydown", (event) => {
    const all = [...node.querySelectorAll("button")];
    const here = all.indexOf(event.target);
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: all.length - 1 }[event.key];
    if (here < 0 || to === undefined || hasModifier(event)) return;
    event.preventDefault();
    const next = all[clamp(to, 0, all.length - 1)];
    stopAt(node, next);
    next.focus();
  });
}

// Such buttons as a group with a name.
function strip(className, label, ...children) {
  const node = element("div", className, ...children);
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", label);
  rove(node);
  stopAt(node);
  return node;
}

function stopAt(node, stop = node.querySelector("button")) {
  for (const one of node.querySelectorAll("button")) one.tabIndex = one === stop ? 0 : -1;
}

function download(blob, name) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// What scrolls is in the Tab order, so that the arrow keys can scroll it.
function makeReachable(frame) {
  if (frame.scrollWidth <= frame.clientWidth && frame.scrollHeight <= frame.clientHeight) return;
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
}

// By how much a picture is enlarged that fills the screen: what the browser measures is larger by that.
function zoomOf(node) {
  return node.currentCSSZoom ?? 1;
}

// Pixels of the screen to a pixel of the element's own: what a canvas has that is drawn as sharp as the screen can show it.
function ratioOf(node) {
  return devicePixelRatio * zoomOf(node);
}

// Where in an element the pointer is, from its upper left corner, in its own pixels.
function pointIn(node, { clientX, clientY }) {
  const box = node.getBoundingClientRect();
  return [clientX - box.left, clientY - box.top].map((side) => side / zoomOf(node));
}

// The height, in its own pixels, that a picture fills on a screen; null where it has its usual size.
function roomOf(node) {
  // What is drawn to be saved stands in no page.
  const room = node instanceof Element && getComputedStyle(node).getPropertyValue("--room").trim();
  return room ? Number(room) : null;
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

// A float32 with as few digits as identify it.
function exactText(value) {
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  for (let digits = 1; digits < 10; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return written(String(short));
  }
  return written(String(value));
}

function threeDigits(value) {
  return written(String(Number(value.toPrecision(3))));
}
