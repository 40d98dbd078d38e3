// SPDX-License-Identifier: Apache-2.0
// The classes of a text.

import { classesTable } from "./classes.mjs";
import { make } from "./dom.mjs";
import { probabilities } from "./tensors.mjs";
import { loadTokenizer, textInputs } from "./tokenizer.mjs";

export default function form({ site, run, fail, note, give, results }) {
  const loading = loadTokenizer();
  loading.catch(() => {}); // told when it is used
  note("Tokens");
  const field = make("textarea", { rows: 4, id: "text", value: "What a lovely day this has been." });
  const asked = make("form", {}, make("label", { htmlFor: "text" }, "Text"), field, make("button", { type: "submit", className: "first" }, "Classify"));
  asked.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const ids = (await loading).encode(field.value);
      if (!ids.length) throw new Error("there is no text");
      note("Tokens", String(ids.length));
      const done = await run(textInputs(site, ids));
      if (done) results.replaceChildren(...classesTable(probabilities(Array.from(done.outputs[0].data)), site.labels));
    } catch (error) {
      fail(error);
    }
  });
  give.append(make("h2", {}, "Text"), asked);
}
