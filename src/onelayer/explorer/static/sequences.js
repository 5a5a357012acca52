// A model of stored answers: tokens -> codes -> attention -> the coordinate -> units that fire -> the answer.

import { Contexts } from "./contexts.js";
import { button, card, fitted, html } from "./draw.js";
import { Line } from "./line.js";
import { pairLines, Plane } from "./plane.js";
import { Reals } from "./reals.js";
import { attention, codes, gadgets } from "./steps.js";
import { distances, Temperature } from "./temperature.js";
import { Twin } from "./twin.js";
import { Words } from "./words.js";

export class SequenceView {
  constructor(model) {
    this.model = model;
    this.tokenKind = model.vocabulary ? new Words(model) : new Reals(model);
    this.selected = 0;
    this.number = 0;
    this.input = card("Tokens", "Type a token, or step through what is stored. Select one to follow it.", { wide: true, name: "tokens" });
    this.codes = card("Codes", "The embedding turns every token into a few numbers.", { name: "codes" });
    this.attention = card("Attention", "Each row is a token that asks; its weights add up to 1.", { name: "attention" });
    this.context = card("Context", "Attention gives every token in its company a number of its own. Cells of the line are answers.", { wide: true, name: "context" });
    this.gadgets = card("Gadgets", "ReLU units read the answer off at that number. These are on, by name.", { name: "gadgets" });
    this.drawAttention = fitted(this.attention.body, (width) => attention(this.seen.heads, this.labels, this.selected, (i) => this.select(i), width));
    this.prepareLines();
    const drag = model.vocabulary ? null : this.tokenKind.node;
    if (drag || !this.temperature) this.gadgets.node.classList.add("wide");
    this.nodes = [this.input.node, this.codes.node, this.attention.node, this.context.node, drag, drag ? this.temperature?.card.node : null, this.gadgets.node, drag ? null : this.temperature?.card.node].filter(Boolean);
    this.input.body.append(this.tokenKind.node.tagName === "DATALIST" ? this.tokenKind.node : "");
    if (model.twin) {
      const state = () => ({ number: this.home ? this.number : null, selected: this.selected });
      this.twin = new Twin(model, this.tokenKind, state, (number, place) => this.load(number, place));
      this.nodes.splice(this.nodes.indexOf(this.context.node) + 1, 0, this.twin.card.node);
    }
    this.row = html("div", { class: "tokens" });
    this.bar = html("div", { class: "bar-of-buttons" });
    this.input.body.append(this.row, this.bar);
    this.load(0);
  }

  prepareLines() {
    const { model } = this;
    this.contexts = new Contexts(model);
    const { planes, alone } = pairLines(model.lines);
    const stored = (line) => this.contexts.on(line, this.sharpness);
    this.views = planes.slice(0, 4).map((pair) => new Plane(pair, (line) => this.pointsOn(line), stored));
    if (this.views.length) this.context.body.append(html("div", { class: "pair planes" }, this.views.map((view) => view.node)));
    for (const line of alone.slice(0, 4 - this.views.length)) {
      const view = new Line(line, () => this.lineState(line));
      if (model.lines.length > 1) this.context.body.append(html("h3", {}, line.name));
      this.context.body.append(view.node);
      this.views.push(view);
    }
    const [first] = model.lines;
    if (!first) this.context.body.append(html("p", { class: "hint" }, "This readout cuts no single coordinate into cells."));
    if (first && !model.uniform && model.sampleCount)
      this.temperature = new Temperature(model, first, (sharpness) => this.contexts.on(first, sharpness), () => this.show());
    else if (model.uniform) this.attention.say("Attention is uniform in this model: it adds up codes of tokens, and no temperature matters.");
  }

  get sharpness() {
    return this.temperature?.sharpness ?? 1;
  }

  load(number, place = this.selected) {
    const { model } = this;
    this.selected = place;
    const count = model.served ? model.samples.total : model.sampleCount;
    if (count) {
      this.number = (number + count) % count;
      if (!model.holds(this.number)) {
        model.fetchSamples(this.number).then(() => this.load(this.number, place));
        return;
      }
      this.tokens = model.sample(this.number);
      this.home = this.tokens;
    } else {
      this.tokens = [this.tokenKind.another([])];
      this.home = null;
    }
    this.selected = Math.min(this.selected, this.tokens.length - 1);
    this.show();
  }

  select(i) {
    if (i === this.selected) return;
    this.selected = i;
    this.show({ keepFocus: true });
  }

  change(tokens, home = null) {
    this.tokens = tokens;
    this.home = home;
    this.selected = Math.min(this.selected, tokens.length - 1);
    this.show({ keepFocus: true });
  }

  // Everything follows from the tokens, the selected one and the temperature.
  show({ keepFocus = false } = {}) {
    const { model, tokenKind, tokens } = this;
    this.known = tokenKind.known(tokens);
    this.labels = tokens.map((token, i) => tokenKind.label(token, i));
    this.found = this.known ? model.run(tokens, { sharpness: this.sharpness }) : null;
    this.own = this.known && this.sharpness !== 1 ? model.run(tokens) : this.found; // at the model's own temperature
    this.seen = this.found?.seen;
    this.showTokens(keepFocus);
    this.showBar();
    for (const part of [this.codes, this.attention, this.context, this.gadgets]) part.node.hidden = !this.known;
    if (!this.known) return;
    const place = this.found.asked.includes(this.selected) ? this.selected : this.found.asked[0];
    this.codes.body.replaceChildren(codes(model, tokens, this.labels, this.selected, this.seen.embedded, (i) => this.select(i)));
    this.drawAttention();
    for (const view of this.views) view.update();
    this.twin?.update();
    this.gadgets.body.replaceChildren(gadgets(model, this.seen, place), html("p", { class: "big answer" }, this.answerOf(place)));
    if (!model.vocabulary) tokenKind.follow({ tokens, selected: this.selected, home: this.home, move: (token) => this.move(token) });
  }

  move(token) {
    this.change(this.tokens.map((old, i) => (i === this.selected ? token : old)), this.home);
  }

  answerOf(i) {
    if (!this.known) return this.model.default ? this.model.answer(this.model.default) : "not in the vocabulary";
    const at = this.found.asked.indexOf(i);
    return at < 0 ? null : this.model.answer(this.found.outputs[at]);
  }

  // Whether the temperature has changed the answer at a token.
  isChanged(i) {
    const at = this.found.asked.indexOf(i);
    return at >= 0 && this.model.answer(this.found.outputs[at]) !== this.model.answer(this.own.outputs[at]);
  }

  showTokens(keepFocus) {
    const { row, tokens } = this;
    const focus = keepFocus ? [...row.querySelectorAll("input")].indexOf(document.activeElement) : -1;
    row.replaceChildren(
      ...tokens.map((token, i) => {
        const change = (to) => this.change(this.tokens.map((old, k) => (k === i ? to : old)));
        const answer = this.answerOf(i);
        return html(
          "div",
          { class: i === this.selected ? "token-box here" : "token-box", onclick: () => this.select(i) },
          this.tokenKind.field(token, i, change, () => this.select(i)),
          html("div", { class: this.known ? (this.isChanged(i) ? "answer changed" : "answer") : "answer unknown" }, answer === null ? "" : answer),
        );
      }),
    );
    if (focus >= 0) row.querySelectorAll("input")[focus]?.focus();
  }

  showBar() {
    const { model, tokens } = this;
    const most = model.network.places;
    const stored = model.sampleCount;
    const words = this.home ? `stored sequence ${(this.number + 1).toLocaleString("en")} of ${model.samples.total.toLocaleString("en")}${!model.served && stored < model.samples.total ? `, the first ${stored.toLocaleString("en")} of which are in this page` : ""}` : "a sequence of your own";
    const count = model.served ? model.samples.total : stored;
    const go = html("input", { class: "real", type: "number", min: 1, max: count, value: this.number + 1, "aria-label": "Number of a stored sequence", onchange: () => this.load(Math.min(Math.max(1, Math.trunc(go.value)), count) - 1) });
    this.bar.replaceChildren(
      ...[
        stored ? button("←", () => this.load(this.number - 1), { "aria-label": "previous stored sequence", class: "step" }) : null,
        stored ? button("→", () => this.load(this.number + 1), { "aria-label": "next stored sequence", class: "step" }) : null,
        count > 1 ? go : null,
        html("span", { class: "hint" }, words),
        html("span", { class: "space" }),
        button("add token", () => this.change([...tokens, this.tokenKind.another(tokens)]), { disabled: tokens.length >= most }),
        button("remove", () => this.change(tokens.filter((_, i) => i !== this.selected)), { disabled: tokens.length < 2 }),
      ].filter(Boolean),
    );
  }

  pointsOn(line) {
    const own = line.depth ? this.seen.stacks[line.value] : this.seen.context;
    return this.found.asked.map((i) => ({ at: own[i][line.coordinate], label: this.labels[i], selected: i === this.selected || this.found.asked.length === 1 }));
  }

  lineState(line) {
    const floor = this.model.ledger.radius_upper ?? 0;
    const others = this.contexts.on(line, this.sharpness);
    return { points: this.pointsOn(line), stored: others, floor, labelOf: (cell) => this.cellName(line, cell), merged: distances(others, floor).merged };
  }

  // The answer of a cell, where the cell alone decides it.
  cellName(line, cell) {
    const { readout } = this.model.network;
    if (line.name !== "plateaus" || (line.depth + 3 !== readout.length && !this.model.logits)) return `cell ${cell}`;
    const { weight: values, bias: constant } = readout[line.depth + 2];
    const [, q] = values.shape;
    return this.model.answer(Array.from({ length: q }, (_, c) => values.data[cell * q + c] + constant[c]));
  }
}
