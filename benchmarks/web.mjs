// SPDX-License-Identifier: Apache-2.0
// A model in node, as Roundel's module and by onnxruntime-web (npm install onnxruntime-web), in turn: with one thread each, by processor time, or with several
// (--threads=2, and a module for threads), by the clock:
//
//   roundel compile model.onnx -o model.wasm --side-file --header && node benchmarks/web.mjs model.onnx model.wasm [ROUNDS] [NAME=SIZE ...] [--threads=2]

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [onnx, wasm, rounds = "40", ...given] = process.argv.slice(2).filter((item) => !item.startsWith("--"));
const PAUSE = 200; // milliseconds
const threads = Number(process.argv.find((item) => item.startsWith("--threads="))?.slice(10) ?? 1);
const here = createRequire(resolve("package.json")); // of the folder that it was called from
const ort = here("onnxruntime-web");
const { load } = await import(pathToFileURL(resolve(dirname(wasm), "roundel.mjs")));
ort.env.wasm.numThreads = threads;
const sizes = Object.fromEntries(given.map((item) => item.split("=")));
const model = await load(pathToFileURL(resolve(wasm)), { threads });
const session = await ort.InferenceSession.create(onnx, { executionProviders: ["wasm"] });

const ours = {};
const theirs = {};
for (const { name, dtype, shape } of model.inputs) {
  const dims = shape.map((d) => (typeof d === "number" ? d : Number(sizes[d] ?? 1)));
  const count = dims.reduce((a, b) => a * b, 1);
  const data = dtype === "int64" ? BigInt64Array.from({ length: count }, (_, k) => BigInt(k % 2)) : Float32Array.from({ length: count }, Math.random);
  ours[name] = { data, shape: dims };
  theirs[name] = new ort.Tensor(dtype, data, dims);
}

const times = { roundel: [], "onnxruntime-web": [] };
const timed = async (name, run) => {
  if (threads > 1) await new Promise((resolve) => setTimeout(resolve, PAUSE)); // the other's idle threads spin for a while
  const [begin, used] = [performance.now(), process.cpuUsage()];
  const result = await run();
  const { user, system } = process.cpuUsage(used);
  times[name].push(threads > 1 ? performance.now() - begin : (user + system) / 1000);
  return result;
};
let differ = 0;
for (let k = 0; k < Number(rounds) + 3; k += 1) {
  const mine = Object.values(await timed("roundel", () => model.run(ours)))[0].data;
  const other = Object.values(await timed("onnxruntime-web", () => session.run(theirs)))[0].data;
  differ = mine.reduce((most, v, i) => Math.max(most, Math.abs(Number(v) - Number(other[i]))), differ);
}
for (const [name, all] of Object.entries(times)) {
  const sorted = all.slice(3).sort((a, b) => a - b);
  console.log(`${name}: least ${sorted[0].toFixed(1)} ms, median ${sorted[sorted.length >> 1].toFixed(1)} ms`);
}
console.log(`largest difference of results: ${differ}`);
