// SPDX-License-Identifier: Apache-2.0
// Loads the model and runs it, beside the page, which stays responsive. A question has a number, which its answer repeats. Outputs that are states stay in
// the model's memory and are given to the next run in place of the inputs that the page leaves out.

import { load } from "./roundel.mjs";
import { readable, zeros } from "./tensors.mjs";

let model = null;
let states = [];
let held = new Map(); // place of an input -> what the last run gave for it

const answers = {
  async load({ modules, threads, carried }) {
    model = await load(modules.map((name) => new URL(name, import.meta.url)), { threads, onProgress: (progress) => postMessage({ progress }) });
    states = carried;
    return { inputs: model.inputs, outputs: model.outputs, threads: model.threads, memory: model.memoryBytes };
  },
  run({ inputs, restart }) {
    const hold = (given) => {
      held.forEach((state) => state.release?.());
      held = given;
    };
    if (restart) hold(new Map(states.map((s) => [s.input, zeros(model.inputs[s.input].dtype, s.shape)])));
    const begin = performance.now();
    const keep = states.map((s) => model.outputs[s.output].name);
    const outputs = Object.values(model.run(model.inputs.map((_, k) => inputs[k] ?? held.get(k)), { keep }));
    const ms = performance.now() - begin;
    hold(new Map(states.map((s) => [s.input, outputs[s.output]])));
    for (const state of states) outputs[state.output] = null;
    return { outputs: outputs.map((o) => o && readable(o)), ms, memory: model.memoryBytes };
  },
};

addEventListener("message", async ({ data: { id, kind, ...question } }) => {
  try {
    const answer = await answers[kind](question);
    postMessage({ id, answer }, kind === "run" ? answer.outputs.filter(Boolean).map((o) => o.data.buffer) : []);
  } catch (error) {
    postMessage({ id, error: error.message });
  }
});
