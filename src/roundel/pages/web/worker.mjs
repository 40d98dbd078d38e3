// SPDX-License-Identifier: Apache-2.0
// Loads the model and runs it, beside the page, which stays responsive. A question has a number, which its answer repeats.

import { load } from "./roundel.mjs";

let model = null;

const answers = {
  async load({ modules, threads }) {
    model = await load(modules.map((name) => new URL(name, import.meta.url)), { threads, onProgress: (progress) => postMessage({ progress }) });
    return { inputs: model.inputs, outputs: model.outputs, threads: model.threads, memory: model.memoryBytes };
  },
  run({ inputs }) {
    const begin = performance.now();
    const outputs = model.run(inputs);
    return { outputs, ms: performance.now() - begin, memory: model.memoryBytes };
  },
};

addEventListener("message", async ({ data: { id, kind, ...question } }) => {
  try {
    postMessage({ id, answer: await answers[kind](question) });
  } catch (error) {
    postMessage({ id, error: error.message });
  }
});
