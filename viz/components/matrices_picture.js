// The picture as a PNG file: what is on the stage, with its captions, operators and legend.

const MARGIN = 16;
const TOP = MARGIN + 48; // below the title and the ranges

function savePicture(view) {
  const ratio = window.devicePixelRatio || 1;
  const { stage, theme, header } = view;
  const canvas = element("canvas");
  const [width, height] = [stage.scrollWidth + 2 * MARGIN, stage.scrollHeight + TOP + MARGIN];
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.fillStyle = theme.background;
  pen.fillRect(0, 0, width, height);
  pen.fillStyle = theme.text;
  pen.textBaseline = "middle";
  pen.font = `600 14px ${theme.font}`;
  pen.fillText(header.title, MARGIN, MARGIN + 6);
  pen.font = `12px ${theme.font}`;
  pen.fillText(rangesInWords(view), MARGIN, MARGIN + 28);
  const origin = stage.getBoundingClientRect();
  const place = (node) => {
    const box = node.getBoundingClientRect();
    return [box.left - origin.left + stage.scrollLeft + MARGIN, box.top - origin.top + stage.scrollTop + TOP, box];
  };
  for (const layer of stage.querySelectorAll("canvas")) {
    const [x, y, box] = place(layer);
    pen.drawImage(layer, x, y, box.width, box.height);
  }
  for (const symbol of stage.querySelectorAll(".symbol")) drawSymbol(pen, symbol, ...place(symbol), theme);
  pen.font = `12px ${theme.font}`;
  for (const shape of stage.querySelectorAll(".shape")) {
    const [x, y, box] = place(shape);
    pen.fillText(shape.textContent, x, y + box.height / 2);
  }
  pen.font = `20px ${theme.font}`;
  pen.textAlign = "center";
  for (const operator of stage.querySelectorAll(".operator")) {
    const [x, y, box] = place(operator);
    const top = Number.parseFloat(operator.style.paddingTop) || 0;
    pen.fillText(operator.textContent, x + box.width / 2, y + (box.height + top) / 2);
  }
  download(canvas, header.title.replace(/[^\w.-]+/g, "-"));
}

function drawSymbol(pen, node, x, y, box, theme) {
  let place = x + 2;
  for (const { mark, text } of symbolParts(node.dataset.symbol)) {
    pen.font = `600 ${mark ? 10 : 15}px ${theme.font}`;
    pen.fillText(text, place, y + box.height / 2 + ({ _: 4, "^": -5 }[mark] || 0));
    place += pen.measureText(text).width + 1;
  }
  const line = node.style.borderColor;
  if (!line) return;
  pen.save();
  pen.fillStyle = line;
  pen.fillRect(x, y + box.height - 3, box.width, 3);
  pen.restore();
}

function rangesInWords(view) {
  const ranges = [...view.legend.querySelectorAll(".range")].map((entry) => {
    const [low, high] = [...entry.querySelectorAll(".end")].map((end) => end.textContent);
    const symbols = [...entry.childNodes].filter((node) => !node.className && node.tagName !== "CANVAS");
    return `${symbols.map((node) => node.textContent).join("")}: colours from ${low} to ${high}`;
  });
  const hatched = view.legend.querySelector(".hatched") ? ["hatched: masked"] : [];
  return [...ranges, ...hatched, ...view.redraw.inWords()].join("; ");
}

function download(canvas, name) {
  canvas.toBlob((blob) => {
    const link = element("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${name}.png`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
