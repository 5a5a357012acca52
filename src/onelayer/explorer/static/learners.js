// A learner: examples go in, and the answers at the queries come out, loop by loop.

import { button, card, fitted, html, scale, svg, ticks } from "./draw.js";
import { formatNumber } from "./models.js";

const EXAMPLES = 8;
const QUERIES = 3;
const MOST_EXAMPLES = 12;

// Numbers between 0 and 1, the same in every page.
function* randomNumbers(seed) {
  for (let state = seed >>> 0; ; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

export class LearnerView {
  constructor(model) {
    this.model = model;
    this.learner = model.learner;
    this.seed = 1;
    this.input = card("Examples", "The prompt: examples with their answers, then queries. Change any number.", { wide: true, name: "examples" });
    this.answers = card("Answers", this.promise(), { name: "answers" });
    this.loops = card("Loop by loop", `The same layer is run ${model.layers[0].repeat === 1 ? "once" : `${model.layers[0].repeat} times`}: ${this.learner.words}.`, { name: "loops" });
    this.state = card("State", "Channels of the last query's token after every loop.", { wide: true, name: "state" });
    this.plot = html("div", { class: "plot" });
    this.loops.body.append(this.plot);
    this.draw = fitted(this.plot, (width) => this.drawLoops(width));
    this.channels = html("div", { class: "plot" });
    this.state.body.append(this.channels);
    this.drawState = fitted(this.channels, (width) => this.drawChannels(width));
    const single = model.layers.length === 1 && model.layers[0].repeat === 1;
    this.nodes = [this.input.node, this.answers.node, this.loops.node, single ? null : this.state.node].filter(Boolean);
    this.fresh();
  }

  promise() {
    const { bound } = this.learner;
    if (!this.model.certificate.claims) return "What the network gives; nothing is certified of it.";
    const equal = "Certified: in real arithmetic this is the algorithm, for all examples and any number of them.";
    return bound === null ? equal : `${equal} It is within ${formatNumber(bound)} of its limit.`;
  }

  // Examples near a linear rule, or labels by its sign; a series goes round and round.
  fresh() {
    const { learner } = this;
    const random = randomNumbers(this.seed++);
    const draw = (low, high) => Number((low + (high - low) * random.next().value).toFixed(2));
    if (learner.reads === "series") {
      const size = Math.min(1, learner.largest);
      const [pace, phase] = [0.5 + random.next().value, 6 * random.next().value];
      this.series = Array.from({ length: EXAMPLES + learner.lags }, (_, t) => Array.from({ length: learner.y }, (__, c) => Number((size * Math.sin(pace * t + phase + c)).toFixed(2))));
      this.readSeries();
    } else {
      const rule = Array.from({ length: learner.y }, () => Array.from({ length: learner.x }, () => draw(-1, 1)));
      const vector = () => Array.from({ length: learner.x }, () => draw(learner.low, learner.high));
      const most = Math.max(...rule.map((w) => w.reduce((sum, a) => sum + Math.abs(a) * Math.max(Math.abs(learner.low), Math.abs(learner.high)), 0)), 1e-9);
      this.X = Array.from({ length: EXAMPLES }, vector);
      this.Y = this.X.map((x) => rule.map((w) => {
        const value = w.reduce((sum, a, c) => sum + a * x[c], 0);
        return learner.labels ? Number(value > 0) : Number(((value / most) * Math.min(1, learner.largest)).toFixed(2));
      }));
      this.queries = Array.from({ length: QUERIES }, vector);
    }
    this.fields();
    this.show();
  }

  readSeries() {
    const { lags } = this.learner;
    const after = this.series.slice(lags);
    this.X = after.map((_, t) => Array.from({ length: lags }, (__, k) => this.series[lags + t - k - 1]).flat());
    this.Y = after;
    this.queries = [];
  }

  fields() {
    const field = (rows, i, c, name) =>
      html("td", {}, html("input", { type: "number", step: "any", class: "real", value: rows[i][c], "aria-label": `${name} ${i + 1}, component ${c + 1}`, onchange: (event) => {
        rows[i][c] = Number(event.target.value);
        if (this.series) this.readSeries();
        this.show();
      } }));
    const table = (title, blocks) =>
      html("div", { class: "scroll" }, html("h3", {}, title), html("table", { class: "examples" }, html("tbody", {}, blocks[0][1].slice(0, MOST_EXAMPLES).map((_, i) => html("tr", {}, html("th", { scope: "row" }, String(i + 1)), blocks.map(([name, rows]) => rows[i].map((__, c) => field(rows, i, c, name))))))));
    const parts = this.series ? [table("Values of the series", [["value", this.series]])] : [table("Examples: x, then y", [["x", this.X], ["y", this.Y]]), table("Queries", [["query", this.queries]])];
    this.input.body.replaceChildren(html("div", { class: "pair" }, parts), html("div", { class: "bar-of-buttons" }, button("other examples", () => this.fresh())));
  }

  show() {
    const { tokens, first } = this.model.prompt(this.X, this.Y, this.queries);
    this.first = first;
    const asked = tokens.map((_, i) => i).slice(first);
    this.found = this.model.network.run(tokens, { asked });
    const name = this.series ? (i) => `after value ${i + 1 + this.learner.lags}` : (i) => `query ${i + 1}`;
    const rows = this.found.outputs.map((row, i) => html("tr", {}, html("th", { scope: "row" }, name(i)), [...row].map((x) => html("td", { class: "number" }, formatNumber(x)))));
    this.answers.body.replaceChildren(html("table", { class: "codes" }, html("tbody", {}, rows)));
    this.draw();
    this.drawState();
  }

  // Answers of all that are asked after every loop; of a single pass, what it gave.
  history() {
    const { network } = this.model;
    const contexts = this.found.seen.loops.length ? this.found.seen.loops : [this.found.seen.context];
    return contexts.map((rows) => this.found.asked.map((i) => network.readOff(rows[i])[0]));
  }

  drawLoops(width) {
    const history = this.history();
    return drawSeries(width, history.length > 1 ? history : [history[0], history[0]], history.length, "loops", this.found.asked.map((_, i) => i < 3 ? `query ${i + 1}` : ""));
  }

  drawChannels(width) {
    const last = this.found.asked[this.found.asked.length - 1];
    const names = this.model.network.readout.length ? this.model.unitNames("context") : [];
    const rows = this.found.seen.loops.map((contexts) => [...contexts[last]]);
    if (!rows.length) return svg("svg", { width, height: 0 });
    const moving = rows[0].map((_, c) => c).filter((c) => rows.some((row) => row[c] !== rows[0][c]));
    return drawSeries(width, rows.map((row) => moving.map((c) => row[c])), rows.length, "loops", moving.map((c) => names[c] ?? `channel ${c}`));
  }
}

// Lines of rows[k][i] over k, told apart by dashes as well as by colour.
function drawSeries(width, rows, count, unit, names) {
  const all = rows.flat().filter(Number.isFinite);
  if (!all.length) return svg("svg", { width, height: 0 });
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const [height, left] = [220, 52];
  const margin = (high - low) * 0.06 || 0.5;
  const x = scale(0, rows.length - 1, left, width - 70);
  const y = scale(low - margin, high + margin, height - 28, 10);
  const parts = ticks(low, high, 5).flatMap((at) => [svg("line", { class: "grid", x1: left, x2: width - 70, y1: y(at), y2: y(at) }), svg("text", { class: "small", x: left - 6, y: y(at) + 4, "text-anchor": "end" }, formatNumber(at))]);
  let above = -Infinity;
  const order = rows[0].map((_, i) => i).sort((a, b) => rows[rows.length - 1][b] - rows[rows.length - 1][a]);
  for (const i of order) {
    parts.push(svg("polyline", { class: `series s${i % 4}`, points: rows.map((row, k) => `${x(k)},${y(row[i])}`).join(" ") }));
    const at = Math.max(y(rows[rows.length - 1][i]) + 4, above + 13);
    if (names[i]) parts.push(svg("text", { class: `small s${i % 4}`, x: width - 64, y: (above = at) }, names[i]));
  }
  parts.push(svg("text", { class: "small", x: left, y: height - 8 }, count > 1 ? `1 to ${count} ${unit}` : "one pass"));
  return svg("svg", { width, height, role: "img", "aria-label": `Values over ${unit}` }, parts);
}
