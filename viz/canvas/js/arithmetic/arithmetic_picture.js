// Draws the visible part of the arithmetic into a file: each box, cell, bar and text where it stands on the page.

function paintArithmetic(root, data, canvas, caption) {
  const theme = themeOf(root);
  const ranges = data.strips.flatMap(({ rows }) => rows.map(({ label, scale, limit }) => {
    const end = Number(limit.toPrecision(3));
    return tr("{label} {low} to {high}", { label, low: scale === "viridis" ? 0 : `−${written(String(end))}`, high: written(String(end)) });
  }));
  const titles = { title: tr("The arithmetic of one cell"), range: `${tr("Colours")}: ${ranges.join("; ")}`, caption };
  const { pen, size, top } = startPicture(canvas, [root.clientWidth, root.scrollHeight], theme, titles);
  const origin = root.getBoundingClientRect();
  for (const node of root.querySelectorAll("button, .name, .value, figcaption, th, td, i, .result")) {
    const box = node.getBoundingClientRect();
    if (hiddenByScrolling(node, box)) continue;
    const place = [box.left - origin.left + EDGE, box.top - origin.top + top];
    paintNode(pen, node, [...place, box.width, box.height], theme);
  }
  return size;
}

// Of a strip that scrolls, only the columns in view are drawn.
function hiddenByScrolling(node, box) {
  const frame = node.closest(".frame")?.getBoundingClientRect();
  const label = node.closest("tr")?.firstChild;
  if (!frame || node === label) return false;
  return box.right > frame.right + 1 || box.left < label.getBoundingClientRect().right - 1;
}

function paintNode(pen, node, [x, y, width, height], theme) {
  const style = getComputedStyle(node);
  pen.fillStyle = style.backgroundColor;
  if (!node.matches(".label")) pen.fillRect(x, y, width, height);
  pen.strokeStyle = theme.text;
  pen.globalAlpha = node.matches("button") ? 0.4 : 1;
  pen.lineWidth = node.matches(".chosen") ? 2 : 1;
  if (node.matches("button, td.chosen, td.masked")) pen.strokeRect(x, y, width, height);
  pen.globalAlpha = 1;
  if (node.children.length || !node.textContent) return;
  pen.font = `${style.fontWeight} ${style.fontSize} ${theme.font}`;
  pen.fillStyle = style.color;
  pen.textBaseline = "middle";
  pen.textAlign = style.textAlign === "center" ? "center" : "left";
  pen.fillText(node.textContent, pen.textAlign === "center" ? x + width / 2 : x + (node.matches(".label") ? 8 : 0), y + height / 2);
}
