// needs: shared/mount.js
// The ticks component: which stations of the lessons this browser has finished, kept in its local storage. It draws
// nothing. Without storage, as in some private windows, the ticks last as long as the visit. A station that has just
// been opened is shown from its top, wherever the list of lessons was scrolled to.

const NAME = "attention-explorer-stations";
const main = () => document.querySelector("[data-testid=stMain]");

class View {
  update({ data, setStateValue }) {
    if (main()?.dataset.station !== data.station) {
      main()?.scrollTo(0, 0);
      if (main()) main().dataset.station = data.station;
    }
    const known = this.read();
    const done = [...new Set([...known, ...data.done])].sort();
    try {
      localStorage.setItem(NAME, JSON.stringify(done));
    } catch {
      // The answer below is all that is left to do.
    }
    if (JSON.stringify(done) !== JSON.stringify(data.done)) setStateValue("done", done);
  }

  read() {
    try {
      const stored = JSON.parse(localStorage.getItem(NAME) ?? "[]");
      return Array.isArray(stored) ? stored.filter((each) => typeof each === "string") : [];
    } catch {
      return [];
    }
  }
}
