// SPDX-License-Identifier: Apache-2.0
// The parts of pages that need no browser, called with JSON on standard input: { file, name, arguments }, where { numbers, shape } is a tensor. What is thrown is
// answered as { error }.

import { pathToFileURL } from "node:url";

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const asked = JSON.parse(Buffer.concat(chunks).toString());
const given = (value) => (value?.numbers ? { data: Float32Array.from(value.numbers), shape: value.shape } : Array.isArray(value) ? value.map(given) : value);
const answers = [];
for (const { file, name, values } of asked) {
  const called = (await import(pathToFileURL(file)))[name];
  try {
    answers.push(called(...values.map(given)));
  } catch (error) {
    answers.push({ error: error.message });
  }
}
console.log(JSON.stringify(answers, (_, v) => (ArrayBuffer.isView(v) ? Array.from(v) : typeof v === "bigint" ? String(v) : v)));
