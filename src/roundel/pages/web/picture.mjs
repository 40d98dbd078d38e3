// SPDX-License-Identifier: Apache-2.0
// The classes of a picture.

import { classesTable } from "./classes.mjs";
import { drawMeadow, pictureInput } from "./pictures.mjs";
import { probabilities } from "./tensors.mjs";

export default function form(page) {
  pictureInput(page, "Picture", drawMeadow, ([scores]) => page.results.replaceChildren(...classesTable(probabilities(scores.data), page.site.labels)));
}
