// The model's graph: modules are folded until they are opened, and only what is in view is drawn, so that thousands of nodes stay fluid.

const BOX = { width: 190, height: 44, gapX: 26, gapY: 44 };

class GraphView {
  constructor(graph, choose) {
    this.graph = graph;
    this.choose = choose;
    this.open = new Set();
    this.into = graph.nodes.map(() => []);
    this.from = graph.nodes.map(() => []);
    for (const [a, b] of graph.edges) { this.from[a].push(b); this.into[b].push(a); }
    this.svg = draw("svg.graph", { role: "group", "aria-label": "Graph of the model. Tab moves between nodes, Enter opens a module or shows a node's kernel, arrow keys move the picture, plus and minus zoom.", tabindex: 0 });
    this.view = { x: 0, y: 0, scale: 1 };
    this.listen();
    this.status = make("p.mute", { "aria-live": "polite" });
    const buttons = [["Fold all", () => this.foldAll()], ["Open one level", () => this.openLevel()], ["Show all of it", () => this.fit()]]
      .map(([text, act]) => make("button", { type: "button", onclick: act }, text));
    const search = make("input", { type: "search", placeholder: "find a node", "aria-label": "Find a node by its name or operator", oninput: (e) => this.find(e.target.value) });
    this.element = make("div", {}, make("div.tabs", {}, buttons, search), this.svg, this.status);
    this.layOut();
    requestAnimationFrame(() => this.fit());
  }

  // The item that stands for a node: the outermost closed module around it, or the node.
  item(k) {
    const { path } = this.graph.nodes[k];
    for (let depth = 1; depth <= path.length; depth++) {
      const name = path.slice(0, depth).join("/");
      if (!this.open.has(name)) return `m:${name}`;
    }
    return `n:${k}`;
  }

  layOut() {
    const items = new Map(), of = this.graph.nodes.map((_, k) => this.item(k));
    of.forEach((id, k) => {
      if (!items.has(id)) items.set(id, { id, nodes: [], rank: 0, into: new Set(), from: new Set(), first: k });
      items.get(id).nodes.push(k);
    });
    for (const [a, b] of this.graph.edges) if (of[a] !== of[b]) { items.get(of[a]).from.add(of[b]); items.get(of[b]).into.add(of[a]); }
    const ordered = [...items.values()].sort((a, b) => a.first - b.first);
    ordered.forEach((item, k) => (item.order = k));
    for (const item of ordered) for (const next of item.from) { const other = items.get(next); if (other.order > item.order) other.rank = Math.max(other.rank, item.rank + 1); }
    const ranks = [];
    for (const item of ordered) (ranks[item.rank] ??= []).push(item);
    for (let sweep = 0; sweep < 4; sweep++) for (const rank of ranks) {
      for (const item of rank) { const near = [...item.into].map((id) => items.get(id).at ?? 0); item.wish = near.length ? near.reduce((a, b) => a + b) / near.length : item.at ?? 0; }
      rank.sort((a, b) => a.wish - b.wish || a.order - b.order);
      rank.forEach((item, k) => (item.at = k - (rank.length - 1) / 2));
    }
    for (const item of ordered) { item.x = item.at * (BOX.width + BOX.gapX); item.y = item.rank * (BOX.height + BOX.gapY); }
    this.items = items;
    this.ordered = ordered;
    this.status.textContent = `${this.graph.nodes.length} nodes, ${ordered.length} boxes`;
    this.schedule();
  }

  schedule() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.render(); });
  }

  render() {
    const { width, height } = this.svg.getBoundingClientRect(), { x, y, scale } = this.view;
    const seen = (item) => item.x > x - BOX.width && item.x < x + width / scale + BOX.width && item.y > y - BOX.height * 2 && item.y < y + height / scale + BOX.height;
    this.svg.setAttribute("viewBox", `${x} ${y} ${Math.max(1, width / scale)} ${Math.max(1, height / scale)}`);
    const shown = this.ordered.filter(seen), focused = document.activeElement?.dataset?.item;
    const lines = draw("g"), boxes = draw("g"), done = new Set();
    for (const item of shown) for (const [id, isOut] of [...[...item.from].map((i) => [i, true]), ...[...item.into].map((i) => [i, false])]) {
      const other = this.items.get(id), [a, b] = isOut ? [item, other] : [other, item], key = `${a.id}>${b.id}`;
      if (done.has(key) || b.order < a.order) continue;
      done.add(key);
      const y0 = a.y + BOX.height / 2, y1 = b.y - BOX.height / 2, bend = Math.max(20, (y1 - y0) / 2);
      lines.append(draw("path", { d: `M${a.x},${y0}C${a.x},${y0 + bend} ${b.x},${y1 - bend} ${b.x},${y1}` }));
    }
    if (shown.length <= 1500) for (const item of shown) boxes.append(this.box(item, scale));
    this.svg.replaceChildren(lines, boxes);
    if (focused) this.svg.querySelector(`[data-item="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  box(item, scale) {
    const isGroup = item.id.startsWith("m:"), node = this.graph.nodes[item.nodes[0]];
    const name = isGroup ? item.id.slice(2).split("/").pop() : node.name;
    const second = isGroup ? `${item.nodes.length} nodes` : [node.op, node.out].filter(Boolean).join("  ");
    const label = isGroup ? `${clip(name, 26)} ${second}, closed module ${item.id.slice(2)}` : `${clip(node.name, 26)} ${clip(second, 28)}, ${node.kind === "node" ? `node ${node.name}: ${node.op} ${node.out}` : node.kind}${node.kernels.length ? `, kernel ${node.kernels.join(", ")}` : ""}`;
    const act = () => (isGroup ? this.unfold(item) : node.kernels.length && this.choose(node.kernels[0]));
    const g = draw(`g.node${isGroup ? ".group" : ""}${this.found?.has(item.id) ? ".chosen" : ""}`, { tabindex: 0, role: "button", "data-item": item.id, transform: `translate(${item.x - BOX.width / 2},${item.y - BOX.height / 2})`,
      onclick: act, onkeydown: (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); act(); } } });
    g.append(draw("rect.box", { width: BOX.width, height: BOX.height, rx: 5 }));
    if (node.kernels.length && !isGroup) g.append(draw("rect", { width: 5, height: BOX.height, fill: `var(--c${this.colour(node.kernels[0])})` }));
    if (scale > 0.25) g.append(draw("text", { x: 12, y: 18 }, clip(name, 26)), draw("text.mute", { x: 12, y: 35 }, clip(second, 28)));
    g.append(draw("title", {}, label));
    return g;
  }

  colour(kernel) {
    let sum = 0;
    for (const c of kernel) sum = (sum * 31 + c.charCodeAt(0)) >>> 0;
    return sum % 8;
  }

  unfold(item) { this.open.add(item.id.slice(2)); this.layOut(); }
  foldAll() { this.open.clear(); this.layOut(); this.fit(); }
  openLevel() {
    for (const item of this.ordered) if (item.id.startsWith("m:")) this.open.add(item.id.slice(2));
    this.layOut();
    this.fit();
  }

  find(text) {
    const wanted = text.trim().toLowerCase();
    this.found = new Set();
    if (wanted) this.graph.nodes.forEach((n, k) => { if (n.name.toLowerCase().includes(wanted) || n.op.toLowerCase().includes(wanted)) this.found.add(this.item(k)); });
    const first = this.ordered.find((item) => this.found.has(item.id));
    this.status.textContent = wanted ? `${this.found.size} found` : `${this.graph.nodes.length} nodes, ${this.ordered.length} boxes`;
    if (first) this.centre(first);
    this.schedule();
  }

  centre(item) {
    const { width, height } = this.svg.getBoundingClientRect();
    this.view.x = item.x - width / this.view.scale / 2;
    this.view.y = item.y - height / this.view.scale / 2;
  }

  fit() {
    const { width, height } = this.svg.getBoundingClientRect();
    const low = (key) => Math.min(...this.ordered.map((i) => i[key])), high = (key) => Math.max(...this.ordered.map((i) => i[key]));
    const [x0, x1, y0, y1] = [low("x") - BOX.width, high("x") + BOX.width, low("y") - BOX.height, high("y") + BOX.height];
    this.view.scale = Math.min(1.2, Math.max(0.05, Math.min(width / (x1 - x0), height / (y1 - y0))));
    if (this.view.scale < 0.35) this.view.scale = Math.min(1, Math.max(0.35, width / (x1 - x0)));
    this.view.x = (x0 + x1) / 2 - width / this.view.scale / 2;
    this.view.y = Math.max(y0, (y0 + y1) / 2 - height / this.view.scale / 2) < y0 + 1 || height / this.view.scale > y1 - y0 ? (y0 + y1) / 2 - height / this.view.scale / 2 : y0;
    this.schedule();
  }

  zoom(factor, cx, cy) {
    const scale = Math.min(4, Math.max(0.03, this.view.scale * factor));
    this.view.x += cx / this.view.scale - cx / scale;
    this.view.y += cy / this.view.scale - cy / scale;
    this.view.scale = scale;
    this.schedule();
  }

  listen() {
    const svg = this.svg;
    let from = null;
    svg.addEventListener("pointerdown", (e) => { from = { x: e.clientX, y: e.clientY }; });
    svg.addEventListener("pointermove", (e) => {
      if (!from || !e.buttons) return;
      this.view.x -= (e.clientX - from.x) / this.view.scale;
      this.view.y -= (e.clientY - from.y) / this.view.scale;
      from = { x: e.clientX, y: e.clientY };
      this.schedule();
    });
    svg.addEventListener("pointerup", () => { from = null; });
    svg.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.shiftKey && document.activeElement !== svg && !svg.contains(document.activeElement)) return;
      e.preventDefault();
      const box = svg.getBoundingClientRect();
      this.zoom(e.deltaY < 0 ? 1.15 : 1 / 1.15, e.clientX - box.left, e.clientY - box.top);
    }, { passive: false });
    svg.addEventListener("keydown", (e) => {
      const { width, height } = svg.getBoundingClientRect(), step = 60 / this.view.scale;
      const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
      if (moves[e.key]) { this.view.x += moves[e.key][0]; this.view.y += moves[e.key][1]; this.schedule(); e.preventDefault(); }
      else if (e.key === "+" || e.key === "=") this.zoom(1.25, width / 2, height / 2);
      else if (e.key === "-") this.zoom(0.8, width / 2, height / 2);
    });
    new ResizeObserver(() => this.schedule()).observe(svg);
  }
}

function clip(text, length) { return text.length > length ? `${text.slice(0, length - 1)}…` : text; }
