// The page: one report, or two of them side by side.

const ms = (k) => k.measured_ms ?? k.predicted_ms;
const total = (report) => report.kernels.reduce((sum, k) => sum + k.calls * (ms(k) ?? 0), 0);
const isMeasured = (report) => report.kernels.some((k) => k.measured_ms !== undefined);

function choose(kernel) {
  const row = document.getElementById(`kernel-${kernel}`);
  if (!row) return;
  const button = row.querySelector("button");
  if (button.getAttribute("aria-expanded") !== "true") button.click();
  row.scrollIntoView({ block: "start" });
  button.focus({ preventScroll: true });
}

function overview(report) {
  const sum = (key) => report.kernels.reduce((s, k) => s + k.calls * (k[key] ?? 0), 0);
  const facts = [
    [isMeasured(report) ? "kernels of a run, measured" : "kernels of a run, predicted", `${number(total(report))} ms`], ["the machine's bound", `${number(sum("bound_ms"))} ms`],
    ["share of the bound reached", percent(sum("bound_ms") / total(report))], ["work", `${number(sum("mflop") / 1e3)} GFLOP`], ["kernels", `${report.kernels.length}, ${number(report.kernels.reduce((s, k) => s + k.calls, 0))} calls`],
    ["weights", bytes(report.weights_nbytes)], ["intermediate tensors", bytes(report.memory.nbytes)], ["threads", report.threads]];
  const sizes = Object.keys(report.sizes).length ? ` at ${words(report.sizes)}` : "";
  return make("div", {},
    make("dl.facts", {}, facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    make("p", {}, `Inputs${sizes}: `, report.inputs.map((i) => `${i.name} ${i.type}`).join(", "), make("br"), `Output: ${report.output}`), machine(report.target), shares(report));
}

// The processor; its features are many.
function machine(target) {
  const cpu = target.match(/-mcpu=(\S+)/)?.[1] ?? target, system = target.match(/-mtriple=(\S+)/)?.[1];
  return make("details", {}, make("summary", {}, `Target: ${cpu}${system ? `, ${system}` : ""}`), make("p.mute", {}, target));
}

function shares(report) {
  const all = total(report), rows = [...report.kernels].filter((k) => ms(k)).sort((a, b) => b.calls * ms(b) - a.calls * ms(a)).slice(0, 8);
  return table("Where the time goes", [
    { head: "kernel", cell: (k) => make("a", { href: `#kernel-${k.kernel}`, onclick: (e) => { e.preventDefault(); choose(k.kernel); } }, foldable(k.kernel)) }, { head: "share", cell: (k) => percent((k.calls * ms(k)) / all), number: true },
    { head: "compared", wide: true, cell: (k) => make("div.bar", { style: `width:${((100 * k.calls * ms(k)) / (rows[0].calls * ms(rows[0]))).toFixed(1)}%` }) }], rows);
}

function kernels(report) {
  const columns = [
    { head: "kernel", cell: (k) => foldable(k.kernel), key: (k) => k.kernel }, { head: "implementation", cell: (k) => k.rule, key: (k) => k.rule },
    { head: "calls", cell: (k) => number(k.calls), key: (k) => k.calls, number: true }, { head: "MFLOP", cell: (k) => number(k.mflop), key: (k) => k.mflop, number: true },
    { head: "MB", cell: (k) => number(k.mbytes), key: (k) => k.mbytes, number: true }, { head: "bound ms", cell: (k) => number(k.bound_ms), key: (k) => k.bound_ms, number: true },
    { head: "predicted ms", cell: (k) => number(k.predicted_ms), key: (k) => k.predicted_ms, number: true }];
  if (isMeasured(report)) columns.push(
    { head: "measured ms", cell: (k) => number(k.measured_ms), key: (k) => k.measured_ms ?? 0, number: true }, { head: "of the bound", cell: (k) => (k.roofline ? percent(k.roofline) : ""), key: (k) => k.roofline ?? 0, number: true },
    { head: "all calls ms", cell: (k) => number(k.calls * (k.measured_ms ?? 0)), key: (k) => k.calls * (k.measured_ms ?? 0), number: true });
  return table("Times are of one call; a kernel's name opens what is known of it", columns, report.kernels, { sort: columns.length - 1, detail: (k) => kernelDetail(k, report.symbolic.length > 0), label: (k) => `kernel-${k.kernel}` });
}

function tuned(report) {
  const rows = report.kernels.filter((k) => k.tuning).map((k) => ({ kernel: k, untuned: k.tuning.untuned, best: Math.min(...k.tuning.trials.map((t) => t.ms ?? Infinity)), trials: k.tuning.trials.length + k.tuning.left_out }));
  const gain = (r) => (r.untuned && Number.isFinite(r.best) ? r.untuned / r.best : 0);
  return table("Kernels that were measured; a name opens the curve", [
    { head: "kernel", cell: (r) => foldable(r.kernel.kernel), key: (r) => r.kernel.kernel }, { head: "trials", cell: (r) => number(r.trials), key: (r) => r.trials, number: true },
    { head: "untuned ms", cell: (r) => number(r.untuned), key: (r) => r.untuned ?? 0, number: true }, { head: "fastest ms", cell: (r) => (Number.isFinite(r.best) ? number(r.best) : "none ran"), key: (r) => r.best, number: true },
    { head: "times as fast", cell: (r) => (gain(r) ? number(gain(r)) : ""), key: gain, number: true }, { head: "compiled from", cell: (r) => (r.kernel.record ? "the record" : "the model of the machine") }],
  rows, { sort: 4, detail: (r) => tuning(r.kernel) });
}

function choices(report) {
  const alike = new Map();
  for (const c of report.choices) {
    if (Object.keys(c.expected_ms).length + Object.keys(c.why_not).length < 2) continue;
    const key = JSON.stringify([c.subject, c.taken, c.condition, c.reason]);
    if (!alike.has(key)) alike.set(key, { ...c, sites: [] });
    alike.get(key).sites.push(c.site);
  }
  if (!alike.size) return make("p.mute", {}, "No node could be computed in several ways.");
  const others = (c) => [...Object.entries(c.expected_ms).filter(([n]) => n !== c.taken).map(([n, t]) => (t === null || c.expected_ms[c.taken] == null ? n : `${n} ${change(t / c.expected_ms[c.taken])}`)), ...Object.entries(c.why_not).map(([n, why]) => `${n} not possible: ${why}`)];
  return table("Equal decisions are one row", [
    { head: "what", cell: (c) => c.subject, key: (c) => c.subject }, { head: "taken", cell: (c) => `${c.taken}${c.condition ? ` where ${c.condition}` : ""}`, key: (c) => c.taken },
    { head: "expected ms", cell: (c) => number(c.expected_ms[c.taken]), key: (c) => c.expected_ms[c.taken] ?? 0, number: true },
    { head: "instead", cell: (c) => make("ul.plain", {}, others(c).map((text) => make("li", {}, text))) }, { head: "decided by", cell: (c) => c.reason }, { head: "nodes", cell: (c) => clip(c.sites.join(", "), 160), key: (c) => c.sites.length }], [...alike.values()]);
}

function passes(report) {
  return table(`All passes together ${number(report.prepared_s)} s, before code is generated`, [
    { head: "pass", cell: (p) => p.name }, { head: "ms", cell: (p) => number(p.ms), key: (p) => p.ms, number: true }, { head: "operators after it", cell: (p) => number(p.operators), key: (p) => p.operators, number: true },
    { head: "tensor programs after it", cell: (p) => number(p.programs), key: (p) => p.programs, number: true }, { head: "changed something", cell: (p) => (p.changed ? "yes" : "") }], report.passes);
}

function compared(now, before) {
  const name = (r) => `${r.model} (${r.made}, Roundel ${r.roundel})`, key = (k) => [...k.nodes].sort().join("\n");
  const old = new Map(before.kernels.map((k) => [key(k), k])), rows = now.kernels.map((k) => ({ now: k, before: old.get(key(k)) }));
  const matched = new Set(rows.map((r) => r.before).filter(Boolean));
  rows.push(...before.kernels.filter((k) => !matched.has(k)).map((k) => ({ before: k })));
  const time = (k) => (k ? k.calls * (ms(k) ?? 0) : undefined), ratio = (r) => (r.now && r.before ? time(r.now) / time(r.before) : undefined);
  const facts = [["before", `${name(before)}: ${number(total(before))} ms`], ["now", `${name(now)}: ${number(total(now))} ms`], ["now against before", change(total(now) / total(before))]];
  if (before.target !== now.target) facts.push(["target before", before.target], ["target now", now.target]);
  const detail = (r) => make("div", {}, r.now && r.before ? pairs(r.now, r.before) : make("p", {}, r.now ? "No kernel computed just these nodes before." : "No kernel computes just these nodes any more."), kernelDetail(r.now ?? r.before, now.symbolic.length > 0));
  return make("div", {}, make("ul.plain", {}, facts.map(([n, v]) => make("li", {}, make("span.mute", {}, `${n}: `), v))), table("Kernels of the same nodes, all calls of a run", [
    { head: "kernel", cell: (r) => foldable((r.now ?? r.before).kernel), key: (r) => (r.now ?? r.before).kernel }, { head: "before ms", cell: (r) => number(time(r.before)), key: (r) => time(r.before) ?? 0, number: true }, { head: "now ms", cell: (r) => number(time(r.now)), key: (r) => time(r.now) ?? 0, number: true },
    { head: "difference ms", cell: (r) => number((time(r.now) ?? 0) - (time(r.before) ?? 0)), key: (r) => Math.abs((time(r.now) ?? 0) - (time(r.before) ?? 0)), number: true },
    { head: "ratio", cell: (r) => (ratio(r) === undefined ? "" : make(`span${ratio(r) > 1.02 ? ".worse" : ratio(r) < 0.98 ? ".better" : ""}`, {}, change(ratio(r)))), key: (r) => ratio(r) ?? 1, number: true },
    { head: "decisions", cell: (r) => (r.now && r.before ? (r.now.rule + words(r.now.decisions) === r.before.rule + words(r.before.decisions) ? "as before" : "others") : r.now ? "new" : "gone") }], rows, { sort: 3, detail }));
}

function pairs(now, before) {
  const text = (k) => k.stages.find((s) => s.name === "scheduled")?.text ?? "";
  return make("div", {}, make("p", {}, `Before: ${before.rule} ${words(before.decisions)}. Now: ${now.rule} ${words(now.decisions)}.`),
    text(now) === text(before) ? make("p.mute", {}, "Both programs are the same.") : make("details", {}, make("summary", {}, "Differences of the scheduled programs"), make("pre", { tabindex: 0 }, difference(text(before), text(now)))));
}

function theme() {
  const button = make("button", { type: "button", "aria-pressed": "false", onclick: () => {
    const dark = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(dark));
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  } }, "dark");
  if (matchMedia("(prefers-color-scheme: dark)").matches) button.setAttribute("aria-pressed", "true");
  return button;
}

function page(report, before) {
  const sections = [["overview", "Overview", () => overview(report)], ...(before ? [["compared", "Compared", () => compared(report, before)]] : []), ["graph", "Graph", () => new GraphView(report.graph, choose).element],
    ["kernels", "Kernels", () => kernels(report)], ["roofline", "Roofline", () => roofline(report, choose)], ...(report.kernels.some((k) => k.tuning) ? [["tuning", "Tuning", () => tuned(report)]] : []), ["choices", "Choices", () => choices(report)], ["memory", "Memory", () => arena(report.memory)], ["passes", "Passes", () => passes(report)]];
  document.body.append(
    make("a.skip", { href: "#overview" }, "To the report"),
    make("header", {}, make("div", {}, make("h1", {}, report.model), make("p.mute", {}, `compiled by Roundel ${report.roundel}, ${report.made}`)), theme()),
    make("nav", { "aria-label": "Sections" }, sections.map(([id, title]) => make("a", { href: `#${id}` }, title))),
    make("main", {}, sections.map(([id, title, content]) => section(id, title, content()))));
}

const read = (id) => { const found = document.getElementById(id); return found ? JSON.parse(found.textContent) : null; };
page(read("report"), read("before"));
