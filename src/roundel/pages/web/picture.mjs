// SPDX-License-Identifier: Apache-2.0
// A picture of the user's, from a file, dropped, or a test picture; its classes by score.

import { make } from "./dom.mjs";

const MOST = 5; // classes that are shown

export function pictureForm({ site, model, run, fail, give, results }) {
  const { width, height } = site.picture;
  const canvas = make("canvas", { width, height, hidden: true });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "The picture as the model sees it");
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const file = make("input", { type: "file", accept: "image/*", id: "picture" });
  const test = make("button", { type: "button" }, "Use a test picture");

  const classify = async () => {
    canvas.hidden = false;
    const input = asInput(context.getImageData(0, 0, width, height).data, site.picture, model.inputs[0]);
    const outputs = await run([input]);
    if (outputs) show(Object.values(outputs)[0], site.labels, results);
  };
  const take = async (blob) => {
    let bitmap;
    try {
      bitmap = await createImageBitmap(blob);
    } catch {
      return fail(new Error(`${blob.name ?? "this"} is not a picture that this browser reads`));
    }
    const scale = Math.max(width / bitmap.width, height / bitmap.height); // its middle, as large as fits
    const [w, h] = [bitmap.width * scale, bitmap.height * scale];
    context.drawImage(bitmap, (width - w) / 2, (height - h) / 2, w, h);
    return classify();
  };

  file.addEventListener("change", () => file.files[0] && take(file.files[0]));
  test.addEventListener("click", () => {
    drawTest(context, width, height);
    classify();
  });
  const area = make("div", { className: "drop" }, make("div", { className: "row" }, make("label", { htmlFor: "picture" }, "Choose a picture, or drop one here:"), file),
    make("div", { className: "row" }, test), canvas);
  area.addEventListener("dragover", (event) => {
    event.preventDefault();
    area.classList.add("over");
  });
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    area.classList.remove("over");
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
  give.append(make("h2", {}, "Picture"), area);
}

function drawTest(context, width, height) {
  const sky = context.createLinearGradient(0, 0, 0, height);
  sky.addColorStop(0, "#4a90d9");
  sky.addColorStop(1, "#cfe5f7");
  context.fillStyle = sky;
  context.fillRect(0, 0, width, height);
  context.fillStyle = "#f4c542";
  context.beginPath();
  context.arc(0.75 * width, 0.25 * height, 0.12 * height, 0, 7);
  context.fill();
  context.fillStyle = "#3d7a35";
  context.fillRect(0, 0.7 * height, width, 0.3 * height);
}

/** Pixels (red, green, blue, opacity) as the model's input. */
export function asInput(pixels, picture, info) {
  const { width, height, channels, channels_first: first, mean, std } = picture;
  const count = width * height;
  const isRaw = info.dtype === "uint8";
  const data = isRaw ? new Uint8Array(count * channels) : new Float32Array(count * channels);
  for (let p = 0; p < count; p += 1) {
    for (let c = 0; c < channels; c += 1) {
      const value = channels === 1 ? 0.299 * pixels[4 * p] + 0.587 * pixels[4 * p + 1] + 0.114 * pixels[4 * p + 2] : pixels[4 * p + c];
      data[first ? c * count + p : p * channels + c] = isRaw ? value : (value / 255 - mean[c]) / std[c];
    }
  }
  return { data, shape: first ? [1, channels, height, width] : [1, height, width, channels] };
}

/** Scores as probabilities: as they are where they are such, else by softmax. */
export function probabilities(scores) {
  const sum = scores.reduce((a, b) => a + b, 0);
  if (scores.every((s) => s >= 0 && s <= 1) && Math.abs(sum - 1) < 1e-3) return [...scores];
  const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = Array.from(scores, (s) => Math.exp(s - most));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / total);
}

function show(output, labels, results) {
  const shares = probabilities(output.data);
  const best = shares.map((share, k) => [share, k]).sort((a, b) => b[0] - a[0]).slice(0, MOST);
  const named = (k) => labels[k] ?? `class ${k}`;
  const rows = best.map(([share, k]) => {
    const meter = make("meter", { min: 0, max: 1, value: share });
    meter.setAttribute("aria-label", `${named(k)}: ${(100 * share).toFixed(1)} %`);
    return make("tr", {}, make("th", { scope: "row" }, named(k)), make("td", { className: "number" }, `${(100 * share).toFixed(1)} %`), make("td", {}, meter));
  });
  const head = make("tr", {}, ...["Class", "Share", "Of 100 %"].map((text, k) => make("th", { scope: "col", className: k === 1 ? "number" : "" }, text)));
  results.replaceChildren(make("h2", {}, "Classes"), make("table", {}, make("caption", {}, `The best ${best.length} of ${shares.length}`), make("thead", {}, head), make("tbody", {}, ...rows)));
}
