// Tokens that are vectors: numbers to type, a plane to drag them in, and a lens as wide as the certified radius.

import { card, draggable, fitted, html, onArrows, scale, svg } from "./draw.js";
import { formatNumber } from "./models.js";

const MOST_FIELDS = 4;
const LENS = 3; // the lens reaches this many radii

export class Reals {
  constructor(model) {
    this.model = model;
    this.radius = model.certificate.radius;
    this.card = card("Move a token", "", { name: "drag" });
    this.plane = html("div", { class: "plot", tabindex: 0, role: "application", "aria-label": "Plane of tokens: drag, or use the arrow keys" });
    this.lens = html("div", { class: "plot", tabindex: 0, role: "application", "aria-label": "Lens around the stored token: drag, or use the arrow keys" });
    this.said = html("output", { class: "said" });
    this.card.body.append(html("div", { class: "pair" }, this.plane, this.radius ? this.lens : null), this.said);
    this.node = this.card.node;
    this.draws = [fitted(this.plane, (width) => this.drawPlane(width)), fitted(this.lens, (width) => this.drawLens(width))];
    this.say();
    this.listen();
  }

  label(token, place) {
    return `token ${place + 1}`;
  }

  another(tokens) {
    return tokens.length ? tokens[tokens.length - 1].map((x) => x + 0.1) : Array(this.model.width).fill(0);
  }

  known(tokens) {
    return tokens.every((token) => token.every(Number.isFinite));
  }

  field(token, place, change, select) {
    return html(
      "div",
      { class: "vector", onfocusin: select },
      token.slice(0, MOST_FIELDS).map((x, c) =>
        html("input", {
          class: "real", type: "number", step: "any", value: formatNumber(x), "aria-label": `Token ${place + 1}, component ${c + 1}`,
          onchange: (event) => change(token.map((old, k) => (k === c ? Number(event.target.value) : old))),
        }),
      ),
      token.length > MOST_FIELDS ? html("span", { class: "hint" }, `+${token.length - MOST_FIELDS}`) : null,
    );
  }

  // state: {tokens, selected, home: the stored sequence or null, move(token)}
  follow(state) {
    this.state = state;
    this.say();
    for (const draw of this.draws) draw();
  }

  // How far a token is from where it was stored, in the largest component.
  distance() {
    const { tokens, home } = this.state;
    if (!home) return null;
    return Math.max(...tokens.map((token, i) => Math.max(...token.map((x, c) => Math.abs(x - home[i][c])))));
  }

  say() {
    if (!this.radius)
      this.card.say("Drag a token. No radius is certified here, only the stored sequences are; model.certify(X, Y) looks for one.");
    else this.card.say(`Every component may move by ${formatNumber(this.radius)} and no answer changes: that square is certified.`);
    const distance = this.state ? this.distance() : null;
    if (distance === null) this.said.replaceChildren("A sequence of your own: nothing is promised about it.");
    else if (distance === 0) this.said.replaceChildren("Where it was stored.");
    else if (this.radius && distance <= this.radius) this.said.replaceChildren(`${formatNumber(distance)} away: inside the certified radius.`);
    else this.said.replaceChildren(`${formatNumber(distance)} away: outside. The answer may still be right, but nothing is promised.`);
    this.said.classList.toggle("warn", distance === null || distance > (this.radius ?? 0));
    this.said.dataset.inside = String(distance !== null && distance <= (this.radius ?? 0));
  }

  listen() {
    const here = () => this.state.tokens[this.state.selected];
    const moved = (dx, dy) => this.state.move(here().map((x, c) => (c === 0 ? x + dx : c === 1 ? x + dy : x)));
    const to = (x, y) => this.state.move(here().map((old, c) => (c === 0 ? x : c === 1 ? y : old)));
    draggable(this.plane, (px, py) => to(this.planeX.invert(px), this.planeY.invert(py)));
    draggable(this.lens, (px, py) => this.lensX && to(this.lensX.invert(px), this.lensY.invert(py)));
    onArrows(this.plane, (x, y) => moved((x * this.span) / 100, (y * this.span) / 100));
    onArrows(this.lens, (x, y) => moved((x * this.radius) / 5, (y * this.radius) / 5));
  }

  drawPlane(width) {
    const { tokens, selected, home } = this.state;
    const height = Math.min(width, 260);
    this.range ??= this.rangeOfSamples();
    this.span = this.range[1] - this.range[0];
    this.planeX = scale(...this.range, 10, width - 10);
    this.planeY = this.model.width > 1 ? scale(...this.range, height - 10, 10) : Object.assign(() => height / 2, { invert: () => 0 });
    const at = (token) => ({ cx: this.planeX(token[0]), cy: this.planeY(token[1] ?? 0) });
    const parts = [svg("rect", { class: "frame", x: 0.5, y: 0.5, width: width - 1, height: height - 1, rx: 8 })];
    for (const token of this.background) parts.push(svg("circle", { class: "faint", r: 1.6, ...at(token) }));
    if (home) home.forEach((token) => parts.push(svg("circle", { class: "home", r: 4, ...at(token) })));
    tokens.forEach((token, i) => parts.push(svg("circle", { class: i === selected ? "token here" : "token", r: i === selected ? 7 : 5, ...at(token) })));
    return svg("svg", { width, height }, parts);
  }

  drawLens(width) {
    const { tokens, selected, home } = this.state;
    const height = Math.min(width, 260);
    if (!home || !this.radius) return svg("svg", { width, height: 0 });
    const [centre, token] = [home[selected], tokens[selected]];
    const reach = LENS * this.radius;
    this.lensX = scale(centre[0] - reach, centre[0] + reach, 10, width - 10);
    const flat = this.model.width < 2;
    this.lensY = flat ? Object.assign(() => height / 2, { invert: () => 0 }) : scale(centre[1] - reach, centre[1] + reach, height - 10, 10);
    const [left, right] = [-1, 1].map((k) => this.lensX(centre[0] + k * this.radius));
    const [bottom, top] = flat ? [height - 30, 30] : [-1, 1].map((k) => this.lensY(centre[1] + k * this.radius));
    const inside = (x, low, high) => Math.min(Math.max(x, low), high);
    const parts = [
      svg("rect", { class: "frame", x: 0.5, y: 0.5, width: width - 1, height: height - 1, rx: 8 }),
      svg("rect", { class: "certified", x: left, y: top, width: right - left, height: bottom - top }),
      svg("text", { class: "small", x: (left + right) / 2, y: top - 6, "text-anchor": "middle" }, "certified"),
      svg("circle", { class: "home", r: 4, cx: this.lensX(centre[0]), cy: this.lensY(centre[1] ?? 0) }),
      svg("circle", { class: "token here", r: 7, cx: inside(this.lensX(token[0]), 8, width - 8), cy: inside(this.lensY(token[1] ?? 0), 8, height - 8) }),
    ];
    return svg("svg", { width, height }, parts);
  }

  rangeOfSamples() {
    const count = Math.min(this.model.sampleCount, 100);
    this.background = Array.from({ length: count }, (_, i) => this.model.sample(i)).flat();
    const all = [...this.background, ...this.state.tokens].flatMap((token) => token.slice(0, 2));
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const margin = (high - low) * 0.08 || 1;
    return [low - margin, high + margin];
  }
}
