// What keeps people from using a page by keyboard, with a screen reader or with weak eyes: a list of problems in words, empty where there are none.
// After the Web Content Accessibility Guidelines 2.2, level AA: 1.1.1, 1.3.1, 1.4.3, 1.4.11, 2.4.1 to 2.4.4, 2.4.6, 3.1.1, 4.1.2.
(() => {
  const problems = [], say = (rule, element) => problems.push(`${rule}: <${element.tagName.toLowerCase()}${element.id ? ` id=${element.id}` : ""}> ${(element.textContent || "").trim().slice(0, 40)}`);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const isShown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden";
  const named = (e) => (e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean).map((id) => document.getElementById(id)?.textContent ?? "").join(" ")
    || (e.labels && [...e.labels].map((l) => l.textContent).join(" ")) || e.querySelector?.(":scope > title")?.textContent || e.textContent || e.getAttribute("title") || "").trim();
  if (!document.documentElement.lang) problems.push("the page has no language");
  if (!document.title) problems.push("the page has no title");
  if (all("h1").length !== 1) problems.push(`the page has ${all("h1").length} headings of the first level`);
  if (all("main").length !== 1) problems.push(`the page has ${all("main").length} main parts`);
  const ids = all("[id]").map((e) => e.id);
  for (const id of new Set(ids)) if (ids.filter((i) => i === id).length > 1) problems.push(`the id ${id} is there more than once`);
  for (const name of ["aria-labelledby", "aria-controls", "aria-describedby"]) for (const e of all(`[${name}]`)) for (const id of e.getAttribute(name).split(/\s+/)) if (!document.getElementById(id)) say(`${name} names nothing`, e);
  let level = 1;
  for (const e of all("h1, h2, h3, h4, h5, h6").filter(isShown)) { const now = Number(e.tagName[1]); if (now > level + 1) say(`heading of level ${now} after ${level}`, e); level = now; }
  for (const e of all("a[href], button, input, select, textarea, summary, [role=button], [role=img], [role=region], [role=group], [role=tab], svg:not([aria-hidden])").filter(isShown)) if (!named(e)) say("no name", e);
  for (const e of all("[tabindex]")) if (e.tabIndex > 0) say("an order of its own for the tab key", e);
  for (const e of all("a[href^='#']")) if (!document.getElementById(e.hash.slice(1))) say("a link that leads nowhere", e);
  for (const e of all("table")) {
    if (![...e.rows].some((r) => r.querySelector("th"))) say("a table without heads", e);
    if (!e.caption && !e.getAttribute("aria-label")) say("a table without a caption", e);
    for (const head of e.querySelectorAll("th")) if (!head.textContent.trim()) say("an empty head of a column", head);
  }
  for (const e of all("*").filter((e) => e.scrollHeight > e.clientHeight + 2 && /auto|scroll/.test(getComputedStyle(e).overflowY) && isShown(e) && e !== document.documentElement && e !== document.body))
    if (e.tabIndex < 0 && !e.querySelector("a[href], button, input, [tabindex='0']")) say("scrolls, and the keyboard does not reach it", e);
  const parse = (text) => { const v = (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number); return text.startsWith("color(srgb") ? [v[0] * 255, v[1] * 255, v[2] * 255, v[3] ?? 1] : [v[0], v[1], v[2], v[3] ?? 1]; };
  const over = (top, below) => [0, 1, 2].map((k) => top[k] * top[3] + below[k] * (1 - top[3])).concat(1);
  const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const base = getComputedStyle(document.documentElement).colorScheme.startsWith("dark") ? [0, 0, 0, 1] : [255, 255, 255, 1];
  const behind = (e) => { const layers = []; for (let at = e; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor)); return layers.reverse().reduce((below, top) => over(top, below), base); };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    if (!node.textContent.trim() || !isShown(e) || ["SCRIPT", "STYLE", "NOSCRIPT", "TITLE", "title"].includes(e.tagName)) continue;
    const style = getComputedStyle(e), isDrawn = e.namespaceURI.endsWith("svg");
    let back = behind(isDrawn ? e.ownerSVGElement : e);
    const box = isDrawn && e.parentElement.querySelector(":scope > rect");
    if (box) back = over(parse(getComputedStyle(box).fill), back);
    const ink = over(parse(isDrawn ? style.fill : style.color), back), size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const found = contrast(ink, back), key = `${e.tagName} ${e.className?.baseVal ?? e.className} ${found.toFixed(1)}`;
    if (found < (isLarge ? 3 : 4.5) && !seen.has(key)) { seen.add(key); say(`contrast ${found.toFixed(2)}`, e); }
  }
  return problems;
})()
