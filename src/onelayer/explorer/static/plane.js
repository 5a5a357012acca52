// Two coordinates of a context at once: rows and columns of cells, stored contexts, and the tokens that are asked.

import { fitted, html, scale, svg, ticks } from "./draw.js";
import { formatNumber } from "./models.js";

const MOST_CUTS = 160; // more are not told apart at this size

// Lines in pairs: the rows and the columns of one table. Lines without a partner stay alone.
export function pairLines(lines) {
  const table = (line) => line.name.replace(/\/? *(rows|columns)$/, "");
  const planes = lines
    .filter((line) => line.name.endsWith("rows"))
    .map((rows) => [lines.find((line) => line.name.endsWith("columns") && table(line) === table(rows)), rows])
    .filter(([columns, rows]) => columns && columns.coordinate !== rows.coordinate && columns.depth === rows.depth);
  const paired = new Set(planes.flat());
  return { planes: planes.map(([columns, rows]) => ({ columns, rows, name: table(rows).trim() })), alone: lines.filter((line) => !paired.has(line)) };
}

export class Plane {
  // points(line): [{at, label, selected}]; stored(line): [{at}]
  constructor({ columns, rows, name }, points, stored) {
    Object.assign(this, { columns, rows, points, stored });
    this.plot = html("div", { class: "plot" });
    this.node = html("figure", {}, this.plot, html("figcaption", { class: "hint" }, name));
    this.update = fitted(this.plot, (width) => this.draw(width));
  }

  draw(width) {
    const height = Math.min(width * 0.8, 300);
    const [x, y] = [this.axis(this.columns, 44, width - 8), this.axis(this.rows, height - 24, 8)];
    const parts = [svg("rect", { class: "frame", x: 44, y: 8, width: width - 52, height: height - 32 })];
    for (const [line, place, vertical] of [[this.columns, x, true], [this.rows, y, false]]) {
      const cuts = line.at.data;
      if (cuts.length <= MOST_CUTS)
        for (let j = 0; j < cuts.length; j++) {
          const at = place(cuts[j] + 0.5 / line.slope.data[j]);
          parts.push(svg("line", { class: "cut", ...(vertical ? { x1: at, x2: at, y1: 8, y2: height - 24 } : { y1: at, y2: at, x1: 44, x2: width - 8 }) }));
        }
      for (const at of ticks(place.low, place.high, vertical ? width / 110 : 5))
        parts.push(svg("text", { class: "small", ...(vertical ? { x: place(at), y: height - 8, "text-anchor": "middle" } : { x: 38, y: place(at) + 4, "text-anchor": "end" }) }, formatNumber(at)));
    }
    const across = this.stored(this.columns);
    const up = this.stored(this.rows);
    across.forEach((p, i) => parts.push(svg("circle", { class: "faint", r: 1.8, cx: x(p.at), cy: y(up[i].at) })));
    const heights = this.points(this.rows);
    const order = this.points(this.columns).map((p, i) => ({ ...p, up: heights[i].at })).sort((a, b) => Number(a.selected) - Number(b.selected));
    for (const p of order) parts.push(svg("circle", { class: p.selected ? "token here" : "token", r: p.selected ? 7 : 5, cx: x(p.at), cy: y(p.up) }));
    return svg("svg", { width, height, role: "img", "aria-label": "Two coordinates of the context in their cells" }, parts);
  }

  axis(line, from, to) {
    const cuts = line.at.data;
    const all = [cuts[0], cuts[cuts.length - 1], ...this.points(line).map((p) => p.at), ...this.stored(line).map((p) => p.at)];
    const [low, high] = [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
    const margin = (high - low) * 0.04 || 1;
    return Object.assign(scale(low - margin, high + margin, from, to), { low, high });
  }
}
