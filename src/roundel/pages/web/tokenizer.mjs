// SPDX-License-Identifier: Apache-2.0
// Tokens of text and back, and the inputs that a model of text takes.

import { tensor } from "./tensors.mjs";
import { Tokenizer } from "./tokenizers.min.mjs";

/** The page's tokenizer; `ends`: ids of tokens that end a text. */
export async function loadTokenizer() {
  const { ends, ...told } = await (await fetch(new URL("tokenizer.json", import.meta.url))).json();
  const tokenizer = new Tokenizer(told, {});
  return {
    ends: new Set(ends),
    encode: (text) => tokenizer.encode(text).ids,
    decode: (ids) => tokenizer.decode(ids, { skip_special_tokens: true, clean_up_tokenization_spaces: false }),
  };
}

/** The inputs by their places for tokens, of which `past` came in earlier calls. Where the model takes a fixed number, the first ones, with zeros behind them that the
 * mask hides. */
export function textInputs(site, ids, past = 0) {
  const { text } = site;
  const count = text.length || ids.length;
  const used = ids.slice(0, count);
  const filled = (value, rest = 0) => Array.from({ length: count }, (_, k) => (k < used.length ? value(k) : rest));
  const given = [];
  given[text.ids] = tensor(site.inputs[text.ids], filled((k) => used[k]));
  if (text.mask !== null) given[text.mask] = tensor(site.inputs[text.mask], [...Array(past).fill(1), ...filled(() => 1)]);
  if (text.types !== null) given[text.types] = tensor(site.inputs[text.types], filled(() => 0));
  if (text.positions !== null) given[text.positions] = tensor(site.inputs[text.positions], filled((k) => past + k));
  return given;
}
