// A click on a link while a text field has the focus waits until the text has been sent. Written for Streamlit 1.67, which
// otherwise opens the new page first and then returns to the old page with the text.

const TEXT_FIRST = 60; // milliseconds

function makeLinksWaitForText() {
  if (document.linksWaitForText) return;
  document.linksWaitForText = true;
  let left = -Infinity;
  const isField = (each) => each instanceof HTMLTextAreaElement || each instanceof HTMLInputElement;
  const leave = ({ target }) => (left = isField(target) ? performance.now() : left);
  const follow = (event) => {
    const link = event.composedPath().find((each) => each instanceof HTMLAnchorElement);
    const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (!link || elsewhere || performance.now() - left > TEXT_FIRST) return;
    left = -Infinity;
    event.preventDefault();
    event.stopImmediatePropagation();
    setTimeout(() => link.click(), TEXT_FIRST);
  };
  document.addEventListener("focusout", leave, true);
  document.addEventListener("click", follow, true);
}
