// SPDX-License-Identifier: Apache-2.0

/** An element with properties and children. */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((c) => c !== null));
  return element;
}
