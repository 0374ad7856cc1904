// Reads a payload of viz.drawing.Drawing.pack: its header, and `take(Type, length)`, which gives its next array.

function unpack(data) {
  const { buffer } = new Uint8Array(data);
  let place = 4 + new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, place - 4)));
  const take = (Type, length) => {
    const array = new Type(buffer, place, length);
    place += 4 * Math.ceil(array.byteLength / 4);
    return array;
  };
  return { header, take };
}
