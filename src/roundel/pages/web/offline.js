// SPDX-License-Identifier: Apache-2.0
// The page's files for visits without a network. The weights are kept by roundel.mjs.

const MINE = `roundel-page-${registration.scope}#`; // other pages of this origin have caches of their own; no scope has a #
const NAME = `${MINE}{{version}}`;
const FILES = {{files}};

/** Keeps the files that are not kept yet: at first all, and all again where the user or the browser emptied the cache. */
async function fill() {
  const cache = await caches.open(NAME);
  const kept = new Set((await cache.keys()).map((request) => request.url));
  await cache.addAll(FILES.map((file) => new Request(file, { cache: "reload" })).filter((request) => !kept.has(request.url)));
}

async function answer(request) {
  const cache = await caches.open(NAME);
  return (await cache.match(request, { ignoreSearch: true })) ?? fetch(request);
}

addEventListener("install", (event) => {
  skipWaiting();
  event.waitUntil(fill());
});

addEventListener("activate", (event) => {
  const drop = async () => {
    for (const name of await caches.keys()) if (name.startsWith(MINE) && name !== NAME) await caches.delete(name);
    await clients.claim();
  };
  event.waitUntil(drop());
});

addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || event.request.url.endsWith(".weights")) return;
  event.respondWith(answer(event.request));
  if (event.request.mode === "navigate") event.waitUntil(fill().catch(() => {})); // without a network, at the next visit
});
