// SPDX-License-Identifier: Apache-2.0
// Sound from the microphone or a file, window by window: a curve where the model gives one score (such as whether somebody speaks), else the classes of each
// window, or the letters that were heard.

import { best, classesTable, named } from "./classes.mjs";
import { button, make, percent, table, takesFiles } from "./dom.mjs";
import { readLetters } from "./letters.mjs";
import { spectrogram } from "./mel.mjs";
import { probabilities, tensor } from "./tensors.mjs";
import { decoded, microphone, testSound, Windows } from "./waves.mjs";

const LIKELY = 0.5;
const [WIDTH, HEIGHT] = [760, 180];
const SHOWN = 12; // rows of a table

export default function form({ site, run, say, fail, note, give, results }) {
  const { sound } = site;
  const canvas = make("canvas", { className: "wide", width: WIDTH, height: HEIGHT, role: "img", "aria-label": "The sound, and what the model makes of it" });
  const file = make("input", { type: "file", accept: "audio/*", id: "sound" });
  let stop = null;
  let session = null; // of one recording
  note("Of real time");

  const begin = () => {
    session = { windows: new Windows(sound.window, sound.overlap), samples: [], shares: [], ms: 0, busy: Promise.resolve(), length: 0 };
    return session;
  };
  const inputs = (samples) => {
    const given = [];
    const { mel } = sound;
    const taken = mel ? spectrogram(samples, mel, sound.rate) : samples;
    given[sound.input] = tensor(site.inputs[sound.input], taken, mel ? sound.shape.map((d) => d || taken.length / mel.bands) : undefined);
    if (sound.rate_input !== null) given[sound.rate_input] = tensor(site.inputs[sound.rate_input], [sound.rate], site.inputs[sound.rate_input].shape.map(() => 1));
    return given;
  };
  /** Runs the model on what these samples complete; one window after another. */
  const hear = (now, samples, live) => {
    now.length += samples.length;
    now.samples.push(samples);
    const parts = sound.whole ? [samples] : now.windows.push(samples);
    now.busy = now.busy.then(async () => {
      for (const part of parts) {
        if (now !== session) return;
        const done = await run(inputs(part), { restart: now.shares.length === 0, quiet: true });
        if (!done) return void end();
        const [scores] = done.outputs;
        now.shares.push(sound.letters.length ? scores : probabilities(Array.from(scores.data)));
        now.ms += done.ms;
      }
      if (live && parts.length) show(now);
    });
    return now.busy;
  };
  const whole = async (samples) => {
    end();
    say("Listening ...");
    const now = begin();
    const least = sound.whole ? 0 : Math.max(0, sound.window - samples.length); // a short sound fills one window
    await hear(now, least ? Float32Array.from({ length: sound.window }, (_, k) => samples[k] ?? 0) : samples, false);
    if (now.shares.length) {
      show(now);
      say("Done.");
    }
  };
  const take = async (blob) => {
    let samples;
    try {
      samples = await decoded(await blob.arrayBuffer(), sound.rate);
    } catch {
      return fail(new Error(`${blob.name ?? "this"} is not a sound that this browser reads`));
    }
    return whole(samples);
  };
  const end = () => {
    stop?.();
    stop = null;
    record.textContent = "Use the microphone";
  };
  const listen = async () => {
    if (stop) {
      const now = session;
      end();
      if (sound.whole && now.length) await whole(joined(now.samples));
      return say("Done.");
    }
    try {
      const now = begin();
      stop = await microphone(sound.rate, (samples) => (sound.whole ? (now.samples.push(samples), (now.length += samples.length)) : hear(now, samples, true)));
    } catch (error) {
      return fail(new Error(`the microphone cannot be used: ${error.message}`));
    }
    record.textContent = "Stop";
    return say("Listening ...");
  };
  const record = button("Use the microphone", listen, { hidden: !navigator.mediaDevices?.getUserMedia });
  const example = async () => (site.sample ? take(await (await fetch(site.sample)).blob()) : whole(testSound(sound.rate)));

  const show = (now) => {
    note("Of real time", percent(now.ms / ((1000 * now.length) / sound.rate)));
    const step = sound.whole ? now.length / sound.rate : sound.window / sound.rate;
    const shares = now.shares;
    if (sound.letters.length) {
      drawSound(canvas, joined(now.samples), []);
      results.replaceChildren(make("h2", {}, "Text"), make("p", { className: "read" }, shares.map((s) => readLetters(s, sound.letters).text).join("") || "Nothing was heard."));
    } else if (shares.every((s) => s.length === 1) || (shares.length === 1 && sound.whole && shares[0].length > 1 && !site.labels.length)) {
      const curve = shares.flat();
      drawSound(canvas, joined(now.samples), curve);
      results.replaceChildren(...spansShown(curve, (step * shares.length) / curve.length, site.labels[0] ?? "score"));
    } else {
      drawSound(canvas, joined(now.samples), []);
      const mean = shares[0].map((_, k) => shares.reduce((sum, s) => sum + s[k], 0) / shares.length);
      const rows = shares.map((s, k) => [`${(k * step).toFixed(1)} s`, named(site.labels, best(s)[0]), percent(s[best(s)[0]])]).slice(-SHOWN);
      results.replaceChildren(...classesTable(mean, site.labels, shares.length > 1 ? "Classes on the average" : "Classes"),
        ...(shares.length > 1 ? [make("h3", {}, "By time"), table(`The last ${rows.length} of ${shares.length}`, ["From", "Best class", "#Share"], rows)] : []));
    }
  };

  file.addEventListener("change", () => file.files[0] && take(file.files[0]));
  const area = make("div", { className: "drop" },
    make("div", { className: "row" }, record, button(site.sample ? "Use the example" : "Use a test sound", example)),
    make("div", { className: "row" }, make("label", { htmlFor: "sound" }, "Choose or drop a sound file:"), file));
  takesFiles(area, take);
  give.append(make("h2", {}, "Sound"), area, canvas);
}

function joined(parts) {
  const all = new Float32Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Where a score is likely: from when to when. */
export function spans(curve, step) {
  const found = [];
  curve.forEach((share, k) => {
    if (!(share >= LIKELY)) return;
    const last = found.at(-1);
    if (last && Math.abs(last.to - k * step) < step / 2) last.to = (k + 1) * step;
    else found.push({ from: k * step, to: (k + 1) * step });
  });
  return found;
}

function spansShown(curve, step, name) {
  const found = spans(curve, step);
  const total = found.reduce((sum, s) => sum + s.to - s.from, 0);
  const rows = found.slice(-SHOWN).map((s) => [`${s.from.toFixed(2)} s`, `${s.to.toFixed(2)} s`, `${(s.to - s.from).toFixed(2)} s`]);
  const summary = `Now ${percent(curve.at(-1))}, at most ${percent(Math.max(...curve))}; above ${percent(LIKELY)} for ${total.toFixed(2)} s of ${(curve.length * step).toFixed(2)} s.`;
  return [make("h2", {}, name[0].toUpperCase() + name.slice(1)), make("p", {}, summary),
    ...(rows.length ? [table(found.length > SHOWN ? `The last ${SHOWN} of ${found.length} parts above ${percent(LIKELY)}` : `Parts above ${percent(LIKELY)}`, ["From", "#To", "#Length"], rows)] : [])];
}

/** Samples as a wave, and over it a curve of shares from 0 to 1. */
function drawSound(canvas, samples, curve) {
  const context = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  context.clearRect(0, 0, WIDTH, HEIGHT);
  context.fillStyle = style.getPropertyValue("--line");
  const each = Math.max(1, Math.ceil(samples.length / WIDTH));
  for (let x = 0; x * each < samples.length; x += 1) {
    let most = 0;
    for (let k = x * each; k < Math.min(samples.length, (x + 1) * each); k += 1) most = Math.max(most, Math.abs(samples[k]));
    const h = Math.max(1, Math.min(1, most) * (HEIGHT - 8));
    context.fillRect((x * each * WIDTH) / samples.length, (HEIGHT - h) / 2, Math.max(1, (each * WIDTH) / samples.length), h);
  }
  if (!curve.length) return;
  context.strokeStyle = style.getPropertyValue("--mark");
  context.lineWidth = 2.5;
  context.beginPath();
  curve.forEach((share, k) => context.lineTo(((k + 0.5) * WIDTH) / curve.length, HEIGHT - 4 - share * (HEIGHT - 8)));
  context.stroke();
}
