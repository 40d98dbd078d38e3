// SPDX-License-Identifier: Apache-2.0
/** Types of roundel.mjs, which loads and runs models that Roundel compiled to WebAssembly. */

export type DType =
  | "float32" | "float64" | "float16" | "bfloat16" | "int8" | "int16" | "int32" | "int64" | "uint8" | "uint16" | "uint32" | "uint64" | "bool";

/** The array that holds a tensor of that type: numbers of 16 bits and booleans are held as they lie in memory. */
export type Data =
  | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array
  | Uint8Array | Uint8ClampedArray | Uint16Array | Uint32Array | BigUint64Array;

export interface Tensor { dtype: DType; shape: number[]; data: Data; }

/** An output that a run kept in its model's memory until it is released. Later runs take it without a copy; `data` is a copy. */
export class KeptTensor {
  private constructor();
  readonly dtype: DType;
  readonly shape: number[];
  readonly data: Data;
  /** Gives its memory back. */
  release(): void;
}

/** An input: the array alone where the model's sizes or its length tell the shape. */
export type Input = Data | { data: Data; shape?: number[] } | KeptTensor;

/** A dimension is a number, or an expression in the model's symbols such as "batch". */
export interface TensorInfo { name: string; dtype: string; shape: (number | string)[]; scalar?: boolean; }

export interface Progress { loaded: number; total: number; }

export interface LoadOptions {
  /** Address or bytes of the weights' file. By default it is looked for beside the module. */
  weights?: string | URL | ArrayBuffer | ArrayBufferView;
  onProgress?: (progress: Progress) => void;
  /** Keep the weights in the browser's cache. Default: true. */
  cache?: boolean;
  /** Compare the digests of the module and of its weights. Default: true. */
  check?: boolean;
  signal?: AbortSignal;
  /** The most memory that the model may take. */
  maximumBytes?: number;
  /** How many threads a module with threads has. Default: half the processors that the engine tells of, at most 8. */
  threads?: number;
}

export type ErrorCode =
  | "RuntimeError" | "ValueError" | "TypeError" | "MemoryError" | "CallbackError" | "MachineError" | "Interrupted";

export class RoundelError extends Error { readonly code: ErrorCode; }

export class Model {
  private constructor();
  readonly inputs: TensorInfo[];
  readonly outputs: TensorInfo[];
  readonly functions: string[];
  /** What the compiler noted: version, target, options, functions. */
  readonly metadata: Record<string, unknown>;
  /** Bytes of memory that the model has taken. */
  readonly memoryBytes: number;
  /** How many threads compute a run. */
  readonly threads: number;
  /** Outputs by name; those that `keep` names stay in the model's memory. Throws RoundelError. */
  run(inputs: Record<string, Input> | Input[] | Input, options?: { function?: string; keep?: string[] }): Record<string, Tensor | KeptTensor>;
  /** Gives the memory back and ends the threads. */
  dispose(): void;
}

/** The address of a module, or its bytes. */
export type Source = string | URL | ArrayBuffer | ArrayBufferView;

/** Loads a model: a module, or the first of several that this engine can run. Throws RoundelError. */
export function load(source: Source | Source[], options?: LoadOptions): Promise<Model>;
