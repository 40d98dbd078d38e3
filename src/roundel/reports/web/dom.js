"use strict";
// Elements, numbers in words, sortable tables. Text from the model is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";

function make(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  return fill(element, attributes, children);
}

function draw(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElementNS(SVG, tag);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  return fill(element, attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return element;
}

function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.floor(Math.log10(Math.abs(value)));
  return size >= digits ? Math.round(value).toLocaleString("en") : value.toFixed(Math.min(6, Math.max(0, digits - 1 - size)));
}

function bytes(value) {
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (value < 1024 || unit === "GB") return `${Number(value.toPrecision(3))} ${unit}`;
    value /= 1024;
  }
}

// A name of words that are joined by underscores, which may be folded behind each.
function foldable(name) {
  return make("span", {}, name.split(/(?<=_)/).flatMap((part, k) => (k ? [make("wbr"), part] : [part])));
}

const percent = (share) => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
const words = (decisions) => Object.entries(decisions).map(([k, v]) => `${k}=${v}`).join(" ");

// columns: {head, cell: row => text or element, key: row => value to sort by, number: bool}; detail: row => element shown below the row when it is opened.
function table(caption, columns, rows, { sort = null, descending = true, detail = null, label = (row) => "" } = {}) {
  const body = make("tbody");
  const heads = columns.map((column, k) => {
    const head = make("th", { scope: "col" });
    head.append(column.key ? make("button", { type: "button", onclick: () => order(k) }, column.head) : column.head);
    if (column.number) head.classList.add("number");
    if (column.wide) head.classList.add("wide");
    return head;
  });
  let sorted = null, falling = descending;
  function order(k, first = null) {
    falling = first !== null ? first : sorted === k ? !falling : Boolean(columns[k].number);
    sorted = k;
    heads.forEach((head, j) => (j === k ? head.setAttribute("aria-sort", falling ? "descending" : "ascending") : head.removeAttribute("aria-sort")));
    const value = (row) => columns[k].key(row);
    const compare = (a, b) => (typeof a === "number" || typeof b === "number" ? (a ?? -1) - (b ?? -1) : String(a).localeCompare(String(b)));
    show([...rows].sort((a, b) => compare(value(a), value(b)) * (falling ? -1 : 1)));
  }
  function show(list) {
    body.replaceChildren(...list.flatMap((row) => line(row)));
  }
  function line(row) {
    const tr = make("tr", { id: label(row) || null });
    columns.forEach((column, k) => {
      let cell = column.cell(row);
      if (k === 0 && detail) cell = make("button", { type: "button", "aria-expanded": "false", onclick: (e) => toggle(tr, row, e.currentTarget) }, cell);
      const td = make("td", {}, cell ?? "");
      if (column.number) td.classList.add("number");
      if (k === 0) td.classList.add("name");
      tr.append(td);
    });
    return [tr];
  }
  function toggle(tr, row, button) {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    tr.classList.toggle("open", !open);
    if (open) tr.nextSibling.remove();
    else tr.after(make("tr", {}, make("td.detail", { colspan: columns.length }, detail(row))));
  }
  const made = make("table", {}, make("caption.mute", {}, caption), make("thead", {}, make("tr", {}, heads)), body);
  sort === null ? show(rows) : order(sort, descending);
  return make("div.scroll", { tabindex: "0", role: "group", "aria-label": caption }, made);
}

function section(id, title, ...children) {
  return make("section", { id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, title), ...children);
}
