// What is to be seen of a kernel: why it is as it is, what else there was, and its text at every stage with the differences.

function kernelDetail(kernel, symbolic) {
  const parts = [];
  const facts = [["operators' nodes", kernel.nodes.join(", ")], ["implementation", `${kernel.rule} ${words(kernel.decisions)}`], ["decided by", reason(kernel)],
    ["work", `${number(kernel.mflop)} MFLOP, ${number(kernel.mbytes)} MB moved at least, limited by ${kernel.limit}`]];
  parts.push(make("ul.plain", {}, facts.map(([name, value]) => make("li", {}, make("span.mute", {}, `${name}: `), value))));
  if (kernel.alternatives.length) {
    parts.push(table(`${kernel.candidates} candidates; those expected next best${symbolic ? " (at the sizes that are assumed for symbolic dimensions)" : ""}`, [
      { head: "decisions that differ", cell: ([decisions]) => words(Object.fromEntries(Object.entries(decisions).filter(([k, v]) => kernel.decisions[k] !== v))) },
      { head: "expected ms", cell: ([, ms]) => number(ms), number: true },
      { head: "against the chosen one", cell: ([, ms]) => change(ms / kernel.modelled_ms), number: true }], kernel.alternatives));
  }
  if (kernel.record?.second?.length) {
    parts.push(table("Measured, and slower", [
      { head: "schedule", cell: (r) => `${r.rule} ${words(r.decisions)}` }, { head: "ms", cell: (r) => number(r.ms), number: true },
      { head: "against the chosen one", cell: (r) => change(r.ms / kernel.record.ms), number: true }], kernel.record.second));
  }
  if (kernel.tuning) parts.push(tuning(kernel));
  const passed = Object.entries(kernel.passed_over);
  if (passed.length) parts.push(make("details", {}, make("summary", {}, `${passed.length} other implementation${passed.length === 1 ? "" : "s"}, and why not taken`), make("ul", {}, passed.map(([name, why]) => make("li", {}, `${name}: ${why}`)))));
  parts.push(stages(kernel.stages));
  return make("div", {}, parts);
}

function reason(kernel) {
  if (kernel.record) return `${kernel.record.origin}: ${number(kernel.record.ms)} ms${kernel.record.untuned_ms ? `, untuned ${number(kernel.record.untuned_ms)} ms` : ""}`;
  return Object.keys(kernel.pinned).length ? `pinned: ${words(kernel.pinned)}` : "the model of the machine";
}

function change(ratio) { return `${ratio >= 1 ? "+" : "−"}${Math.abs((ratio - 1) * 100).toFixed(1)} %`; }

function stages(list) {
  const text = make("pre", { tabindex: 0 });
  const compare = make("input", { type: "checkbox", onchange: () => show(current) }), label = make("label", {}, compare, make("span"));
  let current = 0;
  const tabs = list.map((stage, k) => make("button", { type: "button", role: "tab", "aria-selected": "false", tabindex: -1, onclick: () => show(k),
    onkeydown: (e) => { const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key]; if (step) { const next = (k + step + list.length) % list.length; show(next); tabs[next].focus(); } } }, stage.name));
  function show(k) {
    current = k;
    tabs.forEach((tab, j) => { tab.setAttribute("aria-selected", String(j === k)); tab.tabIndex = j === k ? 0 : -1; });
    const { against } = list[k], before = against !== null && compare.checked ? list[against].text : null;
    label.hidden = against === null;
    if (against !== null) label.lastChild.textContent = ` what changed since the stage "${list[against].name}"`;
    text.setAttribute("aria-label", list[k].name);
    text.replaceChildren(...(before === null ? [list[k].text] : difference(before, list[k].text)));
  }
  show(0);
  return make("div", {}, make("div.tabs", { role: "tablist", "aria-label": "Stages" }, tabs), make("p", {}, label), text);
}

// Lines that were removed and added, by the longest common subsequence (Myers, "An O(ND) difference algorithm", 1986).
function difference(before, after) {
  const a = before.split("\n"), b = after.split("\n"), most = 4000;
  const line = (kind, sign, words) => make(`span${kind}`, {}, `${sign} ${words}`);
  if (a.length + b.length > most) return [line("", " ", `(more than ${most} lines: not compared)`), after];
  const max = a.length + b.length, ends = new Map([[1, 0]]), history = [];
  search: for (let d = 0; d <= max; d++) {
    history.push(new Map(ends));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (ends.get(k - 1) ?? -1) < (ends.get(k + 1) ?? -1)) ? ends.get(k + 1) ?? 0 : (ends.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) { x++; y++; }
      ends.set(k, x);
      if (x >= a.length && y >= b.length) break search;
    }
  }
  const out = [];
  let x = a.length, y = b.length;
  for (let d = history.length - 1; d >= 0; d--) {
    const known = history[d], k = x - y;
    const above = k === -d || (k !== d && (known.get(k - 1) ?? -1) < (known.get(k + 1) ?? -1)) ? k + 1 : k - 1;
    const px = d === 0 ? 0 : known.get(above) ?? 0, py = d === 0 ? 0 : px - above;
    while (x > px && y > py) { out.push(line("", " ", a[--x])); y--; }
    if (d > 0) { if (x === px) out.push(line(".added", "+", b[--y])); else out.push(line(".removed", "-", a[--x])); }
  }
  return out.reverse();
}
