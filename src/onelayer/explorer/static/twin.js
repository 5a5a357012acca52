// The trained twin of a race: its contexts on a line of their own, merged ones in the colour of warnings.

import { button, card, cut, fitted, html, scale, svg } from "./draw.js";
import { formatNumber } from "./models.js";

const LISTED = 6;

// state(): {number: the stored sequence that is shown or null, selected}; load(number, place) shows another.
export class Twin {
  constructor(model, words, state, load) {
    Object.assign(this, { model, words, state, load, twin: model.twin });
    const { right, answers, parameters, steps, pairs } = this.twin;
    const told = `A network of this shape with ${parameters.toLocaleString("en")} parameters, trained for ${steps.toLocaleString("en")} steps, gets ${right.toLocaleString("en")} of ${answers.toLocaleString("en")} answers right (measured).`;
    this.card = card("The trained twin", `${told} ${pairs ? "Its attention has merged contexts whose answers differ: what comes after it sees one point, or nearly." : "Its attention keeps contexts apart."}`, { wide: true, name: "twin" });
    this.plot = html("div", { class: "plot" });
    this.card.body.append(this.plot, html("ul", { class: "pairs" }, this.twin.merged.slice(0, LISTED).map((pair) => this.entry(pair))));
    this.update = fitted(this.plot, (width) => this.draw(width));
  }

  entry([a, b, distance]) {
    const place = ([i, k]) => button(cut(this.name(i, k), 48), () => this.load(i, k));
    return html("li", {}, place(a), html("span", { class: "warn" }, distance === 0 ? "equal" : `${formatNumber(distance)} apart`), place(b));
  }

  // A token in its company.
  name(i, k) {
    if (!this.model.holds(i)) return `sequence ${i + 1}, token ${k + 1}`;
    const tokens = this.model.sample(i);
    const others = tokens.filter((_, j) => j !== k).map((token, j) => this.words.label(token, j));
    return this.model.vocabulary ? `${this.words.label(tokens[k], k)} (${others.join(" ")})` : `sequence ${i + 1}, token ${k + 1}`;
  }

  draw(width) {
    const { shape, data } = this.twin.contexts;
    const [, n] = shape;
    const merged = new Set(this.twin.merged.flatMap(([a, b]) => [a, b]).map(([i, k]) => i * n + k));
    const [low, high] = [data.reduce((a, b) => Math.min(a, b)), data.reduce((a, b) => Math.max(a, b))];
    const x = scale(low, high, 12, width - 12);
    const parts = [svg("rect", { class: "cell odd", x: 12, y: 16, width: width - 24, height: 34 })];
    data.forEach((at, i) => merged.has(i) || parts.push(svg("line", { class: "stored", x1: x(at), x2: x(at), y1: 28, y2: 38 })));
    for (const i of merged) parts.push(svg("line", { class: "stored merged", x1: x(data[i]), x2: x(data[i]), y1: 12, y2: 54 }));
    const { number, selected } = this.state();
    if (number !== null)
      for (let k = 0; k < Math.min(n, this.model.sample(number).length); k++)
        parts.push(svg("circle", { class: k === selected ? "token here" : "token", cx: x(data[number * n + k]), cy: 33, r: k === selected ? 7 : 5 }));
    parts.push(svg("text", { class: "small", x: 12, y: 70 }, "its contexts along their widest direction"));
    return svg("svg", { width, height: 78, role: "img", "aria-label": "Contexts of the trained twin" }, parts);
  }
}
