// SPDX-License-Identifier: Apache-2.0
// Boxes from the outputs of a detector: { x, y, w, h, score, label } in pixels of the input, the likeliest first.

import { likelihoods, probabilities } from "./tensors.mjs";

const MOST = 300; // boxes that are looked at
const OVERLAP = 0.5; // of two boxes of one class, as their intersection over their union, from which on they are the same
const INSIDE = 0.3; // of a pixel of a map
const GROWN = 1.6; // how much larger text is than what a map of it marks (Liao et al. 2020, the area over the length of the border)

/** All boxes that score at least `least`. `size`: { width, height } of the input; `labels`: how many classes have names. */
export function boxesOf(outputs, told, size, least, labels = 0) {
  const found = { rows: fromRows, finished: fromFinished, lists: fromLists, map: fromMap }[told.form](outputs, told, size, least, labels);
  found.sort((a, b) => b.score - a.score);
  return told.form === "map" ? found : withoutOverlaps(found.slice(0, MOST));
}

function box([a, b, c, d], order, size) {
  const [x, y, w, h] = order === "centre" ? [a - c / 2, b - d / 2, c, d] : order === "corners" ? [a, b, c - a, d - b] : [b, a, d - b, c - a];
  const isShare = Math.max(Math.abs(a), Math.abs(b), Math.abs(c), Math.abs(d)) <= 2; // of the sides
  return isShare ? { x: x * size.width, y: y * size.height, w: w * size.width, h: h * size.height } : { x, y, w, h };
}

function fromRows([{ shape, data }], { columns, objectness, order }, size, least) {
  const [count, width] = columns ? [shape[2], shape[1]] : [shape[1], shape[2]];
  const at = columns ? (row, k) => data[k * count + row] : (row, k) => data[row * width + k];
  const first = objectness ? 5 : 4;
  const found = [];
  for (let row = 0; row < count; row += 1) {
    let label = 0;
    for (let k = first + 1; k < width; k += 1) if (at(row, k) > at(row, first + label)) label = k - first;
    const score = (objectness ? at(row, 4) : 1) * (width > first ? at(row, first + label) : 1);
    if (score >= least) found.push({ ...box([0, 1, 2, 3].map((k) => at(row, k)), order, size), score, label });
  }
  return found;
}

function fromFinished([{ shape, data }], { order }, size, least) {
  const found = [];
  for (let at = 0; at < data.length; at += shape[2]) {
    if (data[at + 4] >= least) found.push({ ...box(data.subarray(at, at + 4), order, size), score: data[at + 4], label: Math.round(data[at + 5]) });
  }
  return found;
}

function fromLists(outputs, { places: [boxes, scores, classes], order }, size, least, labels) {
  const { data } = outputs[boxes];
  const count = data.length / 4;
  const width = outputs[scores].data.length / (count || 1);
  const found = [];
  for (let k = 0; k < count; k += 1) {
    let [score, label] = [outputs[scores].data[k], classes === null ? 0 : Number(outputs[classes].data[k])];
    if (width > 1) {
      const row = Array.from(outputs[scores].data.subarray(k * width, (k + 1) * width));
      const shares = labels === width - 1 ? probabilities(row).slice(0, -1) : likelihoods(row); // the last one of all is none
      label = shares.indexOf(Math.max(...shares));
      score = shares[label];
    }
    if (score >= least) found.push({ ...box(data.subarray(4 * k, 4 * k + 4), order, size), score, label });
  }
  return found;
}

/** Boxes around the parts of a map that hang together, as large as the text that they are the middle of. */
function fromMap([{ shape, data }], told, size, least) {
  const [height, width] = shape.slice(-2);
  const seen = new Uint8Array(data.length);
  const found = [];
  for (let begin = 0; begin < data.length; begin += 1) {
    if (seen[begin] || data[begin] < INSIDE) continue;
    const waiting = [begin];
    seen[begin] = 1;
    let [left, right, top, bottom, sum, count] = [width, 0, height, 0, 0, 0];
    while (waiting.length) {
      const at = waiting.pop();
      const x = at % width;
      const y = (at - x) / width;
      [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
      sum += data[at];
      count += 1;
      for (const next of [x > 0 ? at - 1 : -1, x < width - 1 ? at + 1 : -1, at - width, at + width]) {
        if (next < 0 || next >= data.length || seen[next] || data[next] < INSIDE) continue;
        seen[next] = 1;
        waiting.push(next);
      }
    }
    const [w, h, score] = [right - left + 1, bottom - top + 1, sum / count];
    if (Math.min(w, h) < 3 || score < least) continue;
    const by = (w * h * (GROWN - 1)) / (w + h); // half of area over border, times what is missing
    const [x0, y0] = [Math.max(0, left - by), Math.max(0, top - by)];
    const [x1, y1] = [Math.min(width, right + 1 + by), Math.min(height, bottom + 1 + by)];
    const [across, down] = [size.width / width, size.height / height];
    found.push({ x: x0 * across, y: y0 * down, w: (x1 - x0) * across, h: (y1 - y0) * down, score, label: 0 });
  }
  return found;
}

function withoutOverlaps(boxes) {
  const kept = [];
  for (const one of boxes) if (!kept.some((other) => other.label === one.label && overlap(one, other) > OVERLAP)) kept.push(one);
  return kept;
}

function overlap(a, b) {
  const w = Math.min(a.x + a.w, b.x + b.w) - Math.max(a.x, b.x);
  const h = Math.min(a.y + a.h, b.y + b.h) - Math.max(a.y, b.y);
  if (w <= 0 || h <= 0) return 0;
  return (w * h) / (a.w * a.h + b.w * b.h - w * h);
}
