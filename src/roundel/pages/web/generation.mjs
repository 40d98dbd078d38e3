// SPDX-License-Identifier: Apache-2.0
// A prompt that the model goes on with, token by token. Keys and values of earlier tokens stay in the worker, where the model gives them; else each run begins anew.

import { make, button } from "./dom.mjs";
import { largest, softmax } from "./tensors.mjs";
import { loadTokenizer, textInputs } from "./tokenizer.mjs";

const LIKELIEST = 40; // tokens that are drawn from

export default function form({ site, run, say, fail, note, give, results }) {
  const loading = loadTokenizer();
  loading.catch(() => {}); // told when it is used
  const carries = site.states.length > 0;
  note("First token");
  note("Tokens/s");
  const prompt = make("textarea", { id: "prompt", rows: 4, value: "The capital of France is" });
  const most = make("input", { type: "number", id: "most", min: 1, max: 4096, value: 64 });
  const heat = make("input", { type: "number", id: "heat", min: 0, max: 2, step: 0.1, value: 0 });
  const start = make("button", { type: "submit", className: "first" }, "Generate");
  const halt = button("Stop", () => (going = null), { disabled: true });
  const asked = make("form", {}, make("label", { htmlFor: "prompt" }, "Prompt"), prompt,
    make("div", { className: "row" }, make("label", { htmlFor: "most" }, "Tokens at most"), most, make("label", { htmlFor: "heat" }, "Temperature (0: the likeliest)"), heat),
    make("div", { className: "row" }, start, halt));
  let going = null; // what stops when another one begins

  /** Scores of the token after these; `past` of all came in earlier runs. */
  const scored = async (ids, past) => {
    if (!carries) {
      const seen = site.text.length ? ids.slice(-site.text.length) : ids;
      return lastRow(await run(textInputs(site, seen), { quiet: true }), seen.length);
    }
    const fresh = ids.slice(past);
    const pieces = site.text.length ? Array.from({ length: Math.ceil(fresh.length / site.text.length) }, (_, k) => fresh.slice(k * site.text.length, (k + 1) * site.text.length)) : [fresh];
    let scores = null;
    let before = past;
    for (const piece of pieces) {
      scores = lastRow(await run(textInputs(site, piece, before), { restart: before === 0, quiet: true }), piece.length);
      before += piece.length;
      if (!scores) return null;
    }
    return scores;
  };
  const generate = async (mine) => {
    const { encode, decode, ends } = await loading;
    const ids = encode(site.template.replace("{prompt}", () => prompt.value));
    if (!ids.length) throw new Error("there is no prompt");
    const given = ids.length;
    const before = decode(ids);
    const behind = (whole) => (whole.startsWith(before) ? whole.slice(before.length) : decode(ids.slice(given))); // some put a space between words
    const written = make("p", { className: "written" });
    const shown = site.template === "{prompt}" ? [make("span", { className: "prompt" }, prompt.value)] : [];
    const text = document.createTextNode("");
    written.append(...shown, text);
    results.replaceChildren(make("h2", {}, "Text"), written);
    results.setAttribute("aria-busy", "true"); // read aloud when it is whole
    say("Reading the prompt ...");
    const begun = performance.now();
    let first = 0;
    let past = 0;
    while (going === mine && ids.length - given < Number(most.value)) {
      const scores = await scored(ids, past);
      if (!scores) return;
      past = ids.length;
      const next = chosen(scores, Number(heat.value));
      if (ends.has(next)) break;
      ids.push(next);
      if (!first) {
        first = performance.now();
        note("First token", `${Math.round(first - begun)} ms`);
      } else note("Tokens/s", ((1000 * (ids.length - given - 1)) / (performance.now() - first)).toFixed(1));
      text.data = behind(decode(ids));
      say(`${ids.length - given} tokens`);
    }
  };
  asked.addEventListener("submit", async (event) => {
    event.preventDefault();
    const mine = (going = {});
    halt.disabled = false;
    start.disabled = true;
    try {
      await generate(mine);
    } catch (error) {
      fail(error);
    }
    results.removeAttribute("aria-busy");
    halt.disabled = true;
    start.disabled = false;
  });
  give.append(make("h2", {}, "Text"), asked);
}

/** The scores of the last of so many tokens. */
function lastRow(done, count) {
  if (!done) return null;
  const { shape, data } = done.outputs[0];
  const width = shape.at(-1);
  const row = Math.min(count, data.length / width) - 1;
  return data.subarray(row * width, (row + 1) * width);
}

/** The likeliest token, or one drawn from the likeliest by their shares, which a higher temperature makes more equal. */
export function chosen(scores, temperature, random = Math.random) {
  if (!(temperature > 0)) return largest(scores);
  const ids = Array.from(scores.keys()).sort((a, b) => scores[b] - scores[a]).slice(0, LIKELIEST);
  const shares = softmax(ids.map((k) => scores[k] / temperature));
  let left = random();
  return ids[shares.findIndex((share) => (left -= share) < 0)] ?? ids[0];
}
