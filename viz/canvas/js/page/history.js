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
  // After Back or Forward, what the page that was left still writes is ignored: the entry gone to has its own address.
  let moving = false;
  addEventListener("popstate", () => (moving = true), true);
  history.arriveAt = (page) => (moving &&= page !== location.pathname.split("/").at(-1));
  const ignored = () => (moving &&= !left);
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  history.replaceState = (...entry) => ignored() || replace(...entry);
  history.pushState = (state, title, address) => {
    if (ignored()) return;
    const { pathname } = new URL(address ?? location, location);
    if (pathname === location.pathname) return replace(state, title, address);
    if (left?.pathname === location.pathname) replace(history.state, title, left);
    left = null;
    push(state, title, address);
  };
}
