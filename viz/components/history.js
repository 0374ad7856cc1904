// One entry of the browser's history a page. Streamlit adds one for each parameter that changes, and a bare one for
// each page: going back would stop at every one of them, and at the bare one lose what was chosen.

function oneEntryAPage() {
  if (history.oneEntryAPage) return;
  history.oneEntryAPage = true;
  const push = history.pushState;
  history.pushState = function (state, title, address) {
    const samePage = address != null && new URL(address, location.href).pathname === location.pathname;
    return samePage ? this.replaceState(state, title, address) : push.call(this, state, title, address);
  };
}
