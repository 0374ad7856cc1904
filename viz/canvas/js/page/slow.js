// Says on the page whether a run takes long: the style sheet then fades what is drawn anew.

const LONG = 500; // milliseconds

class Slow {
  constructor() {
    this.app = document.querySelector("[data-testid=stApp]");
    this.state = new MutationObserver(() => this.time());
    this.state.observe(this.app, { attributes: true, attributeFilter: ["data-test-script-state"] });
    this.time();
  }

  close() {
    this.state.disconnect();
    this.end();
  }

  time() {
    if (this.app.dataset.testScriptState === "notRunning") this.end();
    else this.timer ??= setTimeout(() => document.documentElement.toggleAttribute("data-slow", true), LONG);
  }

  end() {
    clearTimeout(this.timer);
    this.timer = null;
    document.documentElement.removeAttribute("data-slow");
  }
}
