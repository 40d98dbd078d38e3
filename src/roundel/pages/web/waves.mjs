// SPDX-License-Identifier: Apache-2.0
// Sound as samples: from a file, from the microphone, a test sound; and cut into windows.

/** The samples of a file with one channel at this rate. */
export async function decoded(bytes, rate) {
  const read = await new OfflineAudioContext(1, 1, rate).decodeAudioData(bytes); // at this rate already
  const samples = new Float32Array(read.length);
  for (let c = 0; c < read.numberOfChannels; c += 1) read.getChannelData(c).forEach((s, k) => (samples[k] += s / read.numberOfChannels));
  return samples;
}

/** Listens until the result is called: `heard(samples)` gets what the microphone hears, at this rate. */
export async function microphone(rate, heard) {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
  const context = new AudioContext({ sampleRate: rate });
  await context.audioWorklet.addModule(new URL("recorder.mjs", import.meta.url));
  const recorder = new AudioWorkletNode(context, "recorder", { numberOfOutputs: 0 });
  recorder.port.onmessage = ({ data }) => heard(data);
  context.createMediaStreamSource(stream).connect(recorder);
  return () => {
    stream.getTracks().forEach((track) => track.stop());
    return context.close();
  };
}

/** Two seconds: silence, then a tone that rises and falls in loudness. */
export function testSound(rate) {
  return Float32Array.from({ length: 2 * rate }, (_, k) => (k < rate / 2 ? 0 : 0.4 * Math.sin((2 * Math.PI * 220 * k) / rate) * Math.abs(Math.sin((Math.PI * 3 * k) / rate))));
}

/** Windows of samples that come in pieces: `overlap` samples of the window before, then `window` new ones. */
export class Windows {
  #rest = [];
  #waiting = 0;

  constructor(window, overlap) {
    this.window = window;
    this.before = new Float32Array(overlap);
  }

  /** All windows that these samples complete. */
  push(samples) {
    this.#rest.push(samples);
    this.#waiting += samples.length;
    if (this.#waiting < this.window) return [];
    const all = new Float32Array(this.#waiting);
    let at = 0;
    for (const part of this.#rest) {
      all.set(part, at);
      at += part.length;
    }
    const found = [];
    let begin = 0;
    for (; begin + this.window <= all.length; begin += this.window) {
      const one = new Float32Array(this.before.length + this.window);
      one.set(this.before);
      one.set(all.subarray(begin, begin + this.window), this.before.length);
      if (this.before.length) this.before = one.slice(-this.before.length);
      found.push(one);
    }
    this.#rest = [all.slice(begin)];
    this.#waiting = all.length - begin;
    return found;
  }
}
