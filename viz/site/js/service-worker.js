// Keeps the page and its engine for visits without a network. The model's files, which have their hash in their name, keep
// themselves (loading.js); the page itself is asked for anew, and taken from here where no answer comes.

const KEPT = "attention-explorer";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  if (event.request.mode === "navigate" || event.request.destination === "worker") event.respondWith(kept(event.request));
});

async function kept(request) {
  const cache = await caches.open(KEPT);
  const { pathname } = new URL(request.url); // one for each language; what follows it chooses a sentence
  try {
    const answer = await fetch(request);
    if (answer.ok) await cache.put(pathname, answer.clone()).catch(() => {});
    return answer;
  } catch {
    return (await cache.match(pathname)) ?? Response.error();
  }
}
