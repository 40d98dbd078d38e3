// SPDX-License-Identifier: Apache-2.0
// Tensors ({ dtype, shape, data }) and scores.

export const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array, bool: Uint8Array, float16: Uint16Array, bfloat16: Uint16Array,
};

export const elements = (shape) => shape.reduce((a, b) => a * b, 1);

export const zeros = (dtype, shape) => ({ shape, data: new ARRAYS[dtype](elements(shape)) });

const HALVES = { float16: { fraction: 10, bias: 15 }, bfloat16: { fraction: 7, bias: 127 } }; // numbers of 16 bits, which lie in their arrays as bits

/** The bits of the nearest number of a type of HALVES, of two as near the even one (IEEE 754, section 4.3.1). */
export function halfBits(dtype, value) {
  const { fraction, bias } = HALVES[dtype];
  const infinite = (2 * bias + 1) << fraction;
  if (Number.isNaN(value)) return infinite + (1 << (fraction - 1));
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size === Infinity) return sign + infinite;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, size);
  const exponent = Math.max((view.getUint16(0) >> 4) - 1023, 1 - bias); // the least one is that of subnormal numbers too
  const units = size / 2 ** (exponent - fraction);
  const below = Math.floor(units);
  const up = units - below > 0.5 || (units - below === 0.5 && below % 2 === 1);
  return sign + Math.min(infinite, ((exponent + bias - 1) << fraction) + below + Number(up)); // the leading bit, or a carry, adds to the exponent
}

/** The number that such bits stand for. */
export function halfNumber(dtype, bits) {
  const { fraction, bias } = HALVES[dtype];
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits & 0x7fff) >> fraction;
  const rest = (bits & ((1 << fraction) - 1)) / 2 ** fraction;
  if (exponent === 2 * bias + 1) return rest ? NaN : sign * Infinity;
  return sign * 2 ** (Math.max(exponent, 1) - bias) * (exponent ? 1 + rest : rest);
}

/** A function from a number to an element of a type's array. */
export function elementOf(dtype) {
  if (dtype in HALVES) return (n) => halfBits(dtype, Number(n));
  return ARRAYS[dtype].name.startsWith("Big") ? BigInt : Number;
}

/** A tensor whose data are numbers, also where they are bits in memory. */
export function readable(output) {
  const { dtype, data } = output;
  return dtype in HALVES ? { ...output, data: Float32Array.from(data, (bits) => halfNumber(dtype, bits)) } : output;
}

/** Numbers as a tensor of an input's type; `shape` by default is that of one row. */
export function tensor(info, numbers, shape) {
  const data = ARRAYS[info.dtype].from(numbers, elementOf(info.dtype));
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
