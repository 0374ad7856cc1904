// One entry of the browser's history a page. Streamlit adds one for each parameter that changes, and a bare one for
// each page: going back would stop at every one of them, and at the bare one lose what was chosen.

function oneEntryAPage() {
  if (history.oneEntryAPage) return;
  history.oneEntryAPage = true;
  // Streamlit writes the path of the page that is opened only once that page is drawn. What the page itself has
  // written into the address by then stands at the page that is left, which gets back what it had at the click.
  let left = null;
  const isLink = (each) => each instanceof HTMLAnchorElement;
  const remember = (event) => (left = event.composedPath().some(isLink) ? new URL(location) : left);
  document.addEventListener("click", remember, true);
  const push = history.pushState;
  history.pushState = function (state, title, address) {
    const { pathname } = new URL(address ?? location, location);
    if (pathname === location.pathname) return this.replaceState(state, title, address);
    if (left?.pathname === location.pathname) this.replaceState(this.state, title, left);
    left = null;
    return push.call(this, state, title, address);
  };
}
