// A payload: the header's length in four bytes, the header as JSON, and from `start` on the numbers that it describes.

function unpackedHeader(data) {
  const bytes = new Uint8Array(data);
  const start = 4 + new DataView(bytes.buffer).getUint32(0, true);
  return { header: JSON.parse(new TextDecoder().decode(bytes.subarray(4, start))), bytes, start };
}
