// A click on a link to another page waits until a text that has just been typed is sent. Written for Streamlit 1.67,
// which sends it by a timer that is set once the field has lost the focus: the new page would be asked for first, and then
// the old page with the text. Of two timers the one that is set later runs later, however busy the browser is; the first
// of the two here lets React finish with the field.

function makeLinksWaitForText() {
  if (document.linksWaitForText) return;
  document.linksWaitForText = true;
  const waited = new WeakSet();
  const wait = (event) => {
    const link = event.composedPath().find((each) => each instanceof HTMLAnchorElement);
    const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (!link || elsewhere || link.download || link.origin !== location.origin || waited.delete(link)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const open = () => {
      waited.add(link);
      link.click();
    };
    setTimeout(() => setTimeout(open));
  };
  document.addEventListener("click", wait, true);
}
