// A described model: outputs, answers in words, coordinates and the samples that it came with.

import { Network } from "./network.js";
import { unpack } from "./payload.js";
import { runScript } from "./scripts.js";

export class PageModel {
  constructor(described) {
    Object.assign(this, described);
    this.network = new Network(described.dtype, described.layers, described.tensors);
    this.index = new Map((described.vocabulary ?? []).map((word, id) => [word, id]));
  }

  // Tokens whose answers are shown: all, or the one that answers for its sequence.
  asked(tokens) {
    if (this.kind === "text" || this.scope === "last") return [tokens.length - 1];
    return this.scope === "sequence" ? [0] : tokens.map((_, i) => i);
  }

  // Tokens as ids or lists of numbers; an id of -1 is a word that the model does not know.
  run(tokens, options = {}) {
    return this.network.run(tokens, { asked: this.asked(tokens), ...options });
  }

  outputs(tokens) {
    return this.run(tokens).outputs.map((row) => [...row]);
  }

  // One row of outputs in words.
  answer(row) {
    if (this.classes) {
      const number = this.logits && row.length > 1 ? largest(row) : evenly(row[0]);
      return this.classes[Math.min(Math.max(number, 0), this.classes.length - 1)];
    }
    return [...row].map(formatNumber).join(", ");
  }

  get uniform() {
    const { W_Q, W_K } = this.network.layers[0];
    return this.layers[0].kind !== "softmax" || [W_Q, W_K].some((W) => W.data.every((x) => x === 0));
  }

  // Stored sequence number i as ids or lists of numbers; further ones are those that a server gave.
  sample(i) {
    const { tokens, lengths, first } = i < this.sampleCount ? { ...this.samples, first: 0 } : this.further;
    const [, n, d] = tokens.shape;
    const row = i - first;
    const length = lengths ? lengths.data[row] : n;
    const at = (k) => (d === undefined ? tokens.data[row * n + k] : [...tokens.data.subarray((row * n + k) * d, (row * n + k + 1) * d)]);
    return Array.from({ length }, (_, k) => at(k));
  }

  holds(i) {
    return i < this.sampleCount || (this.further && i >= this.further.first && i < this.further.first + this.further.tokens.shape[0]);
  }

  // Asks the server for the sequences from number i on.
  async fetchSamples(i) {
    const { samples } = await unpack(new Uint8Array(await (await fetch(`samples?start=${i}`)).arrayBuffer()));
    this.further = { ...samples, first: i };
  }

  get sampleCount() {
    return this.samples.tokens.shape[0];
  }

  unitNames(value) {
    return this.units[value] ?? [];
  }

  // Tokens of a learner's prompt: examples first, then queries.
  prompt(X, Y, queries) {
    const { learner } = this;
    const judging = learner.judges && X.length ? Math.max(1, Math.floor(learner.judges * X.length)) : 0;
    const examples = X.map((x, i) => {
      const script = i >= X.length - judging ? learner.judge : learner.example;
      return runScript(script, { s: learner.start, x, y: Y[i] });
    });
    const asked = learner.query ? queries.map((x) => runScript(learner.query, { s: learner.start, x })) : [];
    return { tokens: [...examples, ...asked], first: learner.query ? X.length : 0 };
  }

  // Answers at the queries; the first of a row is the first component.
  learn(X, Y, queries) {
    const { tokens, first } = this.prompt(X, Y, queries);
    const asked = tokens.map((_, i) => i).slice(first);
    return this.network.run(tokens, { asked }).outputs.map((row) => [...row]);
  }
}

// To the nearest whole number, of two the even one, as NumPy rounds.
function evenly(x) {
  const low = Math.floor(x);
  if (x - low !== 0.5) return Math.round(x);
  return low % 2 ? low + 1 : low;
}

// The number of the largest, of equals the first.
export function largest(row) {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i] > row[best]) best = i;
  return best;
}

export function formatNumber(x) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (!Number.isFinite(x)) return String(x);
  if (size >= 1e5 || size < 1e-3) return x.toExponential(2).replace("e+", "e");
  return String(Number(x.toPrecision(4)));
}
