// A checkpoint's weights: reads a .safetensors file, half precision widened to float32.

import { widened } from "./half.js";

// Name -> Float32Array, row by row as PyTorch stores it. The buffer is used
// up. Throws an Error for other types of numbers than F16 and F32.
export function readSafetensors(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const tensors = new Map();
  for (const [name, { dtype, data_offsets: [start, end] }] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    if (dtype !== "F16" && dtype !== "F32") throw new Error(`${name} is of type ${dtype}; F16 and F32 can be read`);
    const Type = dtype === "F16" ? Uint16Array : Float32Array;
    const place = 8 + length + start;
    // A file whose numbers are not aligned has to be copied.
    const whole = place % Type.BYTES_PER_ELEMENT ? new Type(buffer.slice(place, 8 + length + end)) : new Type(buffer, place, (end - start) / Type.BYTES_PER_ELEMENT);
    tensors.set(name, dtype === "F16" ? widened(whole) : whole);
  }
  // Widened numbers need the file no longer.
  if (![...tensors.values()].some((values) => values.buffer === buffer)) letGo(buffer);
  return tensors;
}

// Frees the memory at once. What came in a message stays until the browser's next cleaning, even after `transfer`; what
// leaves in one that nobody can read does not.
function letGo(buffer) {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  port1.postMessage(null, [buffer]);
  port1.close();
}
