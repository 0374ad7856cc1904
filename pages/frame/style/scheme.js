// Light or dark, as a visitor chose it and this browser remembers it. Streamlit has no way to set its theme from a page:
// it follows the system's scheme, by asking matchMedia. So matchMedia answers with the choice, where there is one. The
// style sheets' own `light-dark()` follow the theme.
(() => {
  const NAME = "attention-explorer-scheme";
  const ask = window.matchMedia.bind(window);
  const system = ask("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = localStorage.getItem(NAME);
  } catch {
    // Without storage, as in some private windows, the choice lasts as long as the page.
  }
  const answer = new EventTarget();
  const isDark = () => (["light", "dark"].includes(chosen) ? chosen === "dark" : system.matches);
  Object.defineProperties(answer, { media: { value: system.media }, matches: { get: isDark } });
  answer.addListener = (listener) => answer.addEventListener("change", listener);
  answer.removeListener = (listener) => answer.removeEventListener("change", listener);
  const tell = () => answer.dispatchEvent(new MediaQueryListEvent("change", { media: system.media, matches: isDark() }));
  system.addEventListener("change", tell);
  window.matchMedia = (query) => (query === "(prefers-color-scheme: dark)" ? answer : ask(query));
  document.documentElement.dataset.turnsScheme = "true";
  document.addEventListener("turn-scheme", () => {
    const dark = !isDark();
    // What the system has needs no memory: the page then follows the system again.
    chosen = dark === system.matches ? null : dark ? "dark" : "light";
    try {
      if (chosen) localStorage.setItem(NAME, chosen);
      else localStorage.removeItem(NAME);
    } catch {
      // As above.
    }
    tell();
  });
})();
