// The menu greys pages of which the opened model lacks something, and says what; they stay links, as the page itself
// offers a model that has it. It also marks the section of the page, as Streamlit's own names the sections only.
// Written for Streamlit 1.67, whose menu can hide a page, but not mark one.

const ENTRIES = "[data-testid=stTopNavDropdownLink], [data-testid=stTopNavLink], [data-testid=stSidebarNavLink]";

class Menu {
  constructor() {
    [this.lacks, this.section] = [{}, ""];
    // A section opens as a new child of the page's body; the menu itself is drawn anew after Present.
    this.observer = new MutationObserver(() => (this.frame ||= requestAnimationFrame(() => this.mark())));
    this.observer.observe(document.body, { childList: true, subtree: true });
  }

  close() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  update(lacks, section) {
    [this.lacks, this.section] = [lacks, section];
    this.mark();
  }

  mark() {
    this.frame = 0;
    translateOwnWords();
    for (const section of document.querySelectorAll("[data-testid=stTopNavSection]")) {
      section.toggleAttribute("data-current", !!this.section && section.textContent.startsWith(this.section));
    }
    for (const entry of document.querySelectorAll(ENTRIES)) {
      const reason = this.lacks[new URL(entry.href).pathname.split("/").at(-1)];
      entry.toggleAttribute("data-lacks", reason !== undefined);
      entry.title = reason || "";
      entry.setAttribute("aria-description", reason || "");
    }
  }
}
