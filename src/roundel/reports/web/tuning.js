// What tuning measured of a kernel: the fastest schedule so far over trials, and each candidate's time over what was expected of it.

const PLOT = { width: 480, height: 260, left: 64, right: 12, top: 28, bottom: 40 };

// Two axes with lines of a grid; gives the drawing and the places of values on it.
function plot(label, xTitle, yTitle, xs, ys, { isLogX = false } = {}) {
  const { width, height, left, right, top, bottom } = PLOT;
  const [lowX, highX] = isLogX ? [Math.min(...xs) / 1.1, Math.max(...xs) * 1.1] : [0, Math.max(1, ...xs)], [lowY, highY] = [Math.min(...ys) / 1.15, Math.max(...ys) * 1.15];
  const share = (v, low, high, isLog) => (isLog ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
  const x = (v) => left + share(v, lowX, highX, isLogX) * (width - left - right), y = (v) => height - bottom - share(v, lowY, highY, true) * (height - top - bottom);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": label });
  for (const v of steps(lowX, highX, isLogX)) svg.append(draw("path.grid", { d: `M${x(v)},${top}V${height - bottom}` }), draw("text", { x: x(v), y: height - bottom + 16, "text-anchor": "middle" }, number(v)));
  for (const v of steps(lowY, highY, true)) svg.append(draw("path.grid", { d: `M${left},${y(v)}H${width - right}` }), draw("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, number(v)));
  svg.append(draw("text.mute", { x: width - right, y: height - 6, "text-anchor": "end" }, xTitle), draw("text", { x: left, y: 16 }, yTitle));
  return { svg, x, y };
}

// Round values in a range: powers of ten with 2 and 5 between them, or equal steps.
function steps(low, high, isLog) {
  const found = [];
  if (isLog) for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) for (const m of high / low > 50 ? [1] : [1, 2, 5]) found.push(m * 10 ** e);
  if (!isLog || found.filter((v) => v >= low && v <= high).length < 2) {
    const step = [1, 2, 5, 10].map((m) => m * 10 ** Math.floor(Math.log10((high - low) / 4))).find((s) => (high - low) / s <= 5.5);
    found.length = 0;
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) found.push(Number(v.toPrecision(10)));
  }
  return found.filter((v) => v >= low && v <= high);
}

function tuning(kernel) {
  const { untuned, trials, left_out: left } = kernel.tuning, ran = trials.filter((t) => t.ms !== null), failed = trials.length - ran.length;
  if (!ran.length) return make("p.mute", {}, `${trials.length} candidates were tried, and none of them ran.`);
  let best = Infinity;
  const curve = [];
  trials.forEach((t, k) => { if (t.ms !== null && t.ms < best) { best = t.ms; curve.push([k + 1, best]); } });
  const times = [...curve.map(([, ms]) => ms), ...(untuned === null ? [] : [untuned])], told = ran.filter((t) => t.expected_ms > 0);
  const fastest = ran.reduce((a, b) => (b.ms < a.ms ? b : a));
  const first = plot(`The fastest of ${trials.length} trials so far: from ${number(curve[0][1])} to ${number(best)} ms${untuned === null ? "" : `; untuned ${number(untuned)} ms`}.`, "trials", "fastest so far, ms", [trials.length], times);
  first.svg.append(draw("path", { d: `M${first.x(curve[0][0])},${first.y(curve[0][1])}${curve.slice(1).map(([k, ms]) => `H${first.x(k)}V${first.y(ms)}`).join("")}H${first.x(trials.length)}`, fill: "none", stroke: "var(--c0)", "stroke-width": 2 }));
  if (untuned !== null) first.svg.append(draw("path", { d: `M${PLOT.left},${first.y(untuned)}H${PLOT.width - PLOT.right}`, stroke: "var(--mute)", "stroke-dasharray": "5 4" }), draw("text.mute", { x: PLOT.width - PLOT.right - 4, y: first.y(untuned) - 5, "text-anchor": "end" }, "untuned"));
  const rules = [...new Set(ran.map((t) => t.rule))], parts = [first.svg];
  if (told.length > 1) {
    const second = plot(`Measured over expected time of ${told.length} candidates; ${percent(inOrder(told))} of the pairs are in the expected order.`, "expected ms", "measured ms", told.map((t) => t.expected_ms), told.map((t) => t.ms), { isLogX: true });
    for (const t of told) second.svg.append(draw("circle", { cx: second.x(t.expected_ms), cy: second.y(t.ms), r: t === fastest ? 6 : 3, fill: `var(--c${rules.indexOf(t.rule) % 8})`, "fill-opacity": 0.7, stroke: t === fastest ? "var(--text)" : "none", "stroke-width": 2 }, draw("title", {}, `${t.rule} ${words(t.decisions)}: ${number(t.ms)} ms`)));
    parts.push(second.svg);
  }
  const key = rules.map((r, k) => make("span.key", {}, draw("svg", { width: 12, height: 12, "aria-hidden": "true" }, draw("circle", { cx: 6, cy: 6, r: 5, fill: `var(--c${k % 8})` })), ` ${r} `));
  const facts = [`${trials.length} candidates measured${failed ? `, ${failed} of which failed` : ""}${left ? ` (${left} earlier ones are not shown)` : ""}`, `fastest ${number(best)} ms${untuned === null ? "" : `, untuned ${number(untuned)} ms`}`, ...(told.length > 1 ? [`${percent(inOrder(told))} of all pairs are in the expected order (half would be chance)`] : [])];
  const rows = [...ran].sort((a, b) => a.ms - b.ms).slice(0, 10);
  const list = make("details", {}, make("summary", {}, "The ten fastest"), table("Fastest first", [{ head: "schedule", cell: (t) => `${t.rule} ${words(t.decisions)}` }, { head: "measured ms", cell: (t) => number(t.ms), number: true }, { head: "expected ms", cell: (t) => number(t.expected_ms), number: true }], rows));
  return make("div", {}, make("h3", {}, "Tuning"), make("p", {}, facts.join("; "), "."), make("div.columns", {}, parts), rules.length > 1 ? make("p", {}, key) : null, list);
}

// The share of pairs of which the one that was expected to be faster is.
function inOrder(trials) {
  let right = 0, all = 0;
  const some = trials.length > 400 ? trials.filter((_, k) => k % Math.ceil(trials.length / 400) === 0) : trials;
  some.forEach((a, k) => some.slice(0, k).forEach((b) => { const signs = Math.sign(a.ms - b.ms) * Math.sign(a.expected_ms - b.expected_ms); if (signs) { all++; right += signs > 0; } }));
  return all ? right / all : 1;
}
