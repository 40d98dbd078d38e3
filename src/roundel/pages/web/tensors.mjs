// SPDX-License-Identifier: Apache-2.0
// Tensors ({ dtype, shape, data }) and scores.

export const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array, bool: Uint8Array, float16: Uint16Array, bfloat16: Uint16Array,
};

export const elements = (shape) => shape.reduce((a, b) => a * b, 1);

export const zeros = (dtype, shape) => ({ shape, data: new ARRAYS[dtype](elements(shape)) });

/** Numbers as a tensor of an input's type; `shape` by default is that of one row. */
export function tensor(info, numbers, shape) {
  const Kind = ARRAYS[info.dtype];
  const isLarge = Kind === BigInt64Array || Kind === BigUint64Array;
  const data = isLarge ? Kind.from(numbers, (n) => BigInt(n)) : Kind.from(numbers);
  return { shape: shape ?? info.shape.map((_, k) => (k === info.shape.length - 1 ? data.length : 1)), data };
}

/** Where the largest of the numbers from `begin` to `end` is. */
export function largest(data, begin = 0, end = data.length) {
  let best = begin;
  for (let k = begin + 1; k < end; k += 1) if (data[k] > data[best]) best = k;
  return best;
}

export function softmax(scores) {
  const most = scores[largest(scores)];
  const powers = Array.from(scores, (s) => Math.exp(s - most));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / total);
}

export const sigmoid = (score) => 1 / (1 + Math.exp(-score));

const areShares = (scores) => scores.every((s) => s >= 0 && s <= 1);

/** Scores as probabilities: as they are where they are such, else by softmax; one alone by the logistic function. */
export function probabilities(scores) {
  if (areShares(scores) && (scores.length === 1 || Math.abs(scores.reduce((a, b) => a + b, 0) - 1) < 1e-2)) return [...scores];
  return scores.length === 1 ? [sigmoid(scores[0])] : softmax(scores);
}

/** Scores that are independent of each other, from 0 to 1: as they are where they are such, else by the logistic function. */
export const likelihoods = (scores) => (areShares(scores) ? scores : scores.map(sigmoid));
