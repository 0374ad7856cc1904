// The lines as a file: all tokens, however far the page has scrolled, and which line is which head's.

function paintLines(view, canvas, caption) {
  const { header, layout, theme, width } = view;
  const least = view.isolated ? header.least : leastOf(view, view.shownSlots());
  const range = `Thickness and opacity of a line: its number, from ${short(least)} to ${short(header.high)}`;
  const several = header.heads.length > 1;
  const height = HEADING + layout.height + (several ? LINE + 8 : 0);
  const says = { title: header.measure, range, caption };
  const { pen, whole, top } = startPicture(canvas, [width, height], theme, says);
  const [heading, inside] = [canvasLike(canvas), canvasLike(canvas)];
  drawHeading(heading, view);
  pen.drawImage(heading, EDGE, top, width, HEADING);
  const inner = sized(inside, width, layout.height);
  drawLines(inner, view, view.isolated ? pairsOf(view, view.isolated) : everyPair(view), least);
  drawTokens(inner, view);
  pen.drawImage(inside, EDGE, top + HEADING, width, layout.height);
  if (several) nameHeads(pen, view, top + HEADING + layout.height + LINE / 2);
  return whole;
}

function nameHeads(pen, view, y) {
  let x = EDGE;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.font = `12px ${view.theme.font}`;
  for (const slot of view.shownSlots()) {
    const { colour, dashes } = view.lookOf(slot);
    pen.strokeStyle = colour;
    pen.lineWidth = 3;
    pen.setLineDash(dashes);
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x + 30, y);
    pen.stroke();
    pen.fillStyle = view.theme.text;
    const name = `head ${view.header.heads[slot]}`;
    pen.fillText(name, x + 36, y);
    x += 54 + pen.measureText(name).width;
  }
  pen.setLineDash([]);
}
