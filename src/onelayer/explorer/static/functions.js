// A model of a function: drag an input, and see the target, the answer and the bound between them.

import { card, draggable, fitted, html, onArrows, scale, svg, ticks } from "./draw.js";
import { formatNumber } from "./models.js";
import { evaluateTarget } from "./scripts.js";
import { gadgets, attention } from "./steps.js";

const BUDGET = 250; // milliseconds for a curve
const MOST_POINTS = 241;

export class FunctionView {
  constructor(model) {
    this.model = model;
    this.f = model.function;
    this.tokens = Array.from({ length: this.f.n }, (_, j) => this.f.sides.map(([low, high]) => low + ((j + 1) / (this.f.n + 1)) * (high - low)));
    this.selected = [0, 0];
    this.output = [0, 0];
    this.input = card("Inputs", "Drag a slider, or drag along the curve.", { name: "inputs" });
    this.answers = card("Answers", this.promise(), { name: "answers" });
    this.curve = card("Along one input", "The answer, the target, and how far they may be apart: the band is certified.", { wide: true, name: "curve" });
    this.attention = card("Attention", "How much of every token goes into the averages of each.", { name: "attention" });
    this.gadgets = card("Gadgets", "Units of the readout that are on, by name.", { name: "gadgets" });
    this.plot = html("div", { class: "plot", tabindex: 0, role: "application", "aria-label": "Curve along one input: drag, or use the arrow keys" });
    this.curve.body.append(this.plot);
    this.draw = fitted(this.plot, (width) => this.drawCurve(width));
    this.drawAttention = fitted(this.attention.body, (width) => attention(this.found.seen.heads, this.labels(), this.selected[0], (i) => this.follow(i, 0), width));
    this.nodes = [this.input.node, this.answers.node, this.curve.node, this.attention.node, this.gadgets.node];
    this.fields();
    draggable(this.plot, (x) => this.x && this.set(...this.selected, this.x.invert(x)));
    onArrows(this.plot, (dx) => this.set(...this.selected, this.tokens[this.selected[0]][this.selected[1]] + (dx * this.reach()) / 200));
    this.show();
  }

  promise() {
    const { bound, left_out: left } = this.f;
    if (bound === null) return "No bound is certified; the largest error that was found is " + formatNumber(this.f.measured) + ".";
    return `Certified: never more than ${formatNumber(bound)} from ${this.f.name}, for every input of the box${left ? `, but for a share ${formatNumber(left)} of it` : ""}.`;
  }

  labels() {
    return this.tokens.map((_, j) => `x${j + 1}`);
  }

  reach() {
    const [low, high] = this.f.sides[this.selected[1]];
    return high - low;
  }

  fields() {
    this.sliders = this.tokens.map((token, j) =>
      token.map((x, c) => {
        const [low, high] = this.f.sides[c];
        const slider = html("input", { type: "range", min: low, max: high, step: (high - low) / 1000, value: x, "aria-label": `Token ${j + 1}, component ${c + 1}`, oninput: () => this.set(j, c, Number(slider.value)), onfocus: () => this.follow(j, c) });
        const said = html("output", { class: "number" });
        const node = html("label", { class: "slide" }, html("span", {}, this.f.d > 1 ? `x${j + 1}, ${c + 1}` : `x${j + 1}`), slider, said);
        return { slider, said, node };
      }),
    );
    this.input.body.append(...this.sliders.flat().map(({ node }) => node));
  }

  follow(j, c) {
    if (this.selected[0] === j && this.selected[1] === c) return;
    this.selected = [j, c];
    this.output = [this.f.per === "token" ? j : 0, 0];
    this.show();
  }

  set(j, c, x) {
    const [low, high] = this.f.sides[c];
    this.tokens = this.tokens.map((token, k) => token.map((old, i) => (k === j && i === c ? Math.min(Math.max(x, low), high) : old)));
    this.selected = [j, c];
    this.output = [this.f.per === "token" ? j : 0, 0];
    this.show();
  }

  target(tokens) {
    return this.f.program ? evaluateTarget(this.f, tokens) : null;
  }

  show() {
    const { model, tokens } = this;
    this.found = model.run(tokens);
    const target = this.target(tokens);
    this.sliders.forEach((row, j) =>
      row.forEach(({ slider, said, node }, c) => {
        slider.value = tokens[j][c];
        said.replaceChildren(formatNumber(tokens[j][c]));
        node.classList.toggle("here", j === this.selected[0] && c === this.selected[1]);
      }),
    );
    const rows = this.found.asked.flatMap((i, at) =>
      [...this.found.outputs[at]].map((answer, c) => {
        const wanted = target?.[this.f.per === "token" ? i : 0]?.[c] ?? null;
        const name = this.f.per === "token" ? `x${i + 1}` : model.components > 1 ? `value ${c + 1}` : "value";
        return html("tr", {}, html("th", { scope: "row" }, name), [answer, wanted, wanted === null ? null : Math.abs(answer - wanted)].map((x) => html("td", { class: "number" }, x === null ? "–" : formatNumber(x))));
      }),
    );
    const head = html("tr", {}, ["", "answer", "target", "apart"].map((word) => html("th", { class: word ? "number" : "" }, word)));
    this.answers.body.replaceChildren(html("table", { class: "codes" }, html("thead", {}, head), html("tbody", {}, rows)));
    this.draw();
    this.drawAttention();
    const place = this.found.asked.includes(this.selected[0]) ? this.selected[0] : this.found.asked[0];
    this.gadgets.body.replaceChildren(gadgets(model, this.found.seen, place));
  }

  // Answer and target along the selected input, the others as they are.
  sample() {
    const [j, c] = this.selected;
    const [low, high] = this.f.sides[c];
    const [token, component] = this.output;
    const at = (x) => this.tokens.map((row, k) => row.map((old, i) => (k === j && i === c ? x : old)));
    const began = performance.now();
    this.model.run(at(low));
    const each = Math.max(performance.now() - began, 0.05);
    const count = Math.max(25, Math.min(MOST_POINTS, Math.floor(BUDGET / each)));
    return Array.from({ length: count }, (_, k) => {
      const x = low + (k / (count - 1)) * (high - low);
      const { outputs, asked } = this.model.run(at(x));
      const answer = outputs[Math.max(0, asked.indexOf(token))][component];
      return { x, answer, target: this.target(at(x))?.[token]?.[component] ?? null };
    });
  }

  // Answer less target, between the two lines that the certificate says it never crosses.
  drawErrors(points, width, left, top, bottom) {
    const errors = points.map((p) => p.answer - p.target);
    const reach = Math.max(this.f.bound ?? 0, ...errors.map(Math.abs)) * 1.08 || 1;
    const y = scale(-reach, reach, bottom - 6, top + 16);
    const parts = [svg("text", { class: "small", x: left + 8, y: top + 6 }, "answer − target")];
    for (const at of this.f.bound === null ? [0] : [-this.f.bound, 0, this.f.bound])
      parts.push(svg("line", { class: at ? "limit" : "grid", x1: left, x2: width - 12, y1: y(at), y2: y(at) }), svg("text", { class: "small", x: left - 6, y: y(at) + 4, "text-anchor": "end" }, formatNumber(at)));
    parts.push(svg("polyline", { class: "curve", points: points.map((p, i) => `${this.x(p.x)},${y(errors[i])}`).join(" ") }));
    return parts;
  }

  drawCurve(width) {
    const points = this.sample();
    const bound = this.f.bound;
    const values = points.flatMap((p) => [p.answer, p.target === null ? p.answer : p.target + (bound ?? 0), p.target === null ? p.answer : p.target - (bound ?? 0)]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const known = points[0].target !== null;
    const [height, left] = [260, 52];
    const strip = known ? 110 : 0; // below the curve: how far the answer is from the target
    this.x = scale(...this.f.sides[this.selected[1]], left, width - 12);
    const y = scale(low, high, height - 28, 38);
    const path = (value) => points.map((p) => `${this.x(p.x)},${y(value(p))}`).join(" ");
    const parts = [];
    for (const at of ticks(low, high, 5)) parts.push(svg("line", { class: "grid", x1: left, x2: width - 12, y1: y(at), y2: y(at) }), svg("text", { class: "small", x: left - 6, y: y(at) + 4, "text-anchor": "end" }, formatNumber(at)));
    for (const at of ticks(...this.f.sides[this.selected[1]], width / 120)) parts.push(svg("text", { class: "small", x: this.x(at), y: height - 8, "text-anchor": "middle" }, formatNumber(at)));
    if (known && bound !== null) parts.push(svg("polygon", { class: "band", points: `${path((p) => p.target + bound)} ${path((p) => p.target - bound).split(" ").reverse().join(" ")}` }));
    if (known) parts.push(svg("polyline", { class: "target", points: path((p) => p.target) }));
    parts.push(svg("polyline", { class: "curve", points: path((p) => p.answer) }));
    const now = this.tokens[this.selected[0]][this.selected[1]];
    const answer = this.found.outputs[Math.max(0, this.found.asked.indexOf(this.output[0]))][this.output[1]];
    parts.push(svg("line", { class: "now", x1: this.x(now), x2: this.x(now), y1: 8, y2: height - 28 }), svg("circle", { class: "token here", cx: this.x(now), cy: y(answer), r: 7 }));
    const legend = [["curve", "answer"], known ? ["target", "target"] : null, known && bound !== null ? ["band", "bound"] : null].filter(Boolean);
    legend.forEach(([kind, words], i) => parts.push(svg(kind === "band" ? "rect" : "line", { class: kind, x1: left + 8 + i * 92, x2: left + 26 + i * 92, y1: 20, y2: 20, x: left + 8 + i * 92, y: 15, width: 18, height: 10 }), svg("text", { class: "small", x: left + 32 + i * 92, y: 24 }, words)));
    if (known) parts.push(...this.drawErrors(points, width, left, height + 14, height + strip));
    return svg("svg", { width, height: height + strip, role: "img", "aria-label": "Answer and target along the selected input" }, parts);
  }
}
