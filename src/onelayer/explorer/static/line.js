// The context coordinate on its line: cells, ramps between them, stored contexts, and the tokens that are asked.

import { cut, fitted, html, scale, svg, ticks } from "./draw.js";
import { formatNumber } from "./models.js";

const EDGE = 12;
const MOST_CELLS = 400; // more are not told apart at this size

// state(): {points: [{at, label, selected}], stored: [{at}], floor, labelOf(cell), merged: Set}
export class Line {
  constructor(line, state) {
    this.line = line;
    this.state = state;
    this.whole = html("div", { class: "plot" });
    this.lens = html("div", { class: "plot" });
    this.node = html("div", {}, this.whole, this.lens);
    this.redraw = [fitted(this.whole, (width) => this.drawWhole(width)), fitted(this.lens, (width) => this.drawLens(width))];
  }

  update() {
    for (const draw of this.redraw) draw();
  }

  // The cell of a coordinate, counted from the left.
  cell(z) {
    const { at, slope } = this.line;
    let low = 0;
    let high = at.data.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at.data[middle] + 0.5 / slope.data[middle] < z) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  drawWhole(width) {
    const { points, stored, merged } = this.state();
    const cuts = this.line.at.data;
    const all = [cuts[0], cuts[cuts.length - 1], ...points.map((p) => p.at), ...stored.map((p) => p.at)].filter(Number.isFinite);
    const [low, high] = [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
    const margin = (high - low) * 0.03 || 1;
    const x = scale(low - margin, high + margin, EDGE, width - EDGE);
    const parts = [];
    if (cuts.length <= MOST_CELLS) {
      const edges = [low - margin, ...cuts, high + margin];
      for (let j = 0; j + 1 < edges.length; j++)
        parts.push(svg("rect", { class: j % 2 ? "cell odd" : "cell", x: x(edges[j]), y: 34, width: Math.max(0, x(edges[j + 1]) - x(edges[j])), height: 34 }));
    } else parts.push(svg("rect", { class: "cell", x: EDGE, y: 34, width: width - 2 * EDGE, height: 34 }));
    stored.forEach((p, i) =>
      parts.push(svg("line", { class: merged.has(i) ? "stored merged" : "stored", x1: x(p.at), x2: x(p.at), y1: merged.has(i) ? 30 : 46, y2: merged.has(i) ? 72 : 56 })),
    );
    parts.push(...axis(x, low, high, width, 68));
    parts.push(...markers(points, x, 51, width));
    return svg("svg", { width, height: 100, role: "img", "aria-label": "The context coordinates of all tokens on one line" }, parts);
  }

  // A few cells around the selected token, with their answers, ramps and the floor of the arithmetic.
  drawLens(width) {
    const { points, stored, floor, labelOf, merged } = this.state();
    const focus = points.find((p) => p.selected);
    if (!focus || !Number.isFinite(focus.at)) return svg("svg", { width, height: 0 });
    const cuts = this.line.at.data;
    const slopes = this.line.slope.data;
    const cell = this.cell(focus.at);
    // The cell of the token is the middle third; where a cell has no end, what lies outside is as wide as its token is far.
    const far = cuts.length > 1 ? (cuts[cuts.length - 1] - cuts[0]) / cuts.length : 1;
    const own = [cell > 0 ? cuts[cell - 1] : Math.min(cuts[0] - far, focus.at), cell < cuts.length ? cuts[cell] + 1 / slopes[cell] : Math.max(cuts[cell - 1] + far, focus.at)];
    const [left, right] = [own[0] - (own[1] - own[0]), own[1] + (own[1] - own[0])];
    const [first, last] = [this.cell(left), this.cell(right)];
    const x = scale(left, right, EDGE, width - EDGE);
    const parts = [];
    for (let j = first; j <= last; j++) {
      const from = j > 0 ? x(cuts[j - 1] + 1 / slopes[j - 1]) : EDGE;
      const to = j < cuts.length ? x(cuts[j]) : width - EDGE;
      const ends = [Math.max(EDGE, from), Math.min(width - EDGE, to)];
      const feet = [j > 0 ? x(cuts[j - 1]) : ends[0], j < cuts.length ? x(cuts[j] + 1 / slopes[j]) : ends[1]];
      const corners = [[Math.max(EDGE, feet[0]), 76], [ends[0], 40], [ends[1], 40], [Math.min(width - EDGE, feet[1]), 76]];
      if (ends[1] < ends[0]) continue;
      parts.push(svg("polygon", { class: j === cell ? "plateau here" : j % 2 ? "plateau odd" : "plateau", points: corners.map((c) => c.join(",")).join(" ") }));
      const room = Math.floor((ends[1] - ends[0]) / 7.2);
      const label = labelOf(j);
      if (label && room >= 3) parts.push(svg("text", { class: j === cell ? "label here" : "label", x: (ends[0] + ends[1]) / 2, y: 32, "text-anchor": "middle" }, cut(label, room)));
    }
    stored.forEach((p, i) => {
      if (p.at >= left && p.at <= right)
        parts.push(svg("line", { class: merged.has(i) ? "stored merged" : "stored", x1: x(p.at), x2: x(p.at), y1: 58, y2: 76 }));
    });
    parts.push(...axis(x, left, right, width, 76));
    parts.push(...markers(points.filter((p) => p.at >= left && p.at <= right), x, 60, width));
    if (floor > 0) {
      const wide = Math.max(1.5, x(focus.at + floor) - x(focus.at - floor));
      parts.push(svg("rect", { class: "floor", x: x(focus.at) - wide / 2, y: 104, width: wide, height: 6 }));
      const words = `rounding moves it by less than ${formatNumber(floor)}`;
      const middle = Math.min(Math.max(x(focus.at), 3.2 * words.length), width - 3.2 * words.length);
      parts.push(svg("text", { class: "small", x: middle, y: 124, "text-anchor": "middle" }, words));
    }
    return svg("svg", { width, height: floor > 0 ? 130 : 104, role: "img", "aria-label": "The cells around the selected token" }, parts);
  }
}

function axis(x, low, high, width, y) {
  const found = [svg("line", { class: "axis", x1: EDGE, x2: width - EDGE, y1: y, y2: y })];
  for (const at of ticks(low, high, Math.max(2, width / 140)))
    found.push(
      svg("line", { class: "axis", x1: x(at), x2: x(at), y1: y, y2: y + 4 }),
      svg("text", { class: "small", x: x(at), y: y + 17, "text-anchor": "middle" }, formatNumber(at)),
    );
  return found;
}

// Circles for tokens, the selected one last and full, its name above it.
function markers(points, x, y, width) {
  const found = [];
  for (const p of [...points].sort((a, b) => Number(a.selected) - Number(b.selected))) {
    if (!Number.isFinite(p.at)) continue;
    found.push(svg("circle", { class: p.selected ? "token here" : "token", cx: x(p.at), cy: y, r: p.selected ? 7 : 5 }));
    if (p.selected && p.label)
      found.push(svg("text", { class: "name", x: Math.min(Math.max(x(p.at), 40), width - 40), y: 14, "text-anchor": "middle" }, cut(p.label, 24)));
  }
  return found;
}
