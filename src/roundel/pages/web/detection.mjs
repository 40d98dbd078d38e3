// SPDX-License-Identifier: Apache-2.0
// Boxes on a picture, from a score on that the user chooses.

import { boxesOf } from "./boxes.mjs";
import { named } from "./classes.mjs";
import { make, percent, table } from "./dom.mjs";
import { drawMeadow, drawText, pictureInput } from "./pictures.mjs";

const COLOURS = ["#c2410c", "#1d4ed8", "#15803d", "#a21caf", "#b91c1c", "#0e7490"]; // by class; white is legible on each
const SHOWN = 20; // rows of the table
const TEXT = ["First line of text", "and a second one", "Roundel 2026"];

export default function form(page) {
  const { site, give, results } = page;
  const isMap = site.boxes.form === "map";
  const least = make("input", { type: "range", id: "least", min: 0.05, max: 0.95, step: 0.05, value: isMap ? 0.5 : 0.35 });
  const value = make("output", { htmlFor: "least" });
  const label = (k) => (isMap && !site.labels.length ? "text" : named(site.labels, k));
  let shown = null;

  const show = (outputs, place, canvas) => {
    const context = canvas.getContext("2d");
    shown = { outputs, place, canvas, pixels: context.getImageData(0, 0, place.width, place.height) };
    draw();
  };
  const draw = () => {
    value.textContent = percent(Number(least.value));
    if (!shown) return;
    const { outputs, place, canvas, pixels } = shown;
    const context = canvas.getContext("2d");
    const boxes = boxesOf(outputs, site.boxes, place, Number(least.value), site.labels.length);
    context.putImageData(pixels, 0, 0);
    const thick = Math.max(2, place.width / 250);
    context.font = `600 ${6 * thick}px system-ui, sans-serif`;
    for (const box of [...boxes].reverse()) {
      const text = `${label(box.label)} ${percent(box.score)}`;
      context.strokeStyle = context.fillStyle = COLOURS[box.label % COLOURS.length];
      context.lineWidth = thick;
      context.strokeRect(box.x, box.y, box.w, box.h);
      if (isMap) continue;
      context.fillRect(box.x - thick / 2, box.y, context.measureText(text).width + 3 * thick, 8 * thick);
      context.fillStyle = "white";
      context.fillText(text, box.x + thick, box.y + 6 * thick);
    }
    canvas.setAttribute("aria-label", `The picture with ${boxes.length} boxes, which the table names`);
    const pair = (x, y) => `${Math.round(x)}, ${Math.round(y)}`;
    const rows = boxes.slice(0, SHOWN).map((b) => [label(b.label), percent(b.score), pair(b.x - place.x, b.y - place.y), pair(b.w, b.h)]);
    const caption = boxes.length > SHOWN ? `The first ${SHOWN} of ${boxes.length}, in pixels of the picture as the model sees it` : "In pixels of the picture as the model sees it";
    results.replaceChildren(make("h2", {}, boxes.length === 1 ? "1 box" : `${boxes.length} boxes`),
      boxes.length ? table(caption, ["What", "#Score", "#Left, top", "#Width, height"], rows) : make("p", { className: "mute" }, "Nothing scores so much."));
  };

  pictureInput(page, "Picture", isMap ? (context, w, h) => drawText(context, w, h, TEXT) : drawMeadow, show);
  give.querySelector(".drop").append(make("div", { className: "row" }, make("label", { htmlFor: "least" }, "Show from this score on:"), least, value));
  least.addEventListener("input", draw);
  draw();
}
