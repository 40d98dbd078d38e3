// SPDX-License-Identifier: Apache-2.0
// The best classes of a row of scores.

import { bar, make, percent, table } from "./dom.mjs";

const MOST = 5; // classes that are shown

export const named = (labels, k) => labels[k] ?? `class ${k}`;

/** Numbers of the classes with the largest shares, the best first. */
export const best = (shares) => shares.map((share, k) => [share, k]).sort((a, b) => b[0] - a[0]).slice(0, MOST).map(([, k]) => k);

/** A heading and a table of the best classes. */
export function classesTable(shares, labels, title = "Classes") {
  const rows = best(shares).map((k) => [named(labels, k), percent(shares[k]), bar(shares[k], named(labels, k))]);
  return [make("h2", {}, title), table(`The best ${rows.length} of ${shares.length}`, ["Class", "#Share", "Of 100 %"], rows)];
}
