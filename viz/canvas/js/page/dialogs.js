// Keeps the focus in an open dialog. A button that is pressed there may be disabled while its file is made, and with it
// the focus goes to the page, where neither Esc nor Tab reaches the dialog.

class Dialogs {
  constructor() {
    this.onFocus = ({ target }) => {
      this.last = target.closest?.("[role=dialog]") && target;
    };
    this.onPress = ({ target }) => {
      if (target.closest?.("[role=dialog]")) this.watch();
    };
    document.addEventListener("focusin", this.onFocus);
    document.addEventListener("click", this.onPress, true);
  }

  close() {
    clearTimeout(this.wait);
    document.removeEventListener("focusin", this.onFocus);
    document.removeEventListener("click", this.onPress, true);
  }

  // Until the pressed control can have the focus again, the dialog itself has it.
  watch(pressed = this.last) {
    clearTimeout(this.wait);
    const dialog = document.querySelector("[role=dialog]");
    if (!dialog || !pressed) return;
    const lost = [document.body, dialog].includes(document.activeElement);
    if (lost && pressed.isConnected && !pressed.disabled) pressed.focus();
    else if (lost) dialog.focus();
    if (lost || document.activeElement === pressed) this.wait = setTimeout(() => this.watch(pressed), 100);
  }
}
