// needs: shared/elements.js shared/svg_pen.js
// Saves a picture as SVG, which the app's export box alone asks for: the static page leaves this file out.

function saveSvg(paint, { file, caption }) {
  const canvas = new SvgCanvas();
  const [width, height] = paint(canvas, caption);
  downloadSvg(canvas.node(width, height), file);
}

async function downloadSvg(node, file) {
  const fonts = await fontsOf(node);
  if (fonts) {
    const style = svgElement("style", {});
    style.textContent = fonts;
    node.prepend(style);
  }
  download(new Blob([new XMLSerializer().serializeToString(node)], { type: "image/svg+xml" }), `${file}.svg`);
}

// The page's fonts that an SVG's texts name, as rules of CSS with the fonts inside: the file brings them along.
async function fontsOf(node) {
  const texts = [...node.querySelectorAll("text")];
  const named = texts.map(({ style }) => style.fontFamily).join().replaceAll(/["']/g, "").split(/\s*,\s*/);
  const rules = [...document.styleSheets].flatMap(rulesOf).filter((rule) => rule instanceof CSSFontFaceRule);
  const used = rules.filter(({ style }) => {
    const family = style.getPropertyValue("font-family").replaceAll(/["']/g, "");
    return named.includes(family) && style.getPropertyValue("font-style") !== "italic";
  });
  return (await Promise.all(used.map(withFontInside))).join("\n");
}

function rulesOf(sheet) {
  try {
    return [...sheet.cssRules];
  } catch {
    return []; // of another origin
  }
}

async function withFontInside({ cssText, parentStyleSheet, style }) {
  const found = /url\(["']?([^"')]+)["']?\)/.exec(style.getPropertyValue("src"));
  if (!found || found[1].startsWith("data:")) return cssText;
  const answer = await fetch(new URL(found[1], parentStyleSheet.href || document.baseURI));
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return cssText.replace(found[0], `url("data:font/woff2;base64,${btoa(letters)}")`);
}
