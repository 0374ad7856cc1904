// needs: shared/mount.js
// The ticks component: which stations of the lessons this browser has finished, kept in its local storage. It draws
// nothing. Without storage, as in some private windows, the ticks last as long as the visit.

const NAME = "attention-explorer-stations";

class View {
  update({ data, setStateValue }) {
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
