// The steps of a forward pass: codes, attention weights, units that fire.

import { cut, html, svg } from "./draw.js";
import { formatNumber } from "./models.js";

const MOST_ROWS = 12;
const MOST_UNITS = 8;
const MOST_LAYERS = 9; // of more, those in the middle are folded away
const FEW = 3; // named of a layer in which many are on

// Tokens and the channels of their codes.
export function codes(model, tokens, labels, selected, embedded, select) {
  const names = model.unitNames("embedded");
  const size = Math.max(...embedded.flatMap((row) => [...row].map(Math.abs)), 1e-30);
  const channels = [...embedded[0].keys()].slice(0, 8);
  const near = nearest(tokens.length, selected);
  const cell = (value) =>
    html("td", {}, html("span", { class: "bar", style: `--size:${(Math.abs(value) / size).toFixed(4)}`, "data-sign": value < 0 ? "-" : "+" }), html("span", { class: "number" }, formatNumber(value)));
  return html(
    "div",
    { class: "scroll" },
    html(
      "table",
      { class: "codes" },
      html("thead", {}, html("tr", {}, html("th", {}, "token"), channels.map((c) => html("th", { class: "number" }, cut(names[c] ?? `channel ${c}`, 22))))),
      html("tbody", {}, near.map((i) => html("tr", { class: i === selected ? "here" : "", onclick: () => select(i) }, html("th", { scope: "row" }, cut(labels[i], 18)), channels.map((c) => cell(embedded[i][c]))))),
    ),
    more(tokens.length - near.length, "token"),
    more(embedded[0].length - channels.length, "channel"),
  );
}

// Some tokens around the selected one.
export function nearest(count, selected) {
  const first = Math.max(0, Math.min(count - MOST_ROWS, selected - MOST_ROWS / 2));
  return Array.from({ length: Math.min(count, MOST_ROWS) }, (_, i) => first + i);
}

const more = (count, what) => (count > 0 ? html("p", { class: "hint" }, `and ${count.toLocaleString("en")} ${what}${count > 1 ? "s" : ""} more`) : null);

// Who looks at whom: rows ask, columns are looked at; the selected row has its weights written out.
export function attention(heads, labels, selected, select, width) {
  const near = nearest(labels.length, selected);
  const room = Math.min(110, width / 3.2);
  const cell = Math.min(64, (width - room - 4) / near.length);
  const parts = [];
  let top = 0;
  heads.forEach((head, number) => {
    if (!head.weights.length) return;
    if (heads.length > 1) parts.push(svg("text", { class: "small", x: 0, y: top + 12 }, `head ${number}`));
    top += heads.length > 1 ? 18 : 0;
    const size = Math.max(...near.flatMap((i) => (head.weights[i] ?? []).map(Math.abs)), 1e-30);
    const tall = Math.min(cell, 40);
    near.forEach((j, c) => parts.push(svg("text", { class: j === selected ? "small here" : "small", x: room + (c + 0.5) * cell, y: top + 10, "text-anchor": "middle" }, cut(labels[j], Math.max(2, Math.floor(cell / 6.6))))));
    top += 16;
    near.forEach((i) => {
      const row = head.weights[i];
      if (!row) return;
      const group = svg("g", { class: i === selected ? "row here" : "row", onclick: () => select(i) });
      group.append(svg("text", { class: "small", x: room - 8, y: top + tall / 2 + 4, "text-anchor": "end" }, cut(labels[i], Math.floor(room / 7))));
      near.forEach((j, c) => {
        const share = row[j] / size;
        group.append(svg("rect", { class: share < 0 ? "weight below" : "weight", x: room + c * cell + 1, y: top + 1, width: cell - 2, height: tall - 2, rx: 4, style: `--share:${Math.abs(share).toFixed(4)}` }));
        if (cell >= 34) group.append(svg("text", { class: Math.abs(share) > 0.55 ? "inside strong" : "inside", x: room + (c + 0.5) * cell, y: top + tall / 2 + 4, "text-anchor": "middle" }, row[j] < 1 && row[j] >= 0.001 ? row[j].toFixed(3) : formatNumber(row[j])));
      });
      parts.push(group);
      top += tall;
    });
    top += 12;
  });
  return svg("svg", { width, height: Math.max(top, 1), role: "img", "aria-label": "Attention weights" }, parts);
}

// Layer by layer, the units of the readout that are not 0 at one token, by name.
export function gadgets(model, seen, place) {
  const layers = Object.keys(seen.stacks).filter((name) => name.startsWith("readout.") && seen.stacks[name][place]);
  const entry = (name) => {
      const row = seen.stacks[name][place];
      const on = [...row.keys()].filter((i) => row[i] !== 0);
      const [stack, number] = name.split(".");
      const gadget = model.gadgets.find(([s, start, stop]) => s === stack && start <= Number(number) && Number(number) < stop);
      const names = model.unitNames(name);
      const listed = on.sort((a, b) => Math.abs(row[b]) - Math.abs(row[a])).slice(0, on.length > 2 * MOST_UNITS ? FEW : MOST_UNITS);
      const unit = (i) => html("li", {}, html("span", { class: "unit" }, shortName(names[i] ?? `unit ${i}`)), html("span", { class: "number" }, formatNumber(row[i])));
      return html(
        "li",
        {},
        html("div", { class: "layer" }, html("b", {}, gadget ? gadget[3].replaceAll("_", " ") : stack), html("span", { class: "hint" }, `layer ${number}: ${on.length.toLocaleString("en")} of ${row.length.toLocaleString("en")} unit${row.length > 1 ? "s" : ""} on`)),
        html("ul", { class: "units" }, listed.map(unit), on.length > listed.length ? html("li", { class: "hint" }, `and ${(on.length - listed.length).toLocaleString("en")} more`) : null),
      );
  };
  const [first, middle, last] = layers.length > MOST_LAYERS ? [layers.slice(0, 4), layers.slice(4, -2), layers.slice(-2)] : [layers, [], []];
  const list = (names) => html("ol", { class: "layers" }, names.map(entry));
  if (!middle.length) return list(first);
  return html("div", {}, list(first), html("details", {}, html("summary", {}, `${middle.length} more layers`), list(middle)), list(last));
}

// Of stack / gadget / unit all but the first two, which the heading says.
const shortName = (name) => name.split(" / ").slice(2).join(" / ") || name.split(" / ").pop();
