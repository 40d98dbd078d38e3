// SPDX-License-Identifier: Apache-2.0
// Service workers of several pages of one origin, with caches in memory. On standard input: the text of the worker, and visits { scope, version, without }: the page
// is visited; `without`: its caches are emptied before. Answers which files each cache holds after each visit.

import vm from "node:vm";

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { text, files, visits } = JSON.parse(Buffer.concat(chunks).toString());

const stored = new Map(); // name of a cache -> addresses
const workers = new Map();
const caches = {
  keys: async () => [...stored.keys()],
  delete: async (name) => stored.delete(name),
  async open(name) {
    if (!stored.has(name)) stored.set(name, new Set());
    const urls = stored.get(name);
    return {
      keys: async () => [...urls].map((url) => ({ url })),
      addAll: async (requests) => requests.forEach((request) => urls.add(request.url)),
      match: async (request) => (urls.has(request.url) ? "kept" : undefined),
    };
  },
};

function started(scope, version) {
  const listeners = {};
  vm.runInNewContext(text.replace("{{version}}", version).replace("{{files}}", JSON.stringify(files)), {
    caches, registration: { scope }, clients: { claim: async () => {} }, skipWaiting: () => {}, fetch: async () => "fetched",
    addEventListener: (kind, listener) => (listeners[kind] = listener),
    Request: class {
      constructor(file) {
        this.url = new URL(file, scope).href;
      }
    },
  });
  return async (kind, request) => {
    const waiting = [];
    listeners[kind]({ request, waitUntil: (promise) => waiting.push(promise), respondWith: (promise) => waiting.push(promise) });
    return (await Promise.all(waiting))[0];
  };
}

const answers = [];
for (const { scope, version, without } of visits) {
  if (without) for (const urls of stored.values()) urls.clear();
  const key = `${scope} ${version}`;
  if (!workers.has(key)) {
    workers.set(key, started(scope, version));
    await workers.get(key)("install");
    await workers.get(key)("activate");
  }
  const from = await workers.get(key)("fetch", { url: scope, method: "GET", mode: "navigate" });
  answers.push({ from, held: Object.fromEntries([...stored].map(([name, urls]) => [name, urls.size])) });
}
console.log(JSON.stringify(answers));
