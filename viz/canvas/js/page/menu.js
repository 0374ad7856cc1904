// The menu greys pages of which the opened model lacks something, and says what; they stay links, as the page itself
// offers a model that has it. Written for Streamlit 1.67, whose menu can hide a page, but not mark one.

const ENTRIES = "[data-testid=stTopNavDropdownLink], [data-testid=stTopNavLink], [data-testid=stSidebarNavLink]";

class Menu {
  constructor() {
    this.lacks = {};
    // A section opens as a new child of the page's body.
    this.observer = new MutationObserver(() => requestAnimationFrame(() => this.mark()));
    this.observer.observe(document.body, { childList: true });
  }

  close() {
    this.observer.disconnect();
  }

  update(lacks) {
    this.lacks = lacks;
    this.mark();
  }

  mark() {
    for (const entry of document.querySelectorAll(ENTRIES)) {
      const reason = this.lacks[new URL(entry.href).pathname.split("/").at(-1)];
      entry.toggleAttribute("data-lacks", reason !== undefined);
      entry.title = reason || "";
      entry.setAttribute("aria-description", reason || "");
    }
  }
}
