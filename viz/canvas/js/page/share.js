// The share component: the address of the view as it is now, and a button that copies it.

const views = new WeakMap();

export default function mount({ parentElement }) {
  if (views.has(parentElement)) return;
  const root = parentElement.querySelector(".share");
  const note = make("p", "note", "Opens this page with exactly these inputs.");
  const address = make("output", "address", "");
  const button = make("button", "", "Copy link");
  address.setAttribute("aria-label", "Link to this view");
  root.replaceChildren(note, address, button);
  // The page's own choices reach the address after the sidebar is drawn: read it where it is.
  const read = () => {
    if (address.textContent !== location.href) {
      address.textContent = location.href;
      button.textContent = "Copy link";
    }
  };
  read();
  const timer = setInterval(read, 250);
  views.set(parentElement, timer);
  button.addEventListener("click", async () => {
    read();
    button.textContent = (await copied(address)) ? "Copied ✓" : "Select the address and copy it";
  });
  return () => {
    clearInterval(timer);
    views.delete(parentElement);
  };
}

function make(name, kind, text) {
  const node = document.createElement(name);
  node.className = kind;
  node.textContent = text;
  return node;
}

async function copied(address) {
  try {
    await navigator.clipboard.writeText(address.textContent);
    return true;
  } catch {
    // Over plain HTTP from another machine there is no clipboard: the older way needs a selection.
    getSelection().selectAllChildren(address);
    return document.execCommand("copy");
  }
}
