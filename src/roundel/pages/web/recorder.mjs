// SPDX-License-Identifier: Apache-2.0
// Runs where sound is played and recorded: passes on what comes in.

class Recorder extends AudioWorkletProcessor {
  process([[samples]]) {
    if (samples) this.port.postMessage(samples.slice());
    return true;
  }
}

registerProcessor("recorder", Recorder);
