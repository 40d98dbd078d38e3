// SPDX-License-Identifier: Apache-2.0
// Loads and runs models that Roundel compiled to WebAssembly, in browsers, workers and node:
//
//   import { load } from "./roundel.mjs";
//   const model = await load(new URL("model.wasm", import.meta.url));
//   const { scores } = await model.run({ image: new Float32Array(3 * 224 * 224) });
//
// A tensor is { dtype, shape, data }, with data in an array of its type, in the order of rows. Types are in roundel.d.mts.

const PAGE = 65536;
const BLOCK = 8 << 20; // bytes of weights that are hashed together
const TOGETHER = 8; // such blocks
const DIGEST = 64; // characters of a digest, behind the weights in their file and at the end of a module
const CACHE = "roundel-weights";
const STATUS = ["", "RuntimeError", "ValueError", "TypeError", "MemoryError", "CallbackError", "MachineError", "Interrupted"];

// By the name of a type: its array, DLPack's code, its bits. Numbers of 16 bits and booleans are held as they lie in memory.
const TYPES = {
  float32: [Float32Array, 2, 32], float64: [Float64Array, 2, 64], float16: [Uint16Array, 2, 16], bfloat16: [Uint16Array, 4, 16],
  int8: [Int8Array, 0, 8], int16: [Int16Array, 0, 16], int32: [Int32Array, 0, 32], int64: [BigInt64Array, 0, 64],
  uint8: [Uint8Array, 1, 8], uint16: [Uint16Array, 1, 16], uint32: [Uint32Array, 1, 32], uint64: [BigUint64Array, 1, 64],
  bool: [Uint8Array, 6, 8],
};
const DTYPES = new Map(Object.entries(TYPES).map(([name, [, code, bits]]) => [`${code}/${bits}`, name]));

/** What was wrong with a file, with what a model was given, or with a run; `code` says which kind of error it is. */
export class RoundelError extends Error {
  constructor(message, code = "RuntimeError", options = undefined) {
    super(message, options);
    this.name = "RoundelError";
    this.code = code;
  }
}

/** Loads a model: `source` is the URL of a module, or its bytes, or an array of these, of which the first is taken that this engine can run.
 * Options: `weights` (URL or bytes of the weights' file; by default it is looked for beside the module), `onProgress({ loaded, total })`, `cache` (keep
 * weights in the browser's cache; default true), `check` (compare the digests of the module and the weights; default true), `signal` (to end it early), `maximumBytes` (of
 * memory), `threads` (of a module with threads; default: half the processors that the engine tells of, at most 8). Throws RoundelError. */
export async function load(source, options) {
  options = checked(options, { onProgress: "function", maximumBytes: "number", signal: "object", weights: null, cache: null, check: null, threads: null });
  const progress = new Progress(options.onProgress);
  const { from, bytes, told } = await chosen(Array.isArray(source) ? source : [source], options, progress);
  const weights = told.weights && opened(options.weights ?? beside(from, told.weights.file), told.weights, options); // comes while the module is compiled
  weights?.catch(() => {});
  const module = await compiled(bytes);
  const hasThreads = (told.needs ?? []).includes(THREADS);
  const memory = newMemory(told, options.maximumBytes, hasThreads);
  let instance;
  try {
    instance = await WebAssembly.instantiate(module, { env: { memory, now } });
  } catch (error) {
    throw new RoundelError(`the module cannot be started: ${error.message}`, "MachineError", { cause: error });
  }
  const exports = told.bits === 64 ? inNumbers(instance.exports) : instance.exports;
  if (weights) await take(await weights, exports, memory, told.weights, options.check ?? true, progress);
  const threads = hasThreads ? await startThreads(instance.exports, module, memory, options.threads ?? usualThreads()) : [];
  try {
    return new Model(exports, memory, told.bits === 64 ? 8 : 4, threads);
  } catch (error) {
    threads.forEach((thread) => thread.terminate());
    throw error;
  }
}

/** A model that was loaded. One run at a time; in a page, load it in a worker so that the page stays responsive. */
export class Model {
  #exports;
  #memory;
  #functions;
  #threads;
  #pointer; // bytes of one
  #tensor; // bytes of a DLTensor
  #broken = null;

  constructor(exports, memory, pointer, threads) {
    this.#exports = exports;
    this.#memory = memory;
    this.#pointer = pointer;
    this.#tensor = offsetAt(pointer) + 8;
    this.#threads = threads;
    this.#raise(exports.roundel_check());
    this.metadata = JSON.parse(this.#text(exports.roundel_metadata()));
    this.#functions = new Map(this.metadata.functions.map((f) => [f.name, f]));
    const main = this.#functions.get("main") ?? this.metadata.functions[0];
    this.inputs = main.inputs;
    this.outputs = main.outputs;
    this.main = main.name;
  }

  /** Names of the functions that `run` knows. */
  get functions() {
    return [...this.#functions.keys()];
  }

  /** Bytes of the memory that the model has taken. */
  get memoryBytes() {
    return this.#memory ? this.#memory.buffer.byteLength : 0;
  }

  /** Runs a function (`options.function`; by default the model's main one). `inputs`: an object by name, or an array in order; each one an array of
   * the input's type where its sizes are known or told by its length, else { data, shape }, or a tensor that an earlier run kept. Returns the outputs by
   * name; those that `options.keep` names stay in the model's memory (KeptTensor). Throws RoundelError. */
  run(inputs, options) {
    this.#usable();
    options = checked(options, { function: "string", keep: null });
    const f = this.#functions.get(options.function ?? this.main);
    if (!f) throw new RoundelError(`the model has no function ${options.function}; it has ${this.functions.join(", ")}`, "ValueError");
    const tensors = inOrder(f, inputs).map((value, k) => (KeptTensor.is(value) ? this.#own(f.inputs[k], value) : asTensor(f.inputs[k], value)));
    if (!Array.isArray(options.keep ?? [])) throw new RoundelError("options.keep is to be an array of outputs' names", "TypeError");
    const keep = new Set(options.keep);
    const unknown = [...keep].filter((name) => !f.outputs.some((o) => o.name === name));
    if (unknown.length) {
      throw new RoundelError(`the model has no output ${unknown.map(String).join(", ")}; its outputs are ${f.outputs.map((o) => o.name).join(", ")}`, "ValueError");
    }
    const held = [];
    try {
      return this.#call(f, tensors, keep, held);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      this.#broken = error.message;
      throw new RoundelError(`the model broke down: ${error.message}`, "RuntimeError", { cause: error });
    } finally {
      if (!this.#broken) held.reverse().forEach((place) => this.#exports.roundel_free(place));
    }
  }

  /** How many threads compute a run. */
  get threads() {
    return this.#threads.length + 1;
  }

  /** Gives the memory back and ends the threads; the model cannot be used afterwards. */
  dispose() {
    this.#threads.forEach((thread) => thread.terminate());
    this.#exports = this.#memory = null;
  }

  [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() {
    this.dispose();
  }

  #call(f, tensors, keep, held) {
    const room = (nbytes, what) => {
      const place = allocated(this.#exports, this.#memory, nbytes, what);
      held.push(place);
      return place;
    };
    const data = tensors.map((t, k) => t.place ?? room(t.data.byteLength, `input ${f.inputs[k].name}`));
    const shapes = tensors.map((t) => room(8 * t.shape.length, "a shape"));
    const inputs = room(this.#tensor * tensors.length, "the inputs");
    const outputs = room(this.#tensor * f.outputs.length, "the outputs");
    const name = new TextEncoder().encode(`${f.name}\0`);
    const called = room(name.length, "a name");
    const stays = f.outputs.map((info) => (keep.has(info.name) ? allocated(this.#exports, this.#memory, this.#tensor, "an output") : 0));
    const bytes = new Uint8Array(this.#memory.buffer);
    const view = new DataView(this.#memory.buffer); // nothing is allocated below until the call
    bytes.set(name, called);
    bytes.fill(0, outputs, outputs + this.#tensor * f.outputs.length);
    tensors.forEach((t, k) => {
      if (t.data) bytes.set(new Uint8Array(t.data.buffer, t.data.byteOffset, t.data.byteLength), data[k]);
      t.shape.forEach((size, i) => view.setBigInt64(shapes[k] + 8 * i, BigInt(size), true));
      this.#describe(view, inputs + this.#tensor * k, t, data[k], shapes[k]);
    });
    f.outputs.forEach((_, k) => view.setInt32(outputs + this.#tensor * k + this.#pointer, 1, true)); // on the processor, without memory yet
    const status = this.#exports.roundel_call(called, inputs, outputs);
    if (status) stays.filter(Boolean).forEach((place) => this.#exports.roundel_free(place));
    this.#raise(status);
    return Object.fromEntries(f.outputs.map((info, k) => [info.name, stays[k] ? this.#kept(outputs + this.#tensor * k, stays[k]) : this.#taken(outputs + this.#tensor * k)]));
  }

  /** A tensor that an earlier run kept, as an input. */
  #own(info, kept) {
    const place = kept.in(this);
    if (kept.dtype !== info.dtype) throw new RoundelError(`input ${info.name} is ${info.dtype}, the tensor that was kept is ${kept.dtype}`, "TypeError");
    return { dtype: kept.dtype, shape: kept.shape, place };
  }

  #describe(view, at, tensor, data, shape) {
    const [, code, bits] = TYPES[tensor.dtype];
    const behind = at + this.#pointer; // of the elements
    this.#point(view, at, data);
    view.setInt32(behind, 1, true);
    view.setInt32(behind + 4, 0, true);
    view.setInt32(behind + 8, tensor.shape.length, true);
    view.setUint8(behind + 12, code);
    view.setUint8(behind + 13, bits);
    view.setUint16(behind + 14, 1, true);
    this.#point(view, behind + 16, shape);
    this.#point(view, behind + 16 + this.#pointer, 0);
    view.setBigUint64(at + offsetAt(this.#pointer), 0n, true);
  }

  #point(view, at, place) {
    if (this.#pointer === 8) view.setBigUint64(at, BigInt(place), true);
    else view.setUint32(at, place, true);
  }

  #pointed(view, at) {
    return this.#pointer === 8 ? Number(view.getBigUint64(at, true)) : view.getUint32(at, true);
  }

  /** What an output's descriptor says. */
  #described(at) {
    const view = new DataView(this.#memory.buffer);
    const behind = at + this.#pointer;
    const dims = this.#pointed(view, behind + 16);
    const shape = Array.from({ length: view.getInt32(behind + 8, true) }, (_, i) => Number(view.getBigInt64(dims + 8 * i, true)));
    const dtype = DTYPES.get(`${view.getUint8(behind + 12)}/${view.getUint8(behind + 13)}`);
    return { dtype, shape, place: this.#pointed(view, at) + Number(view.getBigUint64(at + offsetAt(this.#pointer), true)) };
  }

  #copied({ dtype, shape, place }) {
    const [Kind] = TYPES[dtype];
    const bytes = new Uint8Array(this.#memory.buffer, place, elements(shape) * Kind.BYTES_PER_ELEMENT);
    return new Kind(bytes.slice().buffer); // of this thread alone, also where the memory is shared
  }

  /** A copy of an output, whose memory is given back. */
  #taken(at) {
    const output = this.#described(at);
    const data = this.#copied(output);
    this.#exports.roundel_release_output(at);
    return { dtype: output.dtype, shape: output.shape, data };
  }

  /** An output that stays where it is, as long as its descriptor does, which moves to `stays`. */
  #kept(at, stays) {
    new Uint8Array(this.#memory.buffer).copyWithin(stays, at, at + this.#tensor);
    const output = this.#described(stays);
    return new KeptTensor(this, output, () => this.#copied(output), () => {
      if (!this.#exports || this.#broken) return;
      this.#exports.roundel_release_output(stays);
      this.#exports.roundel_free(stays);
    });
  }

  #usable() {
    if (!this.#exports) throw new RoundelError("the model was disposed of", "ValueError");
    if (this.#broken) throw new RoundelError(`the model broke down in an earlier run: ${this.#broken}; load it again`);
  }

  #raise(status) {
    if (status) throw new RoundelError(this.#text(this.#exports.roundel_error()), STATUS[status] ?? "RuntimeError");
  }

  #text(place) {
    const bytes = new Uint8Array(this.#memory.buffer);
    const begin = this.#pointer === 8 ? place : place >>> 0;
    return new TextDecoder().decode(bytes.slice(begin, bytes.indexOf(0, begin)));
  }
}

/** An output that stays in its model's memory until it is released, and may be given to later runs without a copy. */
export class KeptTensor {
  #model;
  #place;
  #copied;
  #release;

  constructor(model, { dtype, shape, place }, copied, release) {
    Object.assign(this, { dtype, shape });
    this.#model = model;
    this.#place = place;
    this.#copied = copied;
    this.#release = release;
  }

  /** Whether a value is such a tensor. */
  static is(value) {
    return typeof value === "object" && value !== null && #release in value;
  }

  /** A copy of its elements. */
  get data() {
    if (!KeptTensor.is(this)) throw new RoundelError("a proxy or a copy of a tensor that was kept is none: give the tensor itself", "TypeError");
    this.in(this.#model);
    return this.#copied();
  }

  /** Where it lies in a model's memory. */
  in(model) {
    if (!this.#release) throw new RoundelError("the tensor that was kept is released", "ValueError");
    if (model !== this.#model) throw new RoundelError("the tensor was kept by another model: give its data", "ValueError");
    if (!model.memoryBytes) throw new RoundelError("the model was disposed of", "ValueError");
    return this.#place;
  }

  /** Gives its memory back. */
  release() {
    this.#release?.();
    this.#release = null;
  }
}

/** Options, which are among those named, and of these types (null: what uses it looks at it) where they are given. */
function checked(options, types) {
  const given = options ?? {};
  if (typeof given !== "object") throw new RoundelError(`options are to be an object, not ${typeof given}`, "TypeError");
  const unknown = Object.keys(given).filter((name) => !(name in types));
  if (unknown.length) throw new RoundelError(`there is no option ${unknown.join(", ")}; options are ${Object.keys(types).join(", ")}`, "TypeError");
  for (const [name, type] of Object.entries(types)) {
    if (type && given[name] !== undefined && typeof given[name] !== type) {
      throw new RoundelError(`options.${name} is to be a ${type}, not ${given[name] === null ? "null" : typeof given[name]}`, "TypeError");
    }
  }
  return given;
}

// ---- inputs --------------------------------------------------------------------------------------------------------

const elements = (shape) => shape.reduce((a, b) => a * b, 1);

function inOrder(f, inputs) {
  const names = f.inputs.map((i) => i.name);
  const one = names.length === 1 && (ArrayBuffer.isView(inputs) || inputs?.data !== undefined) && !Array.isArray(inputs);
  if (one) return [inputs];
  if (Array.isArray(inputs)) {
    if (inputs.length === names.length) return inputs;
    throw new RoundelError(`${names.length} inputs are wanted (${names.join(", ")}), ${inputs.length} were given`, "ValueError");
  }
  const given = inputs ?? {};
  const missing = names.filter((n) => given[n] === undefined);
  if (missing.length) throw new RoundelError(`the input ${missing.join(", ")} was not given; the inputs are ${names.join(", ")}`, "ValueError");
  const unknown = Object.keys(given).filter((n) => !names.includes(n));
  if (unknown.length) throw new RoundelError(`the model has no input ${unknown.join(", ")}; its inputs are ${names.join(", ")}`, "ValueError");
  return names.map((n) => given[n]);
}

function asTensor(info, value) {
  const known = TYPES[info.dtype];
  if (!known) throw new RoundelError(`input ${info.name} is ${info.dtype}, which cannot be given from JavaScript`, "TypeError");
  const [Kind] = known;
  const data = ArrayBuffer.isView(value) ? value : value?.data;
  const fits = data instanceof Kind || (Kind === Uint8Array && data instanceof Uint8ClampedArray) || holdsHalves(info.dtype, data);
  if (!fits) {
    const given = data?.constructor?.name ?? (value === null ? "null" : typeof value);
    throw new RoundelError(`input ${info.name} (${info.dtype}) is to be given as ${Kind.name}, not as ${given}`, "TypeError");
  }
  if (value.dtype !== undefined && value.dtype !== info.dtype) throw new RoundelError(`input ${info.name} is ${info.dtype}, not ${value.dtype}`, "TypeError");
  checkAttached(data, `the elements of input ${info.name}`);
  const shape = value.shape ?? shapeOf(info, data.length);
  if (!Array.isArray(shape) || !shape.every((n) => Number.isSafeInteger(n) && n >= 0)) {
    throw new RoundelError(`the shape of input ${info.name} is to be an array of sizes`, "ValueError");
  }
  if (elements(shape) !== data.length) {
    throw new RoundelError(`input ${info.name} has ${data.length} elements, and its shape [${shape}] wants ${elements(shape)}`, "ValueError");
  }
  return { dtype: info.dtype, shape, data };
}

function holdsHalves(dtype, data) {
  return dtype === "float16" && typeof Float16Array !== "undefined" && data instanceof Float16Array;
}

/** The sizes of an input that has so many elements, where at most one of them is not a number. */
function shapeOf(info, length) {
  if (info.scalar) return [];
  const open = info.shape.filter((d) => typeof d !== "number");
  const rest = elements(info.shape.filter((d) => typeof d === "number"));
  if (open.length === 0 && rest !== length) {
    throw new RoundelError(`input ${info.name} has ${length} elements, [${info.shape}] wants ${rest}`, "ValueError");
  }
  if (rest !== 0 && length % rest) {
    throw new RoundelError(`input ${info.name} has ${length} elements, and [${info.shape}] wants a multiple of ${rest}`, "ValueError");
  }
  if (open.length > 1 || (open.length === 1 && rest === 0)) {
    throw new RoundelError(`give input ${info.name}, of shape [${info.shape}], as { data, shape }`, "ValueError");
  }
  return info.shape.map((d) => (typeof d === "number" ? d : length / rest));
}

// ---- files ---------------------------------------------------------------------------------------------------------

const isBytes = (source) => source instanceof ArrayBuffer || ArrayBuffer.isView(source);

function asBytes(source) {
  checkAttached(source, "the bytes that were given");
  return source instanceof ArrayBuffer ? new Uint8Array(source) : new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
}

/** A buffer that was given to another thread has no bytes, and no array can be made of it. */
function checkAttached(data, what) {
  try {
    new Uint8Array(data.buffer ?? data);
  } catch (error) {
    throw new RoundelError(`${what} are no more here: their buffer was given to another thread`, "ValueError", { cause: error });
  }
}

function beside(source, name) {
  if (isBytes(source)) throw new RoundelError(`the model's weights are in ${name}: give them as options.weights`, "ValueError");
  return new URL(encodeURIComponent(name), absolute(source));
}

function absolute(source) {
  if (typeof source !== "string" && typeof source?.href !== "string") {
    throw new RoundelError(`a file is to be given by its address (a text or a URL) or as bytes, not as ${source === null ? "null" : typeof source}`, "TypeError");
  }
  try {
    return new URL(source, globalThis.location?.href ?? import.meta.url);
  } catch (error) {
    throw new RoundelError(`${String(source)} is not the address of a file`, "ValueError", { cause: error });
  }
}

class Progress {
  constructor(told) {
    this.told = told;
    this.loaded = 0;
    this.total = 0;
  }

  expect(nbytes) {
    this.total += nbytes;
  }

  add(nbytes) {
    this.loaded += nbytes;
    this.told?.({ loaded: this.loaded, total: Math.max(this.total, this.loaded) });
  }
}

/** A file: how many bytes it has, where that is told, and its parts, one after another. */
async function parted(url, options) {
  if (url.protocol === "file:" && inNode) {
    const [{ stat }, { createReadStream }] = await Promise.all([import("node:fs/promises"), import("node:fs")]);
    const failed = (error) => new RoundelError(`${url.pathname} cannot be read: ${error.message}`, "RuntimeError", { cause: error });
    const { size } = await stat(url).catch((error) => Promise.reject(failed(error)));
    const parts = async function* () {
      try {
        yield* createReadStream(url, { highWaterMark: BLOCK, signal: options.signal });
      } catch (error) {
        throw error.name === "AbortError" ? error : failed(error);
      }
    };
    return { size, parts: parts() };
  }
  let response;
  try {
    response = await fetch(url, { signal: options.signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RoundelError(`${url} cannot be fetched: ${error.message}`, "RuntimeError", { cause: error });
  }
  if (!response.ok) throw new RoundelError(`${url} cannot be fetched: ${response.status} ${response.statusText}`);
  return partsOf(response, url);
}

function partsOf(response, url) {
  const parts = async function* () {
    const reader = response.body.getReader(); // not all browsers give bodies as sequences
    for (;;) {
      const { done, value } = await reader.read().catch((error) => {
        if (error.name === "AbortError") throw error;
        throw new RoundelError(`${url} cannot be fetched whole: ${error.message}`, "RuntimeError", { cause: error });
      });
      if (done) return;
      yield value;
    }
  };
  return { size: Number(response.headers.get("content-length") ?? 0), parts: parts() };
}

async function read(source, options, progress) {
  const { size, parts } = await parted(absolute(source), options);
  progress.expect(size);
  const all = [];
  for await (const part of parts) {
    all.push(part);
    progress.add(part.length);
  }
  const bytes = new Uint8Array(all.reduce((sum, part) => sum + part.length, 0));
  all.reduce((at, part) => (bytes.set(part, at), at + part.length), 0);
  return bytes;
}

// ---- weights -------------------------------------------------------------------------------------------------------

/** A weights' file: from the browser's cache, where it is kept by address and digest, or from where it is. `keep(file)` puts into the cache what was there
 * not, and drops what is there of the same address otherwise. */
async function opened(source, told, options) {
  if (isBytes(source)) return { size: source.byteLength, parts: [asBytes(source)] };
  const url = absolute(source);
  const store = (options.cache ?? true) && globalThis.caches && url.protocol.startsWith("http") ? await caches.open(CACHE).catch(() => null) : null;
  if (!store) return parted(url, options);
  const key = `${url.href}?roundel=${told.digest}`;
  const found = await store.match(key);
  if (found) return partsOf(found, url);
  const keep = async (file) => {
    for (const old of await store.keys()) if (old.url.startsWith(`${url.href}?roundel=`)) await store.delete(old);
    const headers = { "content-length": String(told.nbytes) };
    await store.put(key, new Response(new ReadableStream(file), { headers })).catch(() => {}); // no room: fetched again
  };
  return { ...(await parted(url, options)), keep };
}

/** Reads a model's weights into its memory, where they stay, and compares them with what the module says of them. */
async function take({ size, parts, keep }, exports, memory, told, check, progress) {
  const hint = "write the module and its weights again, and copy both";
  const wrong = (how) => new RoundelError(`${told.file} ${how}; ${hint}`, "ValueError");
  if (size && size !== told.nbytes) throw wrong(`has ${size} bytes, the module wants ${told.nbytes}`);
  const place = allocated(exports, memory, told.nbytes, "the weights");
  const bytes = new Uint8Array(memory.buffer, place, told.nbytes);
  progress.expect(told.nbytes);
  let at = 0;
  for await (const part of parts) {
    if (at + part.length <= told.nbytes) bytes.set(part, at);
    at += part.length;
    progress.add(part.length);
  }
  if (at !== told.nbytes) throw wrong(`has ${at} bytes, the module wants ${told.nbytes}`);
  const end = told.nbytes - DIGEST;
  if (new TextDecoder().decode(bytes.slice(end)) !== told.digest) throw wrong("belongs to another module");
  if (check && (await isDamaged(bytes.subarray(0, end), told.digest))) throw wrong("is damaged");
  exports.roundel_give_weights(place, told.nbytes);
  await keep?.(blocksOf(bytes));
}

/** The source of a stream of bytes that lie in a model's memory. */
function blocksOf(bytes) {
  let at = 0;
  return {
    pull(stream) {
      if (at < bytes.length) stream.enqueue(bytes.slice(at, at + BLOCK));
      else stream.close();
      at += BLOCK;
    },
  };
}

/** Whether bytes have another digest than was written with them; where the engine computes none, it is not told. */
async function isDamaged(content, written) {
  const subtle = globalThis.crypto?.subtle; // which pages have that came by https, or from this machine
  return Boolean(subtle) && (await digest(content, subtle)) !== written;
}

/** SHA-256 of the SHA-256 of each block, in hexadecimal digits. */
async function digest(content, subtle) {
  const blocks = Math.ceil(content.byteLength / BLOCK);
  const hashes = new Uint8Array(32 * blocks);
  const hash = async (k) => hashes.set(new Uint8Array(await subtle.digest("SHA-256", content.slice(BLOCK * k, BLOCK * (k + 1)))), 32 * k); // of no shared memory
  for (let k = 0; k < blocks; k += TOGETHER) await Promise.all(Array.from({ length: Math.min(TOGETHER, blocks - k) }, (_, i) => hash(k + i)));
  const all = new Uint8Array(await subtle.digest("SHA-256", hashes));
  return Array.from(all, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// ---- modules -------------------------------------------------------------------------------------------------------

// Functions of one instruction: engines that have it accept them.
const SIMD = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11);

const RELAXED = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 0, 253, 15, 65, 0, 253, 15, 253,
  128, 2, 11);

const THREADS = "atomics";
const WIDE = "memory64";
const PROBES = { "relaxed-simd": () => WebAssembly.validate(RELAXED), [THREADS]: canShare, [WIDE]: hasWideMemory };
const SINCE = {
  [THREADS]: " (threads need a page that is cross-origin isolated, and a worker that loads the model)",
  [WIDE]: " (memory of more than 4 GiB; Chrome has it since 133, Firefox since 134, node since 24)",
};

/** The first module that this engine can run: where it is from, its bytes, and what it tells of itself. */
async function chosen(sources, options, progress) {
  if (!globalThis.WebAssembly || !WebAssembly.validate(SIMD)) {
    throw new RoundelError("this browser has no WebAssembly with vectors (SIMD128), which the model needs; take a newer one", "MachineError");
  }
  let lacking = [];
  for (const from of sources) {
    const bytes = isBytes(from) ? asBytes(from) : await read(from, options, progress);
    const told = toldBy(bytes);
    if (options.check ?? true) await checkWhole(bytes, from);
    lacking = (told.needs ?? []).filter((name) => !(name in PROBES && PROBES[name]()));
    if (!lacking.length) return { from, bytes, told };
  }
  if (!sources.length) throw new RoundelError("no module was given", "ValueError");
  const why = lacking.map((name) => SINCE[name] ?? "").join("");
  throw new RoundelError(`this engine has no ${lacking.join(", ")}, which the module needs${why}; compile it for wasm32 as well, and give load both`,
    "MachineError");
}

async function compiled(bytes) {
  try {
    return await WebAssembly.compile(bytes);
  } catch (error) {
    throw new RoundelError(`the module is damaged, or no WebAssembly: ${error.message}`, "ValueError", { cause: error });
  }
}

/** Throws unless a module ends in the digest of all bytes before it, as it was written: whatever byte was changed. */
async function checkWhole(bytes, from) {
  const file = isBytes(from) ? "" : absolute(from).pathname.split("/").pop();
  const name = file.endsWith(".wasm") ? file : "the module";
  const hint = "write the module again, and copy it";
  const end = bytes.length - DIGEST - 2; // of what the digest is of
  const [, written] = /^([0-9a-f]{64})"}$/.exec(new TextDecoder().decode(bytes.slice(Math.max(end, 0)))) ?? [];
  if (!written) throw new RoundelError(`${name} does not end in its digest: it was damaged or changed, or another version wrote it; ${hint}`, "ValueError");
  if (await isDamaged(bytes.subarray(0, end), written)) throw new RoundelError(`${name} is damaged; ${hint}`, "ValueError");
}

/** What the section `roundel` says. It is read before the module is compiled, which engines refuse that lack one of its instructions. */
function toldBy(bytes) {
  const damaged = (how, cause) => new RoundelError(`the module is damaged, or no WebAssembly: ${how}`, "ValueError", { cause });
  const magic = [0, 97, 115, 109, 1, 0, 0, 0];
  if (magic.some((byte, k) => bytes[k] !== byte)) throw damaged("it does not begin as one");
  let at = magic.length;
  const number = () => {
    let value = 0;
    for (let scale = 1; at < bytes.length; scale *= 128) {
      value += (bytes[at] & 127) * scale;
      if (bytes[at++] < 128) return value;
    }
    throw damaged("it ends within a section");
  };
  while (at < bytes.length) {
    const kind = bytes[at++];
    const end = number() + at;
    if (end > bytes.length) throw damaged("it ends within a section");
    if (kind === 0) {
      const name = number();
      const text = new TextDecoder();
      if (text.decode(bytes.subarray(at, at + name)) === "roundel") {
        try {
          return JSON.parse(text.decode(bytes.subarray(at + name, end)));
        } catch (error) {
          throw damaged("its section roundel is no JSON", error);
        }
      }
    }
    at = end;
  }
  throw new RoundelError("the module is none that Roundel compiled: it has no section roundel", "ValueError");
}

/** Whether memories may have addresses of 64 bits. */
function hasWideMemory() {
  try {
    return new WebAssembly.Memory({ address: "i64", initial: 0n, maximum: 1n }) instanceof WebAssembly.Memory;
  } catch {
    return false; // it takes no BigInt for a size
  }
}

function newMemory({ pages, bits }, maximumBytes, shared) {
  const isWide = bits === 64;
  const most = isWide ? 1 << 18 : shared ? 65535 : 65536; // what modules declare, or engines give
  let maximum = Math.min(most, maximumBytes === undefined ? most : Math.floor(maximumBytes / PAGE));
  if (!(pages <= maximum)) {
    throw new RoundelError(`the model needs ${(pages * PAGE).toLocaleString("en")} bytes of memory, more than the ${maximumBytes} allowed`, "MemoryError");
  }
  for (;;) {
    try {
      if (isWide) return new WebAssembly.Memory({ address: "i64", initial: BigInt(pages), maximum: BigInt(maximum), shared });
      return new WebAssembly.Memory({ initial: pages, maximum, shared });
    } catch (error) {
      maximum = Math.floor(maximum / 2); // engines reserve addresses for all that shared memory may grow to, and phones have fewer
      if (maximum < pages) {
        throw new RoundelError(`no memory for the model: ${(pages * PAGE).toLocaleString("en")} bytes`, "MemoryError", { cause: error });
      }
    }
  }
}

function allocated(exports, memory, nbytes, what) {
  const place = exports.roundel_allocate(nbytes);
  if (place) return place < 0 ? place + 2 ** 32 : place;
  const how = memory.buffer.byteLength + nbytes > 2 ** 32 ? "; modules for wasm64 may take more than 4 GiB" : "";
  throw new RoundelError(`no memory for ${what}: ${nbytes.toLocaleString("en")} bytes${how}`, "MemoryError");
}

/** The exports of a module with pointers of 64 bits, which are BigInts there, as functions of numbers. */
function inNumbers(exports) {
  const called = (f) => (...given) => {
    const result = f(...given.map(BigInt));
    return typeof result === "bigint" ? Number(result) : result;
  };
  return Object.fromEntries(Object.entries(exports).map(([name, f]) => [name, typeof f === "function" ? called(f) : f]));
}

/** Where in a DLTensor the offset of its elements is, by the bytes of a pointer. */
const offsetAt = (pointer) => (pointer === 8 ? 40 : 32);

// ---- threads -------------------------------------------------------------------------------------------------------

const inNode = Boolean(globalThis.process?.versions?.node);
const now = () => performance.now();

/** Whether this engine, and this page, let threads share memory, and this thread wait for others, which that of a window may not. */
function canShare() {
  return typeof SharedArrayBuffer !== "undefined" && globalThis.crossOriginIsolated !== false && typeof document === "undefined";
}

function usualThreads() {
  return Math.min(8, Math.ceil((globalThis.navigator?.hardwareConcurrency ?? 2) / 2));
}

/** Starts all threads but this one. They come before the model is opened, since none can be started while it runs. */
async function startThreads(exports, module, memory, count) {
  if (!Number.isInteger(count) || count < 1 || count > 256) throw new RoundelError(`threads are to be a whole number from 1 to 256, not ${count}`, "ValueError");
  const Thread = inNode ? (await import("node:worker_threads")).Worker : Worker;
  const threads = [];
  const started = Array.from({ length: count - 1 }, () => {
    const place = exports.roundel_new_thread(); // with pointers of 64 bits a BigInt, as the thread gives it back
    if (!place) throw new RoundelError(`no memory for ${count} threads`, "MemoryError");
    const thread = new Thread(new URL("roundel-thread.mjs", import.meta.url), { type: "module" });
    threads.push(thread);
    thread.postMessage({ module, memory, place });
    return isReady(thread);
  });
  try {
    await Promise.all(started);
  } catch (error) {
    threads.forEach((thread) => thread.terminate());
    throw new RoundelError(`a thread cannot be started: ${error.message}`, "MachineError", { cause: error });
  }
  return threads;
}

function isReady(thread) {
  return new Promise((resolve, reject) => {
    const failed = (event) => reject(new Error(event.message || "roundel-thread.mjs is to lie beside roundel.mjs"));
    if (!inNode) {
      thread.onmessage = resolve;
      thread.onerror = failed;
      return;
    }
    thread.once("error", failed);
    thread.once("message", () => {
      thread.unref(); // the process need not wait for it
      resolve();
    });
  });
}
