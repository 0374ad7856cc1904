// needs: shared/elements.js
// A slider for the attention temperature: while it moves, the picture is drawn again in the browser; where it is let go,
// or half a second after a key, the model is asked for a run with the nearest temperature that it can be run with.

const PATIENCE = 500; // milliseconds from the last key press to the model's run

class TauSlider {
  // `moved()` draws what depends on tau; `ask(tau)` sends it.
  constructor(label, moved, ask) {
    [this.moved, this.ask] = [moved, ask];
    this.asked = []; // temperatures sent, whose runs have not come back, oldest first
    this.input = element("input");
    Object.assign(this.input, { type: "range", step: 0.005 });
    this.input.setAttribute("aria-label", label);
    this.input.addEventListener("pointerdown", () => (this.dragging = true));
    this.input.addEventListener("input", () => this.set(10 ** Number(this.input.value)));
    this.input.addEventListener("change", () => this.release());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
  }

  // The run on screen had temperature `ran`; `another`: it is the first of this head that is shown.
  update(taus, ran, another) {
    const news = ran !== this.ran;
    [this.taus, this.ran] = [taus, ran];
    Object.assign(this.input, { min: Math.log10(taus[0]), max: Math.log10(taus.at(-1)) });
    // A run that was asked for earlier may end while the next temperature is being chosen, or is on its way. A run that
    // nobody asked for here comes from the sidebar, and counts.
    const answer = this.asked.indexOf(ran);
    if (another || (news && answer < 0)) this.asked = [];
    else this.asked.splice(0, answer + 1);
    const choosing = this.dragging || this.timer || this.asked.length;
    if (another || (news && !choosing)) this.tau = ran;
  }

  close() {
    clearTimeout(this.timer);
  }

  // The nearest temperature, on the logarithmic scale, that the model can be run with.
  get nearest() {
    const distance = (tau) => Math.abs(Math.log(tau / this.tau));
    return this.taus.reduce((best, tau) => (distance(tau) < distance(best) ? tau : best));
  }

  // Whether what is drawn is not the run's.
  get again() {
    return this.tau !== this.ran;
  }

  // Whether the model is running with it.
  get waits() {
    return this.again && this.asked.at(-1) === this.tau;
  }

  get text() {
    return threeDigits(this.tau);
  }

  set(tau) {
    this.tau = tau;
    this.moved();
  }

  // Where the slider stands, and what it says besides its number.
  show(state) {
    this.input.value = Math.log10(this.tau);
    this.input.setAttribute("aria-valuetext", `${this.text}, ${state}`);
  }

  onKey(event) {
    const { taus } = this;
    const here = taus.indexOf(this.nearest);
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -4, PageUp: 4 };
    const ends = { Home: 0, End: taus.length - 1 };
    if (!(event.key in steps) && !(event.key in ends)) return;
    event.preventDefault();
    const place = ends[event.key] ?? here + steps[event.key];
    this.set(taus[clamp(place, 0, taus.length - 1)]);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.release(), PATIENCE);
  }

  release() {
    this.dragging = false;
    clearTimeout(this.timer);
    this.timer = null;
    this.tau = this.nearest;
    if (this.tau !== (this.asked.at(-1) ?? this.ran)) {
      this.asked.push(this.tau);
      this.ask(this.tau);
    }
    this.moved();
  }
}
