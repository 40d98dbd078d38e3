// SPDX-License-Identifier: Apache-2.0
// One of the threads of a model that roundel.mjs has loaded: an instance of the model's module on the memory that all of them share.

async function start({ module, memory, place }, tell) {
  const { exports } = await WebAssembly.instantiate(module, { env: { memory, now: () => performance.now() } });
  tell("ready");
  try {
    exports.roundel_thread(place); // works until it is terminated
  } catch (error) {
    exports.roundel_thread_broke();
    throw error;
  }
}

if (globalThis.process?.versions?.node) {
  const { parentPort } = await import("node:worker_threads");
  parentPort.once("message", (given) => start(given, (text) => parentPort.postMessage(text)));
} else {
  addEventListener("message", ({ data }) => start(data, postMessage), { once: true });
}
