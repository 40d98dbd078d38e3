// SPDX-License-Identifier: Apache-2.0
// The page: shows the form for the model's kind, loads the model in a worker meanwhile, and shows how long a run took and what memory it has.

import { make } from "./dom.mjs";

const at = (id) => document.getElementById(id);

class Runner {
  #worker = new Worker(new URL("worker.mjs", import.meta.url), { type: "module" });
  #waiting = new Map();
  #count = 0;

  constructor(onProgress) {
    this.#worker.onmessage = ({ data }) => {
      if (data.progress) return onProgress(data.progress);
      const { resolve, reject } = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      return "error" in data ? reject(new Error(data.error)) : resolve(data.answer);
    };
    this.#worker.onerror = (event) => this.#waiting.forEach(({ reject }) => reject(new Error(event.message || "the worker could not be started")));
  }

  ask(kind, question) {
    const id = (this.#count += 1);
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, kind, ...question });
    });
  }
}

function say(text) {
  at("status").textContent = text;
}

function fail(error) {
  at("error").textContent = error.message;
  at("error").hidden = false;
}

function clear() {
  at("error").hidden = true;
}

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** A fact of the page, in a place of its own that stays where it is. */
function note(name, value = "–") {
  const facts = at("facts");
  const known = [...facts.children].find((div) => div.firstChild.textContent === name);
  if (known) known.lastChild.textContent = value;
  else facts.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
}

function failToLoad(error) {
  at("progress").hidden = true;
  say("The model could not be loaded.");
  fail(error);
  document.body.dataset.state = "failed";
}

async function start() {
  const begin = performance.now();
  for (const name of ["Loaded in", "Latency", "Threads", "Memory"]) note(name);
  const site = await (await fetch(new URL("site.json", import.meta.url))).json();
  const runner = new Runner(({ loaded, total }) => {
    at("progress").value = total ? loaded / total : 0;
    say(`Loading the model: ${megabytes(loaded)} of ${megabytes(total)}`);
  });
  const threads = Number(new URLSearchParams(location.search).get("threads")) || undefined;
  const loading = runner.ask("load", { modules: site.modules, threads, carried: site.states });
  loading.catch(() => {}); // told below
  /** Runs the model, when it has been loaded, on `inputs` by their places, of which states are left out: `{ outputs, ms }`, or null where it failed.
   * `restart`: states begin anew. `quiet`: one of many runs, which are not announced. */
  const run = async (inputs, { restart = false, quiet = false } = {}) => {
    clear();
    try {
      await loading;
      if (!quiet) say("Running ...");
      const { outputs, ms, memory } = await runner.ask("run", { inputs, restart });
      note("Latency", `${ms.toFixed(1)} ms`);
      note("Memory", megabytes(memory));
      if (!quiet) say("Done.");
      return { outputs, ms };
    } catch (error) {
      say("The run failed.");
      fail(error);
      return null;
    }
  };
  const { default: form } = await import(`./${site.form}`);
  await form({ site, run, say, fail, clear, note, give: at("give"), results: at("results") });
  at("facts").hidden = at("give").hidden = at("results").hidden = false;
  const model = await loading;
  note("Loaded in", `${Math.round(performance.now() - begin)} ms`);
  note("Threads", String(model.threads));
  note("Memory", megabytes(model.memory));
  at("progress").hidden = true;
  say("Ready.");
  document.body.dataset.state = "ready";
}

start().catch(failToLoad);
if ("serviceWorker" in navigator && window.isSecureContext) navigator.serviceWorker.register("offline.js").catch(() => {}); // without it, no visits offline
