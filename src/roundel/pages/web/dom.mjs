// SPDX-License-Identifier: Apache-2.0

/** An element with properties (names with a hyphen, and role, are attributes) and children. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((c) => c !== null));
  return element;
}

/** A button that does something. */
export function button(text, act, properties = {}) {
  const element = make("button", { type: "button", ...properties }, text);
  element.addEventListener("click", act);
  return element;
}

/** A table: `heads` are texts, of which those that begin with # are of numbers; each row begins with its head. Where
 * it is wider than the page, it alone moves. */
export function table(caption, heads, rows) {
  const classes = heads.map((h) => (h.startsWith("#") ? "number" : h === "Of 100 %" ? "bar" : ""));
  const head = make("tr", {}, ...heads.map((h, k) => make("th", { scope: "col", className: classes[k] }, h.replace("#", ""))));
  const body = rows.map(([first, ...rest]) =>
    make("tr", {}, make("th", { scope: "row" }, first), ...rest.map((cell, k) => make("td", { className: classes[k + 1] }, cell))));
  const whole = make("table", {}, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...body));
  return make("div", { className: "across", tabIndex: 0, role: "region", "aria-label": caption }, whole);
}

/** A bar from 0 to 1 with a name. */
export const bar = (share, name) => make("meter", { min: 0, max: 1, value: share, "aria-label": `${name}: ${percent(share)}` });

export const percent = (share) => `${(100 * share).toFixed(1)} %`;

/** Lets a file be dropped on an element. */
export function takesFiles(element, take) {
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    element.classList.add("over");
  });
  element.addEventListener("dragleave", () => element.classList.remove("over"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    element.classList.remove("over");
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
}
