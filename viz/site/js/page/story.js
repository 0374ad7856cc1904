// The story: which step is on screen, and what is read stays where it is.

const TOP = 100; // pixels
const REST = 150; // milliseconds without a move, after which a scroll has ended: not every browser says so
let going = false; // whether the page itself scrolls to a step
const SECTIONS = [...document.querySelectorAll(".step")];
const BLOCKS = [...document.querySelectorAll("header > *, .step > *, #explore > *, footer > *")];
let held = null; // what is read: { block, top, scrolled }, the first block on screen, its distance from there, scrollY

// What is drawn above does not push away what is read. Not every browser sees to that, so style.css forbids it to all.
function holdPlace() {
  if (held?.block.getClientRects().length && !going) {
    const { top } = held.block.getBoundingClientRect();
    const moved = top + scrollY - held.top - held.scrolled;
    // Where the browser itself has scrolled to it meanwhile, it stands as it stood, to the pixel that scrollY counts in.
    if (moved && Math.abs(top - held.top) >= 1) scrollBy({ top: moved, behavior: "instant" });
  }
  const block = BLOCKS.find((each) => each.getBoundingClientRect().bottom > 0);
  held = block && { block, top: block.getBoundingClientRect().top, scrolled: scrollY };
}

// The next step is scrolled to; further ones are jumped to, because each picture on the way would be drawn.
function goTo(step, scroll = true) {
  const before = state.step;
  state.step = Math.min(Math.max(step, 0), SECTIONS.length - 1);
  SECTIONS.forEach((section, number) => section.classList.toggle("current", number === state.step));
  at("back").disabled = state.step === 0;
  at("next").disabled = state.step === SECTIONS.length - 1;
  at("where").textContent = state.step ? tr("{step} of {steps}", { step: state.step, steps: SECTIONS.length - 1 }) : tr("The whole model");
  const { top } = SECTIONS[state.step].getBoundingClientRect();
  const smooth = Math.abs(state.step - before) === 1 && !matchMedia("(prefers-reduced-motion: reduce)").matches;
  going = scroll && smooth && !(top >= 0 && top < TOP);
  if (scroll) scrollToStep(smooth ? "smooth" : "instant");
  showLink();
}

function scrollToStep(behavior) {
  SECTIONS[state.step].scrollIntoView({ behavior });
  held = null;
  holdPlace();
}

// The step whose title has reached the top, after somebody has scrolled there.
function follow() {
  holdPlace();
  const step = Math.max(SECTIONS.findLastIndex((section) => section.getBoundingClientRect().top < TOP), 0);
  if (!document.body.classList.contains("present") && step !== state.step) goTo(step, false);
}

// A scroll has ended. Pictures that are drawn on the way move what the page itself scrolls to: then it goes there at once.
function arrive() {
  if (going) scrollToStep("instant");
  else follow();
  going = false;
}

function onKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, .picture")) return;
  if (event.key === "ArrowRight") goTo(state.step + 1);
  else if (event.key === "ArrowLeft") goTo(state.step - 1);
  else if (event.key === "Escape") document.body.classList.remove("present");
}
