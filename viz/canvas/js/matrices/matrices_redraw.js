// What the browser draws again by itself: the weights of the head on screen at another temperature, softmax(masked /
// tau), worked out from its scores; and their colours in a shorter range.

class Redraw {
  constructor(changed) {
    this.changed = changed;
    this.stretch = element("button", "", "Brighten");
    this.stretch.title = "Colours of the weights up to the largest 1 % instead of 1; the legend says the range";
    this.stretch.setAttribute("aria-pressed", "false");
    this.stretch.addEventListener("click", () => this.toggle());
    this.bar = element("div", "redraw");
    const label = element("label", "", "Draw again with τ = ");
    this.slider = element("input");
    Object.assign(this.slider, { type: "range", min: -1.3, max: 1.3, step: 0.01 });
    this.slider.setAttribute("aria-label", "Temperature drawn again in the browser");
    this.number = element("output");
    this.note = element("span", "note");
    this.reset = element("button", "", "Back to the run");
    label.append(this.number);
    this.bar.append(label, this.slider, this.reset, this.note);
    this.slider.addEventListener("input", () => this.set(10 ** Number(this.slider.value)));
    this.reset.addEventListener("click", () => this.set(this.run));
  }

  // The bar is there in the steps whose header names the temperature of the run.
  show(header) {
    this.stretch.hidden = !header.equations.flat().some(({ scale }) => scale === "viridis");
    this.bar.hidden = header.temperature === undefined;
    this.height = this.bar.hidden ? 0 : 40;
    const source = header.equations.flat().find((part) => part.symbol === "masked");
    const same = this.title === header.title && this.run === header.temperature;
    this.run = header.temperature;
    this.title = header.title;
    this.source = source;
    if (!this.bar.hidden) this.describe(same ? this.tau : this.run);
  }

  get again() {
    return !this.bar.hidden && this.tau !== this.run;
  }

  inWords() {
    return this.again ? [`weights drawn again with τ = ${this.number.textContent}, the run had ${this.run}`] : [];
  }

  toggle() {
    this.stretched = !this.stretched;
    this.stretch.setAttribute("aria-pressed", String(this.stretched));
    this.changed();
  }

  set(tau) {
    this.describe(tau);
    this.changed();
  }

  describe(tau) {
    this.tau = tau;
    this.slider.value = Math.log10(tau);
    this.number.textContent = Number(tau.toPrecision(3));
    this.reset.disabled = tau === this.run;
    this.note.textContent =
      tau === this.run
        ? "as in the run"
        : `drawn again from this head's scores; the model's run, and all that follows, has τ = ${this.run}`;
  }

  // The matrix as it is to be drawn: the run's own, or the weights at another temperature, in the chosen range.
  applied(matrix) {
    if (matrix.symbol !== "weights") return matrix;
    matrix.shape.classList.toggle("again", this.again);
    const values = this.again ? softmaxRows(this.source, this.tau) : matrix.values;
    return { ...matrix, values, high: this.stretched ? largest({ ...matrix, values }) : matrix.high };
  }
}

// All but the largest hundredth of the weights that the mask allows stay below this.
function largest({ values, allowed }) {
  const seen = [...values].filter((_, cell) => allowed[cell]).sort((one, other) => one - other);
  return seen[Math.floor(0.99 * (seen.length - 1))] || 1;
}
