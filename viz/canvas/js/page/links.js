// A tap follows a link at the moment in which the text field loses the focus. Streamlit then asks for the new page
// first, and sends what was typed from the page that is left, which comes back. So the link waits for the text.

const TEXT_FIRST = 60; // milliseconds

function linksWaitForText() {
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
