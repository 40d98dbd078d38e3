// SPDX-License-Identifier: Apache-2.0
// Reads a picture of one line of text.

import { make, percent } from "./dom.mjs";
import { readLetters } from "./letters.mjs";
import { drawText, pictureInput } from "./pictures.mjs";

export default function form(page) {
  pictureInput(page, "Picture of a line of text", (context, width, height) => drawText(context, width, height, ["Hello 2026"]), ([scores]) => {
    const { text, score } = readLetters(scores, page.site.letters);
    const sure = score > 0 && score <= 1 ? `Mean score of the letters: ${percent(score)}` : "";
    page.results.replaceChildren(make("h2", {}, "Text"), make("p", { className: "read" }, text || "No text was found."), make("p", { className: "mute" }, sure));
  });
}
