// What is proved, in words, and every constant of the model.

import { card, html } from "./draw.js";

export function certificate(model) {
  const { claims, words } = model.certificate;
  const part = card(claims ? `Certificate: ${claims} claim${claims > 1 ? "s" : ""}` : "No certificate", "", { wide: true, name: "certificate" });
  const [first, ...rest] = words;
  part.say(first?.text ?? "");
  for (const { text, items } of rest)
    part.body.append(items.length ? html("h3", {}, text.replace(/:$/, "")) : html("p", { class: "fine" }, text), items.length ? html("ul", {}, items.map((item) => html("li", {}, item))) : "");
  const rows = model.constants.map(([name, value, meaning]) => html("tr", {}, html("th", { scope: "row" }, name), html("td", { class: "number" }, value), html("td", { class: "fine" }, meaning)));
  part.body.append(html("details", {}, html("summary", {}, "Every constant of the model"), html("div", { class: "scroll" }, html("table", { class: "constants" }, html("tbody", {}, rows)))));
  return part.node;
}
