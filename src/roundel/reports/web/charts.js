// Charts as SVG: a machine's roofs with kernels under them, and tensors in memory over time.

function ticks(low, high) {
  const found = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
    const value = 10 ** e;
    if (value >= low && value <= high) found.push(value);
  }
  return found;
}

function roofline(report, choose) {
  const width = 960, height = 440, left = 64, right = 16, top = 16, bottom = 48;
  const kernels = report.kernels.filter((k) => k.mflop > 0 && k.mbytes > 0);
  if (!kernels.length) return make("p.mute", {}, "No kernel computes with floating-point numbers.");
  const ms = (k) => k.measured_ms ?? k.predicted_ms;
  const points = kernels.map((k) => ({ kernel: k, x: k.mflop / k.mbytes, y: k.mflop / ms(k) }));
  const { gflops, levels } = report.roofs;
  const lowX = Math.min(0.1, ...points.map((p) => p.x)) / 1.5, highX = Math.max(100, ...points.map((p) => p.x)) * 1.5;
  const lowY = Math.min(...points.map((p) => p.y), gflops / 100) / 1.5, highY = gflops * 2;
  const x = (v) => left + (Math.log(v / lowX) / Math.log(highX / lowX)) * (width - left - right);
  const y = (v) => height - bottom - (Math.log(v / lowY) / Math.log(highY / lowY)) * (height - top - bottom);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "group", "aria-label": `Roofline: ${kernels.length} kernels under a peak of ${number(gflops)} GFLOP/s. The same figures are in the table of kernels.` });
  for (const v of ticks(lowX, highX)) svg.append(draw("path.grid", { d: `M${x(v)},${top}V${height - bottom}` }), draw("text", { x: x(v), y: height - bottom + 16, "text-anchor": "middle" }, number(v)));
  for (const v of ticks(lowY, highY)) svg.append(draw("path.grid", { d: `M${left},${y(v)}H${width - right}` }), draw("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, number(v)));
  svg.append(draw("path", { d: `M${left},${y(gflops)}H${width - right}`, stroke: "var(--text)", "stroke-width": 2 }));
  svg.append(draw("text", { x: width - right, y: y(gflops) - 6, "text-anchor": "end" }, `${number(gflops)} GFLOP/s, ${report.threads} thread${report.threads > 1 ? "s" : ""}`));
  levels.forEach((level, k) => {
    const begin = Math.max(lowX, lowY / level.gbs), end = gflops / level.gbs;
    if (end <= begin) return;
    const name = level.nbytes === null ? "memory" : `up to ${bytes(level.nbytes)}`;
    svg.append(draw("path", { d: `M${x(begin)},${y(begin * level.gbs)}L${x(end)},${y(gflops)}`, stroke: `var(--c${k})`, "stroke-width": 1.5, fill: "none" }));
    svg.append(draw("text", { x: x(begin) + 18, y: y(begin * level.gbs) - 2, style: `fill: var(--c${k})` }, name));
  });
  const total = Math.max(...kernels.map((k) => k.calls * ms(k)));
  for (const p of points) {
    const r = 3 + 9 * Math.sqrt((p.kernel.calls * ms(p.kernel)) / total);
    const label = `${p.kernel.kernel}: ${number(p.y)} GFLOP/s at ${number(p.x)} FLOP a byte`;
    const dot = draw("circle", { cx: x(p.x), cy: y(p.y), r, fill: p.kernel.limit === "compute" ? "var(--c1)" : "var(--c6)", "fill-opacity": 0.65, stroke: "var(--back)", tabindex: 0, role: "button", "aria-label": label,
      onclick: () => choose(p.kernel.kernel), onkeydown: (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(p.kernel.kernel); } } }, draw("title", {}, label));
    svg.append(dot);
  }
  svg.append(draw("text.mute", { x: width - right, y: height - 8, "text-anchor": "end" }, "FLOP per byte that must be moved"), draw("text.mute", { transform: `translate(14,${top}) rotate(-90)`, "text-anchor": "end" }, "GFLOP/s"));
  const measured = kernels.some((k) => k.measured_ms !== undefined);
  return make("div", {}, svg, make("p.mute", {}, `${measured ? "Measured" : "Predicted"} speed of each kernel; the area says how much of the run it takes. Orange: limited by arithmetic, green: by memory.`));
}

function arena(memory) {
  const { steps, tensors, nbytes } = memory;
  if (!tensors.length || !nbytes) return make("p.mute", {}, "A run needs no memory for intermediate tensors.");
  const width = 1100, height = 320, left = 70, right = 8, top = 8, bottom = 28;
  const x = (step) => left + (step / steps.length) * (width - left - right);
  const y = (offset) => height - bottom - (offset / nbytes) * (height - top - bottom);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": `Memory of a run: ${tensors.length} tensors in ${bytes(nbytes)} over ${steps.length} kernel calls. The largest are in the table below.` });
  svg.append(draw("rect.frame", { x: left, y: top, width: width - left - right, height: height - top - bottom }));
  for (const share of [0, 0.25, 0.5, 0.75, 1]) svg.append(draw("text", { x: left - 6, y: y(share * nbytes) + 4, "text-anchor": "end" }, bytes(Math.round(share * nbytes))));
  tensors.forEach((t, k) => {
    const title = `${t.name}: ${bytes(t.nbytes)} at ${bytes(t.offset)}, from ${steps[t.first]} (call ${t.first + 1}) to ${steps[t.last]} (call ${t.last + 1})`;
    svg.append(draw("rect", { x: x(t.first), y: y(t.offset + t.nbytes), width: Math.max(1, x(t.last + 1) - x(t.first)), height: Math.max(1, y(t.offset) - y(t.offset + t.nbytes)), fill: `var(--c${k % 8})`, "fill-opacity": 0.7, stroke: "var(--back)", "stroke-width": 0.5 }, draw("title", {}, title)));
  });
  svg.append(draw("text.mute", { x: width - right, y: height - 8, "text-anchor": "end" }, `${steps.length} kernel calls of a run, first to last`));
  const largest = [...tensors].sort((a, b) => b.nbytes - a.nbytes).slice(0, 12);
  const list = table("The largest tensors in the arena", [
    { head: "tensor", cell: (t) => t.name }, { head: "size", cell: (t) => bytes(t.nbytes), number: true }, { head: "offset", cell: (t) => bytes(t.offset), number: true },
    { head: "written by", cell: (t) => steps[t.first] }, { head: "last read by", cell: (t) => steps[t.last] }], largest);
  return make("div", {}, svg, make("details", {}, make("summary", {}, "The largest tensors"), list));
}
