// One slider over the temperature of attention: contexts move and merge, and float32 sets a floor.

import { card, fitted, html, scale, svg } from "./draw.js";
import { formatNumber } from "./models.js";

const REACH = 6; // the slider goes from 2^-6 to 2^6 times the model's own
const POINTS = 33;

// The smallest distance of stored contexts with different answers, and those that are nearer than the floor.
export function distances(contexts, floor) {
  const order = [...contexts.keys()].sort((a, b) => contexts[a].at - contexts[b].at);
  const merged = new Set();
  let smallest = Infinity;
  for (let i = 1; i < order.length; i++) {
    const [a, b] = [contexts[order[i - 1]], contexts[order[i]]];
    if (a.answer === b.answer) continue;
    const apart = b.at - a.at;
    smallest = Math.min(smallest, apart);
    if (!(apart > 2 * floor)) merged.add(order[i - 1]).add(order[i]);
  }
  return { smallest, merged };
}

export class Temperature {
  constructor(model, line, contextsAt, changed) {
    Object.assign(this, { model, line, contextsAt, floor: model.ledger.radius_upper ?? 0 });
    this.power = 0;
    this.card = card("Temperature", "Colder attention looks at one token, warmer attention at all of them alike. Contexts move, and some merge.", { name: "temperature" });
    this.slider = html("input", {
      type: "range", min: -REACH, max: REACH, step: 0.125, value: 0, "aria-label": "Temperature of attention, as a power of two",
      oninput: () => this.set(Number(this.slider.value), changed),
    });
    this.said = html("output", { class: "said" });
    const reset = html("button", { type: "button", onclick: () => this.set(0, changed) }, "as compiled");
    this.plot = html("div", { class: "plot" });
    this.card.body.append(html("label", { class: "slide" }, html("span", {}, "warm"), this.slider, html("span", {}, "cold"), reset), this.said, this.plot);
    this.draw = fitted(this.plot, (width) => this.drawCurve(width));
    this.tell();
  }

  get sharpness() {
    return 2 ** this.power;
  }

  set(power, changed) {
    this.power = power;
    this.slider.value = power;
    changed();
    this.tell();
    this.draw();
  }

  tell() {
    const { smallest, merged } = distances(this.contextsAt(this.sharpness), this.floor);
    const beta = this.model.ledger.beta;
    const words = [
      this.power === 0 ? "The model's own temperature" : `Logits × ${formatNumber(this.sharpness)}`,
      beta ? ` (β = ${formatNumber(beta * this.sharpness)}). ` : ". ",
      `Contexts with different answers are at least ${formatNumber(smallest)} apart; `,
      merged.size ? `${merged.size} of them are nearer than ${this.model.dtype} can tell for certain.` : "none has merged.",
    ];
    this.said.replaceChildren(...words);
    this.said.classList.toggle("warn", merged.size > 0);
  }

  // The smallest distance at every temperature, and the floor below which rounding may confuse two contexts.
  drawCurve(width) {
    this.curve ??= Array.from({ length: POINTS }, (_, i) => {
      const power = -REACH + (2 * REACH * i) / (POINTS - 1);
      return { power, apart: distances(this.contextsAt(2 ** power), this.floor).smallest };
    });
    const shown = this.curve.filter((p) => p.apart > 0 && Number.isFinite(p.apart));
    const heights = [...shown.map((p) => Math.log10(p.apart)), Math.log10(2 * this.floor || 1e-8)];
    const [low, high] = [Math.min(...heights) - 0.4, Math.max(...heights) + 0.3];
    const x = scale(-REACH, REACH, 46, width - 10);
    const y = scale(low, high, 128, 10);
    const floor = y(Math.log10(2 * this.floor || 1e-8));
    const parts = [
      svg("rect", { class: "below", x: 46, y: floor, width: width - 56, height: Math.max(0, 128 - floor) }),
      svg("line", { class: "limit", x1: 46, x2: width - 10, y1: floor, y2: floor }),
      svg("text", { class: "small", x: 52, y: floor + 14 }, `floor of ${this.model.dtype}`),
      svg("polyline", { class: "curve", points: shown.map((p) => `${x(p.power)},${y(Math.log10(p.apart))}`).join(" ") }),
      svg("line", { class: "now", x1: x(this.power), x2: x(this.power), y1: 8, y2: 128 }),
      svg("text", { class: "small", x: x(-REACH), y: 146 }, "warm"),
      svg("text", { class: "small", x: x(REACH), y: 146, "text-anchor": "end" }, "cold"),
    ];
    for (let k = Math.ceil(low); k <= high; k++)
      parts.push(svg("text", { class: "small", x: 40, y: y(k) + 4, "text-anchor": "end" }, `1e${k}`));
    return svg("svg", { width, height: 152, role: "img", "aria-label": "The smallest distance between contexts at every temperature" }, parts);
  }
}
