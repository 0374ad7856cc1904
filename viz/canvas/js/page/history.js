// One history entry per page, so that Back goes to the previous page with its choices. Written for Streamlit 1.67, which
// adds an entry for each query parameter that changes and one without parameters for each page.

function keepOneEntryPerPage() {
  if (history.hasOneEntryPerPage) return;
  history.hasOneEntryPerPage = true;
  // Streamlit changes the path only after it has drawn the new page. Query parameters that the new page writes before
  // then end up in the entry of the old page, which gets back the address it had when the link was clicked.
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
