// needs: shared/mount.js
// The save component: buttons that save a picture of the page as PNG or SVG, drawn by its component or by Plotly.

const MARGIN = 16; // pixels added on the left: labels can be wider in the font of the file

class View {
  constructor(root) {
    this.root = root;
  }

  update({ data: { targets, caption } }) {
    const message = element("output");
    const rows = targets.map((target) => {
      const row = element("div", "row");
      const buttons = ["png", "svg"].map((format) => {
        const save = element("button", "", format.toUpperCase());
        save.setAttribute("aria-label", tr("Save as {format}: {title}", { format: format.toUpperCase(), title: target.title }));
        save.addEventListener("click", () => {
          const found = (target.component ? saveComponent : savePlotly)(target, format, caption);
          message.textContent = found ? "" : tr("This picture is not on the page at the moment.");
        });
        return save;
      });
      row.append(element("span", "title", target.title), ...buttons);
      return row;
    });
    this.root.replaceChildren(...rows, message);
  }
}

function boxOf({ key }) {
  return document.querySelector(`.st-key-${CSS.escape(key)}`);
}

function saveComponent(target, format, caption) {
  const hosts = [...(boxOf(target)?.querySelectorAll("*") || [])].filter((node) => node.shadowRoot);
  const picture = hosts.map((host) => host.shadowRoot.querySelector(`.${target.component}`)).find(Boolean);
  picture?.dispatchEvent(new CustomEvent("save-picture", { detail: { format, file: target.file, caption } }));
  return Boolean(picture);
}

// Clicks Plotly's own button. Plotly copies layout and options at the click, so they can be restored at once.
function savePlotly(target, format, caption) {
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

// The changes to the layout: room for the caption, and the caption as an annotation.
function captioned({ layout, _fullLayout: full }, caption) {
  const lines = caption.flatMap((line) => wrapped(line, Math.floor((full.width - 24) / 6.4)));
  const room = 15 * lines.length + 12;
  const { t, r, b, l } = full._size;
  const text = lines.map(plain).join("<br>");
  const place = { xref: "paper", yref: "paper", x: 0, y: 0, xanchor: "left", yanchor: "top", xshift: 8 - l - MARGIN, yshift: -b - 4 };
  const note = { ...place, text, showarrow: false, align: "left", font: { size: 11 } };
  const shown = document.querySelector("[data-testid=stApp]") || document.body;
  return {
    annotations: [...(layout.annotations || []), note],
    width: full.width + MARGIN,
    height: full.height + room,
    font: { ...layout.font, family: "Arial, Helvetica, sans-serif" },
    margin: { ...layout.margin, t, r, b: b + room, l: l + MARGIN },
    paper_bgcolor: getComputedStyle(shown).backgroundColor,
  };
}

function wrapped(text, most) {
  const letters = [...text];
  const count = Math.max(Math.ceil(letters.length / most), 1);
  return Array.from({ length: count }, (_, part) => letters.slice(part * most, (part + 1) * most).join(""));
}

// Plotly interprets some HTML in text; what a person typed is plain text.
function plain(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
