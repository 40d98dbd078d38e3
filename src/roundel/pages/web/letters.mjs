// SPDX-License-Identifier: Apache-2.0

import { largest } from "./tensors.mjs";

/** The text that scores of letters (1, steps, letters) tell, with the mean score of those read: in each step the best one, where the same in neighbouring steps
 * is one letter and the first of all is none (the greedy reading of connectionist temporal classification, Graves et al. 2006). */
export function readLetters({ shape, data }, letters) {
  const [steps, count] = shape.slice(-2);
  let [text, last, sum, read] = ["", 0, 0, 0];
  for (let t = 0; t < steps; t += 1) {
    const at = largest(data, t * count, (t + 1) * count);
    const best = at - t * count;
    if (best !== last && best !== 0) {
      text += letters[best] ?? "";
      sum += data[at];
      read += 1;
    }
    last = best;
  }
  return { text, score: read ? sum / read : 0 };
}
