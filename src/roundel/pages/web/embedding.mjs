// SPDX-License-Identifier: Apache-2.0
// Which of some texts are nearest in meaning to another: the cosines of their embeddings.

import { bar, make, table } from "./dom.mjs";
import { loadTokenizer, textInputs } from "./tokenizer.mjs";

const SAMPLE = ["A kitten is resting on a rug.", "The stock market fell sharply today.", "He repaired the bicycle in the garage.", "It rained all night in the mountains.",
  "Shares dropped across all major exchanges."];

export default function form({ site, run, say, fail, note, give, results }) {
  const loading = loadTokenizer();
  loading.catch(() => {}); // told when it is used
  const known = new Map(); // text -> embedding
  note("Tokens");
  const query = make("input", { id: "query", type: "text", value: "A cat sits on the mat.", className: "whole" });
  const texts = make("textarea", { id: "texts", rows: 6, value: SAMPLE.join("\n") });
  const asked = make("form", {}, make("label", { htmlFor: "query" }, "Search for"), query, make("label", { htmlFor: "texts" }, "In these texts, one a line"), texts,
    make("button", { type: "submit", className: "first" }, "Search"));

  const embedded = async (text) => {
    if (known.has(text)) return known.get(text);
    const ids = (await loading).encode(text);
    note("Tokens", String(ids.length));
    const done = await run(textInputs(site, ids), { quiet: true });
    if (done) known.set(text, unit(pooled(done.outputs[0], site.text.each ? Math.min(ids.length, site.text.length || ids.length) : 1)));
    return known.get(text);
  };
  asked.addEventListener("submit", async (event) => {
    event.preventDefault();
    const lines = [...new Set(texts.value.split("\n").map((line) => line.trim()).filter(Boolean))];
    if (!lines.length || !query.value.trim()) return fail(new Error("there is no text"));
    try {
      say("Running ...");
      const wanted = await embedded(query.value.trim());
      const found = [];
      for (const line of lines) found.push([line, cosine(wanted, await embedded(line))]);
      found.sort((a, b) => b[1] - a[1]);
      const rows = found.map(([line, near]) => [line, near.toFixed(2), bar(Math.max(0, near), line)]);
      results.replaceChildren(make("h2", {}, "Nearest first"), table(`${rows.length} texts, by the cosine of ${wanted.length} numbers`, ["Text", "#Cosine", "Of 100 %"], rows));
      say("Done.");
    } catch (error) {
      fail(error);
    }
    return undefined;
  });
  give.append(make("h2", {}, "Search"), asked);
}

/** The mean of the first `count` rows of a result, as long as its last dimension. */
export function pooled({ shape, data }, count) {
  const width = shape.at(-1);
  const mean = new Float32Array(width);
  for (let k = 0; k < count * width; k += 1) mean[k % width] += data[k] / count;
  return mean;
}

const unit = (vector) => {
  const length = Math.hypot(...vector) || 1;
  return vector.map((v) => v / length);
};

const cosine = (a, b) => a.reduce((sum, v, k) => sum + v * b[k], 0);
