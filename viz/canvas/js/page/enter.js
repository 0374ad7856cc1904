// Enter in a text of several lines sends it; Shift+Enter begins a new line. On a phone, where the sidebar lies over
// the page, it closes once its text is sent. A reply in a chat sends itself on Enter, and the earlier turns of a chat are
// lines, so that Enter begins one. Written for Streamlit 1.67, which sends such a text on Ctrl and Enter.

const SENDS = '[data-testid=stSidebar] [class*="-send"] button';
const OTHERS = "[data-testid=stChatInput], .st-key-turns";
const NARROW = "(max-width: 768px)";

function submitTextOnEnter() {
  if (document.submitsTextOnEnter) return;
  document.submitsTextOnEnter = true;
  const send = (event) => {
    const { key, target, isComposing, shiftKey, altKey, ctrlKey, metaKey } = event;
    const modified = isComposing || shiftKey || altKey || ctrlKey || metaKey;
    if (key !== "Enter" || modified || !(target instanceof HTMLTextAreaElement) || target.closest(OTHERS)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    target.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey: true, bubbles: true }));
    if (target.closest("[data-testid=stSidebar]")) closeSidebar();
  };
  const closeSidebar = () => {
    if (!matchMedia(NARROW).matches) return;
    // Streamlit must see the click on its own button first.
    setTimeout(() => document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click());
  };
  document.addEventListener("keydown", send, true);
  document.addEventListener("click", ({ target }) => target.closest?.(SENDS) && closeSidebar());
}
