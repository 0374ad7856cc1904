// needs: shared/colours.js
// The save component: buttons that have a picture of the page saved as PNG or SVG, by whatever drew it.
// It is one module with colours.js before it.

const MORE = 16; // pixels on the left: labels may be wider in the file's font

export default function mount({ parentElement, data }) {
  const root = parentElement.querySelector(".save");
  const rows = data.targets.map((target) => {
    const row = element("div", "row");
    row.append(element("span", "title", target.title));
    for (const format of ["png", "svg"]) {
      const button = element("button", "", format.toUpperCase());
      button.setAttribute("aria-label", `Save as ${format.toUpperCase()}: ${target.title}`);
      button.addEventListener("click", () => {
        const found = target.component ? askComponent(target, format, data.caption) : askPlotly(target, format, data.caption);
        root.querySelector("output").textContent = found ? "" : "This picture is not on the page just now.";
      });
      row.append(button);
    }
    return row;
  });
  root.replaceChildren(...rows, element("output"));
}

function boxOf({ key }) {
  return document.querySelector(`.st-key-${CSS.escape(key)}`);
}

function askComponent(target, format, caption) {
  const hosts = [...(boxOf(target)?.querySelectorAll("*") || [])].filter((node) => node.shadowRoot);
  const picture = hosts.map((host) => host.shadowRoot.querySelector(`.${target.component}`)).find(Boolean);
  picture?.dispatchEvent(new CustomEvent("save-picture", { detail: { format, file: target.file, caption } }));
  return Boolean(picture);
}

// Plotly's own button saves the figure; it copies layout and options at the click, which is why they are back at once.
function askPlotly(target, format, caption) {
  const plot = boxOf(target)?.querySelector(".js-plotly-plot");
  const button = plot?.querySelector('.modebar-btn[data-title^="Download plot"]');
  if (!button) return false;
  const { layout, _context: options } = plot;
  const asked = options.toImageButtonOptions;
  plot.layout = { ...layout, ...captioned(plot, caption) };
  options.toImageButtonOptions = { format, filename: target.file, scale: format === "png" ? 2 : 1 };
  try {
    button.click();
  } finally {
    plot.layout = layout;
    options.toImageButtonOptions = asked;
  }
  return true;
}

// Room for the caption below the figure, and what stands there.
function captioned({ layout, _fullLayout: full }, caption) {
  const lines = caption.flatMap((line) => wrapped(line, Math.floor((full.width - 24) / 6.4)));
  const room = 15 * lines.length + 12;
  const { t, r, b, l } = full._size;
  const text = lines.map(plain).join("<br>");
  const place = { xref: "paper", yref: "paper", x: 0, y: 0, xanchor: "left", yanchor: "top", xshift: 8 - l - MORE, yshift: -b - 4 };
  const note = { ...place, text, showarrow: false, align: "left", font: { size: 11 } };
  const shown = document.querySelector("[data-testid=stApp]") || document.body;
  return {
    annotations: [...(layout.annotations || []), note],
    width: full.width + MORE,
    height: full.height + room,
    font: { ...layout.font, family: "Arial, Helvetica, sans-serif" },
    margin: { ...layout.margin, t, r, b: b + room, l: l + MORE },
    paper_bgcolor: getComputedStyle(shown).backgroundColor,
  };
}

function wrapped(text, most) {
  const letters = [...text];
  const count = Math.max(Math.ceil(letters.length / most), 1);
  return Array.from({ length: count }, (_, part) => letters.slice(part * most, (part + 1) * most).join(""));
}

// Plotly reads a little HTML in text: a person's is none.
function plain(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
