// needs: shared/mount.js
// The share component: the address of the view, and a button that copies it.

class View {
  constructor(root) {
    this.address = element("output", "address");
    this.address.setAttribute("aria-label", tr("Link to this view"));
    this.copy = element("button", "", tr("Copy link"));
    this.copy.addEventListener("click", () => this.copyAddress());
    this.promise = element("p", "promise");
    root.append(this.promise, this.address, this.copy);
    // Widgets write their values into the address after the page has run. A browser without this event shows the address
    // as it was when the box was opened; the button always copies the current one.
    this.onChange = () => this.showAddress();
    window.navigation?.addEventListener("currententrychange", this.onChange);
  }

  close() {
    window.navigation?.removeEventListener("currententrychange", this.onChange);
  }

  update({ data }) {
    this.promise.textContent = data.promise;
    this.showAddress();
  }

  showAddress() {
    if (this.address.textContent === location.href) return;
    this.address.textContent = location.href;
    this.copy.textContent = tr("Copy link");
  }

  async copyAddress() {
    this.showAddress();
    try {
      await navigator.clipboard.writeText(location.href);
      this.copy.textContent = tr("Copied ✓");
    } catch {
      // The clipboard needs HTTPS or localhost.
      getSelection().selectAllChildren(this.address);
      this.copy.textContent = document.execCommand("copy") ? tr("Copied ✓") : tr("Select the address and copy it");
    }
  }
}
