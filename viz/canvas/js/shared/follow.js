// Follows the link to a page with which the app answers what a picture asks for: Streamlit opens a page by a link of its
// own only, and the picture cannot draw one.

const PATIENCE = 600; // times that a link is looked for, every 50 milliseconds

class Follower {
  follow(patience = PATIENCE) {
    this.close();
    const link = document.querySelector(".st-key-opens a");
    if (link) link.click();
    else if (patience) this.timer = setTimeout(() => this.follow(patience - 1), 50);
  }

  close() {
    clearTimeout(this.timer);
  }
}
