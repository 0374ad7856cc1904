// needs: shared/mount.js
// The share component: the address of the view, or the one that it is given, and a button that copies it.

class View {
  constructor(root) {
    this.address = element("output", "address");
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
    this.promise.hidden = !data.promise;
    this.address.setAttribute("aria-label", data.name);
    this.given = data.address;
    this.showAddress();
  }

  showAddress() {
    const address = this.given || location.href;
    if (this.address.textContent === address) return;
    this.address.textContent = address;
    this.copy.textContent = tr("Copy link");
  }

  async copyAddress() {
    this.showAddress();
    try {
      await navigator.clipboard.writeText(this.address.textContent);
      this.copy.textContent = tr("Copied ✓");
    } catch {
      // The clipboard needs HTTPS or localhost.
      getSelection().selectAllChildren(this.address);
      this.copy.textContent = document.execCommand("copy") ? tr("Copied ✓") : tr("Select the address and copy it");
    }
  }
}
