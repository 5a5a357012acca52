// A model of a text: it recites, one token at a time, and shows what it reads the next token from.

import { button, card, cut, fitted, html, svg } from "./draw.js";
import { Line } from "./line.js";
import { formatNumber, largest } from "./models.js";
import { pairLines, Plane } from "./plane.js";
import { gadgets } from "./steps.js";

const SHOWN = 64; // of the last tokens of a window
const LIKELIEST = 5;
// Byte pairs are merged inside of these, as the tokenizers of Hugging Face cut a text.
const WORDS = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
const PAUSE = 60; // milliseconds between tokens while it recites

export class TextView {
  constructor(model) {
    this.model = model;
    this.text = model.text;
    const opening = this.text.stream.slice(0, Math.min(12, Math.max(1, this.text.stream.length >> 1)));
    this.ids = opening;
    this.given = opening.length;
    this.input = card("Text", `The model sees the last ${this.text.context} tokens. Type a passage of the text, then let it go on.`, { wide: true, name: "text" });
    this.next = card("Next", "What follows, by the model's last layer.", { name: "next" });
    this.window = card("Window", "Attention is uniform: it adds up what each token stands for at its place.", { name: "window" });
    this.context = card("Context", "The sums are the coordinates of the window. Cells of each line lead to the next token.", { wide: true, name: "context" });
    this.gadgets = card("Gadgets", "Units of the readout that are on, by name.", { wide: true, name: "gadgets" });
    this.prompt = html("textarea", { rows: 3, spellcheck: "false", "aria-label": "The text so far", oninput: () => this.type(this.prompt.value) });
    this.said = html("output", { class: "said" });
    this.play = button("recite", () => this.toggle());
    this.input.body.append(
      this.prompt,
      html("div", { class: "bar-of-buttons" }, button("next token", () => this.step(), { class: "main" }), this.play, button("start again", () => this.restart()), this.said),
    );
    const { planes, alone } = pairLines(model.lines.filter((line) => line.depth <= 1));
    this.views = planes.slice(0, 4).map((pair) => new Plane(pair, (line) => this.pointsOn(line), () => []));
    this.context.body.append(html("div", { class: "pair planes" }, this.views.map((view) => view.node)));
    for (const line of alone.slice(0, 3 - this.views.length)) {
      const view = new Line(line, () => this.lineState(line));
      this.context.body.append(html("h3", {}, line.name), view.node);
      this.views.push(view);
    }
    this.drawWindow = fitted(this.window.body, (width) => this.windowPicture(width));
    this.nodes = [this.input.node, this.next.node, this.window.node, this.context.node, this.gadgets.node];
    this.show();
  }

  decode(ids) {
    return new TextDecoder().decode(new Uint8Array(ids.flatMap((id) => this.text.pieces[id])));
  }

  // Ids of a text: bytes, whose pairs are merged within words in the order in which they were learned.
  encode(text) {
    const { pieces, merges } = this.text;
    this.byPiece ??= new Map(pieces.map((piece, id) => [piece.join(), id]));
    const encoder = new TextEncoder();
    const letters = (part) => [...encoder.encode(part)].map((byte) => this.byPiece.get(String(byte)));
    if (!merges) return letters(text);
    this.ranks ??= new Map(merges.map((pair, rank) => [pair.join(), rank]));
    return (text.match(WORDS) ?? []).flatMap((word) => this.merge(letters(word)));
  }

  merge(ids) {
    for (;;) {
      const ranks = ids.slice(1).map((id, i) => this.ranks.get(`${ids[i]},${id}`) ?? Infinity);
      const first = ranks.indexOf(Math.min(...ranks));
      if (first < 0 || ranks[first] === Infinity) return ids;
      const piece = [...this.text.pieces[ids[first]], ...this.text.pieces[ids[first + 1]]];
      ids = [...ids.slice(0, first), this.byPiece.get(piece.join()), ...ids.slice(first + 2)];
    }
  }

  windowOf(ids) {
    const { context, start } = this.text;
    const last = ids.slice(-context);
    return [...Array(context - last.length).fill(start), ...last];
  }

  // The likeliest next token, of equals the smallest id; null where nothing follows.
  following(outputs) {
    const best = largest(outputs);
    return outputs[best] > 0 ? best : null;
  }

  type(text) {
    this.stop();
    this.ids = this.encode(text);
    this.given = this.ids.length;
    this.show({ typed: true });
  }

  restart() {
    this.stop();
    this.ids = this.ids.slice(0, this.given);
    this.show();
  }

  step() {
    const next = this.unknown ? null : this.following(this.found.outputs[0]);
    if (next === null) {
      this.stop();
      return false;
    }
    this.ids = [...this.ids, next];
    this.show();
    return true;
  }

  toggle() {
    if (this.timer) {
      this.stop();
      return;
    }
    this.play.replaceChildren("pause");
    const go = () => {
      this.timer = this.step() ? setTimeout(go, PAUSE) : null;
    };
    this.timer = setTimeout(go, 0);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    this.play.replaceChildren("recite");
  }

  show({ typed = false } = {}) {
    const { model, ids } = this;
    const known = new Set(this.text.alphabet);
    this.unknown = ids.slice(-this.text.context).find((id) => !known.has(id));
    if (!typed) this.prompt.value = this.decode(ids);
    this.prompt.scrollTop = this.prompt.scrollHeight;
    const refused = this.unknown !== undefined;
    for (const part of [this.next, this.window, this.context, this.gadgets]) part.node.hidden = refused;
    this.said.classList.toggle("warn", refused);
    if (refused) {
      this.said.replaceChildren(`${this.show1(this.unknown)} does not occur in the text: the model refuses.`);
      return;
    }
    this.said.replaceChildren(ids.length > this.given ? `${(ids.length - this.given).toLocaleString("en")} recited` : "");
    this.tokens = this.windowOf(ids);
    this.found = model.run(this.tokens);
    this.showNext();
    this.drawWindow();
    for (const view of this.views) view.update();
    this.gadgets.body.replaceChildren(gadgets(model, this.found.seen, this.tokens.length - 1));
  }

  // A token as people can read it: a space, a line's end and other invisible ones by name.
  show1(id) {
    if (id === this.text.start) return "start";
    const text = this.decode([id]);
    return { " ": "␣", "\n": "↵", "\t": "⇥" }[text] ?? text;
  }

  showNext() {
    const [outputs] = this.found.outputs;
    const order = [...outputs.keys()].filter((id) => outputs[id] > 0).sort((a, b) => outputs[b] - outputs[a] || a - b);
    if (!order.length) {
      this.next.body.replaceChildren(html("p", { class: "big" }, "the end"));
      return;
    }
    const row = (id) =>
      html("tr", {}, html("th", { scope: "row", class: "piece" }, this.show1(id)), html("td", {}, html("span", { class: "bar", style: `--size:${outputs[id].toFixed(4)}`, "data-sign": "+" })), html("td", { class: "number" }, formatNumber(outputs[id])));
    this.next.body.replaceChildren(html("p", { class: "big answer" }, this.show1(order[0])), html("table", { class: "codes" }, html("tbody", {}, order.slice(0, LIKELIEST).map(row))));
  }

  windowPicture(width) {
    const tokens = this.tokens.slice(-SHOWN);
    const cell = 18;
    const columns = Math.max(8, Math.floor(width / cell));
    const parts = tokens.map((id, i) => {
      const [x, y] = [(i % columns) * cell, Math.floor(i / columns) * 24];
      const here = i + 1 === tokens.length;
      return svg("g", {}, svg("rect", { class: here ? "glyph here" : id === this.text.start ? "glyph empty" : "glyph", x: x + 1, y: y + 1, width: cell - 2, height: 22, rx: 3 }), svg("text", { class: here ? "inside strong" : "inside", x: x + cell / 2, y: y + 16, "text-anchor": "middle" }, id === this.text.start ? "·" : cut(this.show1(id), 2)));
    });
    return svg("svg", { width, height: Math.ceil(tokens.length / columns) * 24 + 2, role: "img", "aria-label": "The last tokens of the window" }, parts);
  }

  pointsOn(line) {
    const { seen } = this.found;
    const own = line.depth ? seen.stacks[line.value] : seen.context;
    const at = own[this.tokens.length - 1][line.coordinate];
    return [{ at, label: formatNumber(at), selected: true }];
  }

  lineState(line) {
    return { points: this.pointsOn(line), stored: [], floor: this.model.ledger.radius_upper ?? 0, labelOf: (cell) => `cell ${cell}`, merged: new Set() };
  }
}
