// SPDX-License-Identifier: Apache-2.0
// Pictures of the user's: from a file, dropped, pasted, from the camera, or an example; and how they become a model's input.

import { button, make, takesFiles } from "./dom.mjs";

const GREY = "#727272"; // of borders
const STEP = 32; // sides of pictures whose size the model leaves open
const WIDEST = 2048; // pixels of a line of text

/** The size of the input for a picture, and where in it the picture lies: { width, height, x, y, w, h }. */
export function placed(picture, width, height, open = true) {
  const { width: most, height: highest, fit } = picture;
  if (fit === "line") {
    const w = Math.max(8, Math.min(open ? WIDEST : most, Math.round((width * highest) / height)));
    return { width: open ? w : most, height: highest, x: 0, y: 0, w, h: highest };
  }
  if (fit === "limit") {
    const scale = Math.min(1, Math.max(most, highest) / Math.max(width, height));
    const [w, h] = [width, height].map((side) => Math.max(STEP, Math.round((side * scale) / STEP) * STEP));
    return { width: w, height: h, x: 0, y: 0, w, h };
  }
  const scale = (fit === "cover" ? Math.max : Math.min)(most / width, highest / height);
  const [w, h] = [width * scale, height * scale];
  return { width: most, height: highest, x: (most - w) / 2, y: (highest - h) / 2, w, h };
}

/** Pixels (red, green, blue, opacity) as the model's input. */
export function asInput(pixels, size, picture, info) {
  const { channels, channels_first: first, mean, std, bgr } = picture;
  const count = size.width * size.height;
  const isRaw = info.dtype === "uint8";
  const data = isRaw ? new Uint8Array(count * channels) : new Float32Array(count * channels);
  for (let c = 0; c < channels; c += 1) {
    const from = bgr ? 2 - c : c;
    const [scale, shift] = [1 / (255 * std[c]), mean[c] / std[c]];
    const [start, step] = first ? [c * count, 1] : [c, channels];
    for (let p = 0, to = start; p < count; p += 1, to += step) {
      const value = channels === 1 ? 0.299 * pixels[4 * p] + 0.587 * pixels[4 * p + 1] + 0.114 * pixels[4 * p + 2] : pixels[4 * p + from];
      data[to] = isRaw ? value : value * scale - shift;
    }
  }
  return { data, shape: first ? [1, channels, size.height, size.width] : [1, size.height, size.width, channels] };
}

/** The controls that ask for a picture. `drawExample(context)` draws one on a canvas of the model's size where the page offers none; `show(outputs, place, canvas)`
 * shows a result, where `place` is that of `placed`. */
export function pictureInput({ site, run, fail, give }, title, drawExample, show) {
  const { picture } = site;
  const open = site.open ?? true;
  const begin = placed(picture, picture.fit === "line" ? 8 * picture.height : picture.width, picture.height, open);
  const canvas = make("canvas", { width: begin.width, height: begin.height, role: "img", "aria-label": "The picture as the model sees it" });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const file = make("input", { type: "file", accept: "image/*", id: "picture" });
  let video = null;

  const classify = async (place, quiet = false) => {
    const pixels = context.getImageData(0, 0, place.width, place.height).data;
    const done = await run([asInput(pixels, place, picture, site.inputs[0])], { quiet });
    if (done) show(done.outputs, place, canvas);
    return done;
  };
  const draw = (source, width, height) => {
    const place = placed(picture, width, height, open);
    if (canvas.width !== place.width || canvas.height !== place.height) Object.assign(canvas, { width: place.width, height: place.height });
    context.fillStyle = picture.fit === "line" ? "white" : GREY;
    context.fillRect(0, 0, place.width, place.height);
    context.drawImage(source, place.x, place.y, place.w, place.h);
    return place;
  };
  const take = async (blob) => {
    stop();
    let bitmap;
    try {
      bitmap = await createImageBitmap(blob);
    } catch {
      return fail(new Error(`${blob.name ?? "this"} is not a picture that this browser reads`));
    }
    return classify(draw(bitmap, bitmap.width, bitmap.height));
  };
  const example = async () => {
    stop();
    if (site.sample) return take(await (await fetch(site.sample)).blob());
    const size = { width: begin.width, height: begin.height };
    const drawn = make("canvas", size);
    drawExample(drawn.getContext("2d"), size.width, size.height);
    return classify(draw(drawn, size.width, size.height));
  };
  const stop = () => {
    video?.srcObject.getTracks().forEach((track) => track.stop());
    video = null;
    camera.textContent = "Use the camera";
  };
  const watch = async () => {
    if (video) return stop();
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
      video = make("video", { srcObject: stream, muted: true, playsInline: true });
      await video.play();
    } catch (error) {
      return fail(new Error(`the camera cannot be used: ${error.message}`));
    }
    camera.textContent = "Stop the camera";
    while (video && (await classify(draw(video, video.videoWidth, video.videoHeight), true))) await new Promise(requestAnimationFrame);
    return undefined;
  };
  const camera = button("Use the camera", watch, { hidden: !navigator.mediaDevices?.getUserMedia });

  file.addEventListener("change", () => file.files[0] && take(file.files[0]));
  document.addEventListener("paste", (event) => {
    const pasted = [...event.clipboardData.files].find((f) => f.type.startsWith("image/"));
    if (pasted) take(pasted);
  });
  const area = make("div", { className: "drop" },
    make("div", { className: "row" }, make("label", { htmlFor: "picture" }, "Choose, drop or paste a picture:"), file),
    make("div", { className: "row" }, camera, button(site.sample ? "Use the example" : "Use a test picture", example)));
  takesFiles(area, take);
  context.fillStyle = GREY;
  give.append(make("h2", {}, title), area, canvas);
}

/** A sky with the sun over a meadow. */
export function drawMeadow(context, width, height) {
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

/** Lines of text, black on white. */
export function drawText(context, width, height, lines) {
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  context.fillStyle = "black";
  context.textBaseline = "middle";
  const size = Math.min(0.62 * (height / lines.length), 48);
  context.font = `${size}px sans-serif`;
  lines.forEach((line, k) => context.fillText(line, 0.6 * size, ((k + 0.5) * height) / lines.length, width - size));
}
