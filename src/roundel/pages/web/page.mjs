// SPDX-License-Identifier: Apache-2.0
// The page: loads the model in a worker, asks for what it takes, shows what it gives, how long that took and what memory it has.

import { make } from "./dom.mjs";
import { numbersForm } from "./numbers.mjs";
import { pictureForm } from "./picture.mjs";

const at = (id) => document.getElementById(id);
const FORMS = { picture: pictureForm, numbers: numbersForm };

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

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

function showFacts(facts) {
  at("facts").replaceChildren(...Object.entries(facts).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  at("facts").hidden = false;
}

async function start() {
  const begin = performance.now();
  const site = await (await fetch(new URL("site.json", import.meta.url))).json();
  const runner = new Runner(({ loaded, total }) => {
    at("progress").value = total ? loaded / total : 0;
    say(`Loading the model: ${megabytes(loaded)} of ${megabytes(total)}`);
  });
  const threads = Number(new URLSearchParams(location.search).get("threads")) || undefined;
  const model = await runner.ask("load", { modules: site.modules, threads });
  const loading = `${Math.round(performance.now() - begin)} ms`;
  at("progress").hidden = true;
  say("Ready.");
  showFacts({ "Loaded in": loading, Threads: model.threads, Memory: megabytes(model.memory) });
  const run = async (inputs) => {
    at("error").hidden = true;
    say("Running ...");
    try {
      const { outputs, ms, memory } = await runner.ask("run", { inputs });
      showFacts({ "Loaded in": loading, Latency: `${ms.toFixed(1)} ms`, Threads: model.threads, Memory: megabytes(memory) });
      say("Done.");
      at("results").hidden = false;
      return outputs;
    } catch (error) {
      say("The run failed.");
      fail(error);
      return null;
    }
  };
  FORMS[site.kind]({ site, model, run, fail, give: at("give"), results: at("results") });
  at("give").hidden = false;
  document.body.dataset.state = "ready";
}

if ("serviceWorker" in navigator && window.isSecureContext) navigator.serviceWorker.register("offline.js").catch(() => {}); // without it, no visits offline
start().catch((error) => {
  at("progress").hidden = true;
  say("The model could not be loaded.");
  fail(error);
  document.body.dataset.state = "failed";
});
