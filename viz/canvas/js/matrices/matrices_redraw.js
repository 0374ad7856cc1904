// What the browser computes itself: the weights of this head at another temperature, softmax(masked / tau) of the scores
// that it has; and colours for a smaller range.

class Redraw {
  constructor(onChange) {
    this.onChange = onChange;
    const title = tr("Colours of the weights up to the largest 1% instead of 1; the legend shows the range");
    this.brighten = toggleButton(tr("Brighten"), title, (pressed) => {
      this.brightened = pressed;
      onChange();
    });
    this.slider = element("input");
    Object.assign(this.slider, { type: "range", min: -1.3, max: 1.3, step: 0.01 });
    this.slider.setAttribute("aria-label", tr("Temperature redrawn in the browser"));
    this.number = element("output");
    this.note = element("span", "note");
    this.reset = button(tr("Back to the run"), tr("The temperature of the run"), () => this.set(this.run));
    const label = element("label", "", tr("Draw again with τ = "), this.number);
    this.bar = element("div", "redraw", label, this.slider, this.reset, this.note);
    this.slider.addEventListener("input", () => this.set(10 ** Number(this.slider.value)));
  }

  // The slider is shown in steps whose header has the temperature of the run.
  show(header) {
    this.brighten.hidden = !header.equations.flat().some(({ scale }) => scale === "viridis");
    this.bar.hidden = header.temperature === undefined;
    const source = header.equations.flat().find((part) => part.symbol === "masked");
    const same = this.title === header.title && this.run === header.temperature;
    this.run = header.temperature;
    this.title = header.title;
    this.source = source;
    if (!this.bar.hidden) this.describe(same ? this.tau : this.run);
  }

  get height() {
    return this.bar.offsetHeight;
  }

  get again() {
    return !this.bar.hidden && this.tau !== this.run;
  }

  inWords() {
    return this.again ? [tr("weights redrawn with τ = {tau}, the run had {run}", { tau: this.number.textContent, run: written(String(this.run)) })] : [];
  }

  set(tau) {
    this.describe(tau);
    this.onChange();
  }

  describe(tau) {
    this.tau = tau;
    this.slider.value = Math.log10(tau);
    this.number.textContent = threeDigits(tau);
    this.reset.disabled = tau === this.run;
    this.note.textContent =
      tau === this.run
        ? tr("as in the run")
        : tr("redrawn from this head's scores; the run and all later steps have τ = {run}", { run: written(String(this.run)) });
  }

  // The matrix to draw: of the run, or with the weights at another temperature, in the chosen range.
  applied(matrix) {
    if (matrix.symbol !== "weights") return matrix;
    matrix.shape.classList.toggle("again", this.again);
    const values = this.again ? softmaxRows(this.source, this.tau) : matrix.values;
    return { ...matrix, values, high: this.brightened ? highOfMost(values, matrix.allowed) : matrix.high };
  }
}

// The weight that all but the largest 1 % of the weights that are not masked stay below.
function highOfMost(values, allowed) {
  const sorted = values.filter((_, cell) => allowed[cell]).sort();
  return sorted[Math.floor(0.99 * (sorted.length - 1))] || 1;
}
