// SPDX-License-Identifier: Apache-2.0
// Spectrograms of sound, as src/roundel/pages/mel.py describes them.

const LOGS = { ln: Math.log, log10: Math.log10, db: (v) => 10 * Math.log10(v) };
const BREAK = 1000; // Hz; above it Slaney's scale is logarithmic
const SCALES = {
  htk: [(f) => 2595 * Math.log10(1 + f / 700), (m) => 700 * (10 ** (m / 2595) - 1)],
  slaney: [(f) => (f < BREAK ? (3 * f) / 200 : 15 + (27 * Math.log(f / BREAK)) / Math.log(6.4)), (m) => (m < 15 ? (200 * m) / 3 : BREAK * 6.4 ** ((m - 15) / 27))],
};

/** Frames that so many samples have. */
export const framesOf = (mel, length) => (mel.centre ? Math.floor(length / mel.hop) : Math.max(0, Math.floor((length - mel.window) / mel.hop) + 1));

/** The input that a model takes for these samples: bands by frames, or frames by bands. */
export function spectrogram(samples, mel, rate) {
  const { hop, fft, bands, power } = mel;
  const frames = framesOf(mel, samples.length);
  const hann = Float64Array.from({ length: mel.window }, (_, k) => 0.5 - 0.5 * Math.cos((2 * Math.PI * k) / mel.window));
  const offset = mel.centre ? -(fft >> 1) : 0;
  const ahead = mel.centre ? (fft - mel.window) >> 1 : 0; // a centred window is in the middle of its frame
  const weights = bandsOf(mel, rate);
  const transform = transformOf(fft);
  const out = new Float32Array(bands * frames);
  const [re, im] = [new Float64Array(fft), new Float64Array(fft)];
  const sized = new Float64Array((fft >> 1) + 1);
  for (let t = 0; t < frames; t += 1) {
    re.fill(0);
    im.fill(0);
    for (let k = 0; k < mel.window; k += 1) re[ahead + k] = hann[k] * samples[reflected(t * hop + offset + ahead + k, samples.length)];
    transform(re, im);
    for (let f = 0; f < sized.length; f += 1) sized[f] = (re[f] * re[f] + im[f] * im[f]) ** (power / 2);
    weights.forEach(({ begin, values }, b) => {
      let sum = 0;
      for (let k = 0; k < values.length; k += 1) sum += values[k] * sized[begin + k];
      out[mel.bands_first ? b * frames + t : t * bands + b] = LOGS[mel.log](Math.max(sum, mel.floor));
    });
  }
  const least = mel.range ? out.reduce((a, b) => Math.max(a, b), -Infinity) - mel.range : -Infinity;
  return out.map((v) => (Math.max(v, least) - mel.mean) / mel.std);
}

/** The place of a sample before the first one or behind the last, where the sound goes back. */
function reflected(at, length) {
  const period = Math.max(1, 2 * (length - 1));
  const place = ((at % period) + period) % period;
  return place < length ? place : period - place;
}

/** Of each band the weights of the frequencies from `begin` on. */
function bandsOf({ bands, low, high, fft, scale, area }, rate) {
  const [to, from] = SCALES[scale];
  const [least, most] = [to(low), to(high)];
  const edges = Array.from({ length: bands + 2 }, (_, k) => from(least + ((most - least) * k) / (bands + 1)));
  return Array.from({ length: bands }, (_, b) => {
    const [lower, centre, upper] = edges.slice(b, b + 3);
    const all = Array.from({ length: (fft >> 1) + 1 }, (_, k) => {
      const f = (k * rate) / fft;
      return Math.max(0, Math.min((f - lower) / (centre - lower), (upper - f) / (upper - centre))) * (area ? 2 / (upper - lower) : 1);
    });
    const begin = all.findIndex((w) => w > 0);
    return begin < 0 ? { begin: 0, values: [] } : { begin, values: all.slice(begin, all.findLastIndex((w) => w > 0) + 1) };
  });
}

/** The discrete Fourier transform of complex numbers. */
export function transformed(re, im) {
  const parts = [Float64Array.from(re), Float64Array.from(im)];
  transformOf(re.length)(...parts);
  return parts;
}

/** A function that replaces so many complex numbers by their discrete Fourier transform: by halves (Cooley and Tukey 1965) while the number is even, by sums of
 * the odd rest. */
function transformOf(n) {
  const cos = Float64Array.from({ length: n }, (_, k) => Math.cos((2 * Math.PI * k) / n));
  const sin = Float64Array.from({ length: n }, (_, k) => Math.sin((2 * Math.PI * k) / n));
  const [ownRe, ownIm] = [new Float64Array(n), new Float64Array(n)];
  const step = (re, im, outRe, outIm, from, stride, at, count) => {
    if (count % 2) {
      for (let f = 0; f < count; f += 1) {
        let [a, b] = [0, 0];
        for (let k = 0; k < count; k += 1) {
          const w = ((f * k) % count) * stride;
          const [x, y] = [re[from + k * stride], im[from + k * stride]];
          a += x * cos[w] + y * sin[w];
          b += y * cos[w] - x * sin[w];
        }
        outRe[at + f] = a;
        outIm[at + f] = b;
      }
      return;
    }
    const half = count / 2;
    step(re, im, outRe, outIm, from, 2 * stride, at, half);
    step(re, im, outRe, outIm, from + stride, 2 * stride, at + half, half);
    for (let f = 0; f < half; f += 1) {
      const [low, high, w] = [at + f, at + half + f, f * stride];
      const a = outRe[high] * cos[w] + outIm[high] * sin[w];
      const b = outIm[high] * cos[w] - outRe[high] * sin[w];
      outRe[high] = outRe[low] - a;
      outIm[high] = outIm[low] - b;
      outRe[low] += a;
      outIm[low] += b;
    }
  };
  return (re, im) => {
    step(re, im, ownRe, ownIm, 0, 1, 0, n);
    re.set(ownRe);
    im.set(ownIm);
  };
}
