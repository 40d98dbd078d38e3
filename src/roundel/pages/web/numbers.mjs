// SPDX-License-Identifier: Apache-2.0
// A form for any model: numbers of each input, sizes of the dimensions that it leaves open; results as numbers.

import { make } from "./dom.mjs";
import { ARRAYS, elements } from "./tensors.mjs";

const SHOWN = 200; // numbers of an output
const isWhole = (dtype) => !dtype.startsWith("float");

export default function form({ site: model, run, fail, give, results }) {
  const symbols = [...new Set(model.inputs.flatMap((i) => i.shape.filter((d) => typeof d !== "number")))];
  const sizes = new Map(symbols.map((s, k) => [s, make("input", { type: "number", min: 0, value: 1, id: `size-${k}` })]));
  const fields = model.inputs.map((info, k) => make("textarea", { rows: 3, className: "numbers", id: `input-${k}`, spellcheck: false }));
  const shapeOf = (info) => info.shape.map((d) => (typeof d === "number" ? d : Number(sizes.get(d).value)));
  const fill = (value) => model.inputs.forEach((info, k) => {
    const count = elements(shapeOf(info));
    fields[k].value = count > 1e6 ? "" : Array.from({ length: count }, () => value(info)).join(" ");
  });
  const random = make("button", { type: "button" }, "Fill with random numbers");
  random.addEventListener("click", () => fill((info) => (info.dtype === "bool" ? Number(Math.random() < 0.5) : isWhole(info.dtype) ? Math.floor(10 * Math.random()) : Math.random().toFixed(3))));
  const start = make("button", { type: "submit", className: "first" }, "Run");
  const asked = make("form", {},
    symbols.length ? make("fieldset", {}, make("legend", {}, "Sizes"), ...symbols.map((s, k) => make("div", { className: "row" }, make("label", { htmlFor: `size-${k}` }, s), sizes.get(s)))) : null,
    ...model.inputs.map((info, k) => make("fieldset", {}, make("legend", {}, `${info.name}: ${info.dtype} [${info.shape.join(", ")}]`),
      make("label", { htmlFor: `input-${k}` }, `Numbers of ${info.name}, in the order of rows, with spaces or commas between`), fields[k])),
    make("div", { className: "row" }, start, random));
  asked.addEventListener("submit", async (event) => {
    event.preventDefault();
    let inputs;
    try {
      inputs = model.inputs.map((info, k) => ({ shape: shapeOf(info), data: parsed(info, fields[k].value, elements(shapeOf(info))) }));
    } catch (error) {
      return fail(error);
    }
    const done = await run(inputs);
    if (done) results.replaceChildren(make("h2", {}, "Result"), ...done.outputs.flatMap((output, k) => shown(model.outputs[k].name, output)));
    return undefined;
  });
  give.append(make("h2", {}, "Numbers"), asked);
}

/** The numbers in a text; one alone stands for all. */
export function parsed(info, text, count) {
  const Kind = ARRAYS[info.dtype];
  if (!Kind) throw new Error(`${info.name} is ${info.dtype}, which this page cannot ask for`);
  let words = text.split(/[\s,;[\]]+/).filter(Boolean);
  if (words.length === 1 && count > 1) words = Array(count).fill(words[0]);
  if (words.length !== count) throw new Error(`${info.name} wants ${count} numbers, ${words.length} were given`);
  const isLarge = Kind === BigInt64Array || Kind === BigUint64Array;
  return Kind.from(words, (word) => {
    const value = Number(word);
    if (Number.isNaN(value) && word.toLowerCase() !== "nan") throw new Error(`${info.name}: ${word} is not a number`);
    if (isWhole(info.dtype) && !Number.isInteger(value)) throw new Error(`${info.name}: ${word} is not a whole number`);
    return isLarge ? BigInt(word) : value;
  });
}

function shown(name, { dtype, shape, data }) {
  const numbers = Array.from(data.subarray(0, SHOWN), (v) => (typeof v === "bigint" || Number.isInteger(v) ? String(v) : v.toPrecision(6)));
  const rest = data.length > SHOWN ? ` ... and ${data.length - SHOWN} more` : "";
  const block = make("pre", { tabIndex: 0, role: "region", "aria-label": `Numbers of ${name}` }, numbers.join(" ") + rest);
  return [make("h3", {}, `${name}: ${dtype} [${shape.join(", ")}]`), block];
}
