// SPDX-License-Identifier: Apache-2.0
// Uses WebAssembly models wrongly: node wasm_inputs.mjs roundel.mjs FOLDER SEED COUNT START prints a line for each finding, and "done" at the end.

import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const [loader, folder, seed, count, start] = process.argv.slice(2);
const { load, KeptTensor, RoundelError } = await import(pathToFileURL(loader));
const CODES = ["RuntimeError", "ValueError", "TypeError", "MemoryError", "CallbackError", "MachineError", "Interrupted"];
const module = await readFile(`${folder}/m.wasm`);
const weights = await readFile(`${folder}/m.wasm.weights`);
const other = await readFile(`${folder}/other.wasm.weights`);
const threaded = await readFile(`${folder}/threads.wasm`);
const within = await readFile(`${folder}/within.wasm`);

let state = 0;
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t ^= t + Math.imul(t ^ (t >>> 7), 61 | t);
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}
const below = (n) => Math.floor(random() * n);
const one = (list) => list[below(list.length)];

const rows = 3;
const right = () => ({
  x: { data: Float32Array.from({ length: 7 * rows }, (_, k) => k / 8), shape: [rows, 7] },
  k: BigInt64Array.of(1n, -2n, 3n),
  past: { data: new Float32Array(6).fill(0.5), shape: [2, 3] },
});

function detached() {
  const data = new Float32Array(7 * rows);
  structuredClone(data.buffer, { transfer: [data.buffer] });
  return data;
}

const NOTHINGS = [undefined, null, 0, 1, NaN, -1, "", "x", true, [], {}, () => 1, Symbol("s"), 7n, new Date(0), new Map(), new ArrayBuffer(84), new Proxy({}, {})];
const ARRAYS = [() => new Float64Array(21), () => new Float32Array(20), () => new Float32Array(22), () => new Float32Array(0), () => new Int32Array(21),
  () => new Uint8Array(84), () => new DataView(new ArrayBuffer(84)), () => Array(21).fill(0), detached, () => new Float32Array(new SharedArrayBuffer(84)),
  () => new BigInt64Array(3), () => new BigUint64Array(3), () => new Float32Array(new ArrayBuffer(88, { maxByteLength: 880 }), 4)];
const SIZES = [-1, 0, 1, 2, 3, 4, 7, 21, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 60, NaN, Infinity, 0.5, "3", null, 3n, [3], undefined];

/** An input that may be wrong. */
function spoilt() {
  const way = below(4);
  if (way === 0) return one(NOTHINGS);
  if (way === 1) return one(ARRAYS)();
  const shape = way === 2 ? one([...NOTHINGS, "3,7", { length: 2 }]) : Array.from({ length: below(5) }, () => one(SIZES));
  return { data: one([...NOTHINGS, ...ARRAYS.map((make) => make())]), shape };
}

/** A call of a model that may be wrong in up to three ways. */
function call(model, kept) {
  let inputs = right();
  let options = {};
  for (let k = 0; k <= below(3); k += 1) {
    const way = below(8);
    const name = one(["x", "k", "past"]);
    if (way < 4) inputs[name] = spoilt();
    else if (way === 4) delete inputs[name];
    else if (way === 5) inputs[one(["z", "__proto__", "constructor", "data", "toString"])] = one([1, new Float32Array(21)]);
    else if (way === 6) inputs[one(["past", "x", "k"])] = one(kept);
    else options = one([null, 1, "main", { function: one([...NOTHINGS, "absent", "main"]) }, { keep: one([...NOTHINGS, ["absent"], ["now"], ["now", "now"], "now", new Set(["y"])]) }]);
  }
  if (below(10) === 0) inputs = one([...NOTHINGS, Object.values(inputs), [inputs], [right().x], new Float32Array(21)]);
  return model.run(inputs, options);
}

/** Some bits of the last `most` bytes are changed. */
const flipped = (bytes, times, most = bytes.length) => {
  const copy = Uint8Array.from(bytes);
  for (let k = 0; k < times; k += 1) copy[copy.length - 1 - below(most)] ^= 1 << below(8);
  return copy;
};
const cut = (bytes) => bytes.subarray(0, below(bytes.length));

/** A model that is loaded from what may be wrong; any bytes of a module may be changed. */
function loading() {
  const changed = () => flipped(one([module, threaded, within, within]), 1 + below(3), one([undefined, 2000])); // weights and texts are at the end
  const sources = [() => module, () => within, () => cut(module), changed, changed, changed, () => Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0), () => one(NOTHINGS),
    () => [], () => [cut(module), module], () => [module, null], () => new Uint8Array(module).buffer, () => new URL("file:///absent.wasm"), () => "http://[", () => threaded];
  const files = [() => weights, () => cut(weights), () => flipped(weights, 1), () => Buffer.concat([weights, weights]), () => other, () => one(NOTHINGS), () => detached(),
    () => new Uint8Array(weights).buffer, () => new URL("file:///absent"), () => "http://["];
  const options = { weights: one(files)() };
  if (below(3) === 0) options.maximumBytes = one([...NOTHINGS, 65536, 1 << 20, (1 << 20) + (1 << 17), 1 << 22, -5, 2 ** 40, Infinity, "4"]);
  if (below(3) === 0) options.threads = one([...NOTHINGS, 0, 1, 2, 1.5, 1e9]);
  if (below(6) === 0) options.onProgress = one(NOTHINGS.filter((v) => typeof v !== "function"));
  if (below(6) === 0) options.signal = one([AbortSignal.abort(), AbortSignal.timeout(0)]);
  return load(one([sources[0], one(sources)])(), one([options, options, options, options, options, one(NOTHINGS)]));
}

const bytesOf = (outputs) => Object.values(outputs).map((o) => Buffer.from(o.data.buffer).toString("hex")).join();
const model = await load(module, { weights });
const want = bytesOf(model.run(right()));

/** What is wrong with a model that was used wrongly. */
const differs = (used) => (bytesOf(used.run(right())) === want ? "" : "another result afterwards");

async function attempt() {
  const way = below(10);
  if (way < 6) {
    const gone = model.run(right(), { keep: ["now"] }).now;
    gone.release();
    const live = model.run(right(), { keep: ["now"] }).now;
    const left = await load(module, { weights });
    const lost = left.run(right(), { keep: ["now"] }).now;
    left.dispose();
    try {
      const outputs = call(model, [gone, live, lost, new Proxy(live, {}), structuredClone({ ...live })]);
      for (const o of Object.values(outputs)) if (o instanceof KeptTensor) o.release();
    } finally {
      live.release();
    }
    return;
  }
  if (way === 6) {
    const left = await load(module, { weights });
    const kept = left.run(right(), { keep: ["now"] }).now;
    left.dispose();
    left.dispose();
    kept.release();
    one([() => left.run(right()), () => kept.data, () => left.functions, () => left.memoryBytes, () => left.threads, () => kept.release()])();
    return;
  }
  const made = await loading();
  try {
    if (below(2)) made.run({ ...right(), x: { data: new Float32Array(7 << 16), shape: [1 << 16, 7] }, k: new BigInt64Array(1 << 16) });
    const wrong = differs(made);
    if (wrong) throw new Error(wrong);
  } finally {
    made.dispose();
  }
}

for (let k = Number(start); k < Number(count); k += 1) {
  state = Number(seed) * 1000003 + k;
  let wrong = "";
  try {
    await attempt();
  } catch (error) {
    const expected = error?.name === "AbortError" || error?.name === "TimeoutError" || (error instanceof RoundelError && CODES.includes(error.code) && error.message);
    if (!expected) wrong = error?.stack?.split("\n").slice(0, 3).join(" ") ?? String(error);
    else if (/undefined is|is not a function|Cannot read|broke down/.test(error.message)) wrong = error.message;
  }
  wrong ||= differs(model);
  if (wrong) console.log(`attempt ${k}: ${wrong}`);
}
console.log("done");
process.exit();
