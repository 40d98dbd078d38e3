// SPDX-License-Identifier: Apache-2.0
// Runs WebAssembly models for tests: a question in a line of JSON, its answer in another. What is loaded stays loaded.

import { createInterface } from "node:readline";
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const { load, RoundelError } = await import(pathToFileURL(process.argv[2]));
const models = new Map();
const ARRAYS = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, bfloat16: Uint16Array, int8: Int8Array, int16: Int16Array, int32: Int32Array,
  int64: BigInt64Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array, bool: Uint8Array,
};

/** Some runs one after another: the outputs named by `states` stay in the model's memory and are the next run's inputs in those places. */
function repeated(model, inputs, { states, times, released }) {
  const given = [...inputs];
  const keep = Object.keys(states);
  let outputs;
  for (let k = 0; k < times; k += 1) {
    const before = Object.values(states).map((place) => given[place]);
    outputs = model.run(given, { keep });
    before.forEach((state) => state.release?.());
    keep.forEach((name) => (given[states[name]] = outputs[name]));
  }
  if (released) keep.forEach((name) => outputs[name].release());
  return outputs;
}

async function answer({ file, others, weights, inputs, options, keeps }) {
  const key = JSON.stringify([file, others ?? [], weights ?? null, options?.threads ?? null]);
  const source = others ? [file, ...others].map((name) => pathToFileURL(name)) : pathToFileURL(file);
  if (!models.has(key)) models.set(key, await load(source, { ...options, ...(weights ? { weights: await readFile(weights) } : {}) }));
  const model = models.get(key);
  if (!inputs) return { inputs: model.inputs, outputs: model.outputs, memory: model.memoryBytes, threads: model.threads };
  const given = inputs.map(({ dtype, shape, data, named = dtype }) => {
    const bytes = Buffer.from(data, "base64");
    return { dtype: named, shape, data: new ARRAYS[dtype](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength)) };
  });
  const outputs = keeps ? repeated(model, given, keeps) : model.run(given);
  return Object.values(outputs).map(({ dtype, shape, data }) => ({ dtype, shape, data: Buffer.from(data.buffer).toString("base64") }));
}

for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    said = { answer: await answer(JSON.parse(line)) };
  } catch (error) {
    said = { error: error.message, code: error instanceof RoundelError ? error.code : error.constructor.name };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
