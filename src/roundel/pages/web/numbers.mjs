// SPDX-License-Identifier: Apache-2.0
// A form for any model: numbers of each input, sizes of the dimensions that it leaves open; results as numbers.

import { make } from "./dom.mjs";
import { ARRAYS, elementOf, elements } from "./tensors.mjs";

const SHOWN = 200; // numbers of an output
const FILLED = 1e6; // numbers that the page writes into a field
const LARGEST = 2 ** 30; // bytes of an input
const isWhole = (dtype) => !dtype.includes("float");

export default function form({ site: model, run, fail, clear, give, results }) {
  const symbols = [...new Set(model.inputs.flatMap((i) => i.shape.filter((d) => typeof d !== "number")))];
  const sizes = new Map(symbols.map((s, k) => [s, make("input", { type: "number", min: 0, value: 1, id: `size-${k}` })]));
  const fields = model.inputs.map((info, k) => make("textarea", { rows: 3, className: "numbers", id: `input-${k}`, spellcheck: false }));
  const shape = (info) => shapeOf(info, Object.fromEntries(symbols.map((s) => [s, sizes.get(s).value])));
  const fill = (value) => {
    clear();
    try {
      model.inputs.forEach((info, k) => {
        const count = elements(shape(info));
        if (count > FILLED) throw new Error(`${info.name} has ${said(count)} numbers, too many to write here; one number in its field stands for all`);
        fields[k].value = Array.from({ length: count }, () => value(info)).join(" ");
      });
    } catch (error) {
      fail(error);
    }
  };
  const random = make("button", { type: "button" }, "Fill with random numbers");
  random.addEventListener("click", () => fill((info) => (info.dtype === "bool" ? Number(Math.random() < 0.5) : isWhole(info.dtype) ? Math.floor(10 * Math.random()) : Math.random().toFixed(3))));
  const start = make("button", { type: "submit", className: "first" }, "Run");
  const asked = make("form", { noValidate: true }, // what is wrong is said below it
    symbols.length ? make("fieldset", {}, make("legend", {}, "Sizes"), ...symbols.map((s, k) => make("div", { className: "row" }, make("label", { htmlFor: `size-${k}` }, s), sizes.get(s)))) : null,
    ...model.inputs.map((info, k) => make("fieldset", {}, make("legend", {}, `${info.name}: ${info.dtype} [${info.shape.join(", ")}]`),
      make("label", { htmlFor: `input-${k}` }, `Numbers of ${info.name}, in the order of rows, with spaces or commas between`), fields[k])),
    make("div", { className: "row" }, start, random));
  asked.addEventListener("submit", async (event) => {
    event.preventDefault();
    let inputs;
    try {
      inputs = model.inputs.map((info, k) => ({ shape: shape(info), data: parsed(info, fields[k].value, elements(shape(info))) }));
    } catch (error) {
      return fail(error);
    }
    const done = await run(inputs);
    if (done) results.replaceChildren(make("h2", {}, "Result"), ...done.outputs.flatMap((output, k) => shown(model.outputs[k].name, output)));
    return undefined;
  });
  give.append(make("h2", {}, "Numbers"), asked);
}

const said = (count) => count.toLocaleString("en");

/** The shape of an input; `texts` of its open sizes by their names. */
export function shapeOf(info, texts) {
  const shape = info.shape.map((d) => (typeof d === "number" ? d : size(d, texts[d])));
  const count = elements(shape);
  if (count * (ARRAYS[info.dtype]?.BYTES_PER_ELEMENT ?? 1) > LARGEST) {
    const open = info.shape.flatMap((d, k) => (typeof d === "number" ? [] : [`${d} = ${shape[k]}`]));
    throw new Error(`${info.name} would have ${said(count)} numbers, more than a page has memory for${open.length ? `: make ${open.join(", ")} smaller` : ""}`);
  }
  return shape;
}

function size(name, text) {
  const value = text.trim() ? Number(text) : NaN;
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${name}: ${text.trim() || "nothing"} is no size; give a whole number from 0 on`);
  return value;
}

/** The numbers in a text; one alone stands for all. */
export function parsed(info, text, count) {
  const Kind = ARRAYS[info.dtype];
  if (!Kind) throw new Error(`${info.name} is ${info.dtype}, which this page cannot ask for`);
  const words = text.split(/[\s,;[\]]+/).filter(Boolean);
  const read = isWhole(info.dtype) ? wholeNumber : decimal;
  const element = elementOf(info.dtype);
  if (words.length === 1 && count > 1) return new Kind(count).fill(element(read(info, words[0])));
  if (words.length !== count) throw new Error(`${info.name} wants ${said(count)} numbers, ${said(words.length)} were given`);
  return Kind.from(words, (word) => element(read(info, word)));
}

function decimal(info, word) {
  const value = Number(word.replace(/^([+-]?)inf(inity)?$/i, "$1Infinity"));
  if (Number.isNaN(value) && !/^[+-]?nan$/i.test(word)) throw new Error(`${info.name}: ${word} is not a number`);
  return value;
}

function wholeNumber(info, word) {
  const isBool = info.dtype === "bool";
  if (isBool && /^(true|false)$/i.test(word)) return BigInt(word.toLowerCase() === "true");
  const value = Number(word);
  if (Number.isNaN(value)) throw new Error(`${info.name}: ${word} is not a number`);
  if (!Number.isInteger(value)) throw new Error(`${info.name}: ${word} is not a whole number`);
  const exact = BigInt(/^[+-]?\d+$/.test(word) ? word : value); // a number has but 53 bits
  const bits = isBool ? 1 : Number(/\d+/.exec(info.dtype)[0]);
  const isUnsigned = isBool || info.dtype.startsWith("u");
  if (exact !== (isUnsigned ? BigInt.asUintN : BigInt.asIntN)(bits, exact)) {
    const [least, most] = isUnsigned ? [0n, 2n ** BigInt(bits) - 1n] : [-(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n];
    throw new Error(`${info.name}: ${word} is not ${info.dtype.startsWith("i") ? "an" : "a"} ${info.dtype} (${isBool ? "0, 1, true or false" : `${least} to ${most}`})`);
  }
  return exact;
}

function shown(name, { dtype, shape, data }) {
  const numbers = Array.from(data.subarray(0, SHOWN), (v) => (typeof v === "bigint" || Number.isInteger(v) ? String(v) : v.toPrecision(6)));
  const rest = data.length > SHOWN ? ` ... and ${data.length - SHOWN} more` : "";
  const block = make("pre", { tabIndex: 0, role: "region", "aria-label": `Numbers of ${name}` }, numbers.join(" ") + rest);
  return [make("h3", {}, `${name}: ${dtype} [${shape.join(", ")}]`), block];
}
