// Where stored contexts lie on the lines of a readout, at any temperature.

const MOST_SEQUENCES = 200;
const PATIENCE = 150; // milliseconds; as many sequences are drawn as can be run in that time, and ten at least

export class Contexts {
  constructor(model) {
    this.model = model;
    this.depth = Math.max(...model.lines.map((line) => line.depth), 0);
    this.known = new Map();
  }

  // The sequences that are drawn, with their answers.
  get drawn() {
    if (this.found) return this.found;
    this.found = [];
    const began = performance.now();
    const { model } = this;
    for (let i = 0; i < Math.min(model.sampleCount, MOST_SEQUENCES); i++) {
      if (i >= 10 && performance.now() - began > PATIENCE) break;
      const tokens = model.sample(i);
      this.found.push({ tokens, answers: model.run(tokens).outputs.map((row) => [...row].join()) });
    }
    return this.found;
  }

  // [{at, answer}] of every context on one line, logits multiplied by `sharpness`.
  on(line, sharpness = 1) {
    if (!this.known.has(sharpness)) {
      if (this.known.size > 64) this.known.clear();
      this.known.set(sharpness, this.drawn.map(({ tokens }) => this.model.run(tokens, { sharpness, depth: this.depth })));
    }
    return this.known.get(sharpness).flatMap(({ seen, asked }, i) => {
      const rows = line.depth ? seen.stacks[line.value] : seen.context;
      return asked.map((place, k) => ({ at: rows[place][line.coordinate], answer: this.drawn[i].answers[k] }));
    });
  }
}
