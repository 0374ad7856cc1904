// needs: shared/mount.js shared/follow.js
// The cards component: links to pages, section by section, all of a card being its link. They are one picture, drawn
// once, because Streamlit draws each link and each heading of its own anew at every run of the page.

class View {
  constructor(root) {
    this.root = root;
    this.follower = new Follower();
    root.addEventListener("click", (event) => this.click(event));
  }

  close() {
    this.follower.close();
  }

  update({ data, setTriggerValue }) {
    this.send = setTriggerValue;
    const drawn = JSON.stringify(data);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.root.replaceChildren(...data.sections.map(sectionOf));
  }

  // With a key pressed, the browser opens the address in a window of its own.
  click(event) {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    this.send("open", link.dataset.page);
    this.follower.follow();
  }
}

function sectionOf({ title, pages }) {
  return element("section", "", element("h3", "", title), element("div", "row", ...pages.map(cardOf)));
}

function cardOf({ name, title, summary, icon }) {
  const sign = element("span", "sign", icon);
  sign.setAttribute("aria-hidden", "true");
  const card = element("a", "", sign, element("strong", "", title), element("span", "summary", summary));
  [card.href, card.dataset.page] = [name, name];
  return card;
}
