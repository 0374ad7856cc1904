// The checkpoint's files: from inside the page, from what the browser kept, or from the server, with their progress.

const KEPT = "attention-explorer"; // name of the browser's cache

export class Failure extends Error {}

// An ArrayBuffer of a file. `file`: { name, hash, size }; `onProgress(bytes)` hears how much has come.
// Throws a Failure with a sentence for people.
export async function load(file, onProgress, note) {
  const inside = [...document.getElementsByClassName(file.name)];
  if (inside.length) return fromTexts(inside, file.size);
  if (location.protocol === "file:") {
    const name = location.pathname.split("/").pop().replace("index", "attention-explorer");
    throw new Failure(tr("The model could not be loaded: a page on a disk may not read other files. Open {name}, which contains it.", { name }));
  }
  const kept = await readKept(file.name);
  if (kept && (await isWhole(kept, file.hash))) {
    onProgress(file.size);
    return kept;
  }
  const bytes = await fromServer(file, onProgress);
  if (!(await isWhole(bytes, file.hash))) {
    throw damaged();
  }
  await keep(file.name, bytes, note);
  return bytes;
}

const damaged = () => new Failure(tr("The model came damaged. Reload the page to load it again."));

// Each text is let go as soon as it is read: together they would hold as much memory again.
function fromTexts(inside, size) {
  const bytes = new Uint8Array(size);
  let place = 0;
  for (const part of inside) {
    const text = part.textContent;
    part.remove();
    const piece = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    bytes.set(piece, place);
    place += piece.length;
  }
  return bytes.buffer;
}

async function fromServer({ name, size }, onProgress) {
  let response;
  try {
    response = await fetch(name);
  } catch {
    throw new Failure(tr("The model could not be loaded: there is no connection. What you see is a recorded run; reload the page to try again."));
  }
  if (!response.ok) throw new Failure(tr("The model could not be loaded: the server answered {status}. What you see is a recorded run.", { status: response.status }));
  let bytes;
  try {
    bytes = new Uint8Array(size);
  } catch {
    throw new Failure(tooLittleMemory());
  }
  const reader = readerOf(response.body);
  let place = 0;
  for (let ended = false; place < size && !ended; ) {
    const { done, value } = await reader.read(bytes.subarray(place)); // which a plain reader takes no notice of
    if (!bytes.length) bytes = new Uint8Array(value.buffer);
    else if (value?.length > size - place) throw damaged();
    else if (value) bytes.set(value, place);
    place += value?.length ?? 0;
    onProgress(value?.length ?? 0);
    ended = done;
  }
  if (place === size && !(await reader.read(new Uint8Array(1))).done) throw damaged();
  return bytes.buffer;
}

// One that fills the file's own array, where the browser has it: pieces would hold as much memory again for a while.
function readerOf(body) {
  try {
    return body.getReader({ mode: "byob" });
  } catch {
    return body.getReader();
  }
}

export function tooLittleMemory() {
  return tr("This device has too little free memory for the model, about 300 MB. What you see is a recorded run: close other tabs and reload, or use a computer.");
}

// Only pages that came safely, and files, may compute checksums.
async function isWhole(bytes, hash) {
  if (!globalThis.crypto?.subtle) return true;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("") === hash;
}

async function readKept(name) {
  try {
    return await (await (await caches.open(KEPT)).match(name))?.arrayBuffer();
  } catch {
    return undefined;
  }
}

// Names have the hash of the file in them, so what is kept under other names is out of date.
async function keep(name, bytes, note) {
  if (!globalThis.caches) return;
  try {
    const cache = await caches.open(KEPT);
    await cache.put(name, new Response(new Blob([bytes])));
  } catch {
    note(tr("The model is ready. This browser has no room to keep it, so the next visit loads it again."));
  }
}

// Whether to ask before loading: where people pay by the megabyte.
export function isMetered() {
  const { saveData, type } = navigator.connection ?? {};
  return Boolean(saveData) || type === "cellular";
}
