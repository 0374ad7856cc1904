// Enter in a text of several lines sends it; Shift and Enter begins a new line. Written for Streamlit 1.67, which sends
// such a text on Ctrl and Enter.

function submitTextOnEnter() {
  if (document.submitsTextOnEnter) return;
  document.submitsTextOnEnter = true;
  const send = (event) => {
    const { key, target, isComposing, shiftKey, altKey, ctrlKey, metaKey } = event;
    const modified = isComposing || shiftKey || altKey || ctrlKey || metaKey;
    if (key !== "Enter" || modified || !(target instanceof HTMLTextAreaElement)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    target.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey: true, bubbles: true }));
  };
  document.addEventListener("keydown", send, true);
}
