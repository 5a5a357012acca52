// Elements of a page. Names come from anybody's data: they only ever become text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// A step of the way from tokens to an answer: a heading, a sentence, and a body to draw in.
export function card(title, hint, { wide = false, name = "" } = {}) {
  const body = html("div", { class: "body" });
  const say = html("p", { class: "hint" }, hint);
  const node = html("section", { class: wide ? "card wide" : "card", "data-step": name }, html("h2", {}, title), say, body);
  return { node, body, say: (words) => say.replaceChildren(words) };
}

// Draws with the width that there is, and again when it changes.
export function fitted(container, draw) {
  let width = 0;
  let asked = false;
  const now = () => {
    asked = false;
    const measured = container.clientWidth;
    if (measured > 0) container.replaceChildren(draw((width = measured)));
  };
  const soon = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(now);
  };
  new ResizeObserver(() => container.clientWidth !== width && soon()).observe(container);
  return soon;
}

export function scale(low, high, from, to) {
  const span = high - low || 1;
  const place = (x) => from + ((x - low) / span) * (to - from);
  place.invert = (at) => low + ((at - from) / (to - from || 1)) * span;
  return place;
}

// Round numbers between low and high, about `count` of them.
export function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  if (!(raw > 0) || !Number.isFinite(raw)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((k) => k * power >= raw);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++) found.push(k * step);
  return found;
}

// Text that ends in … where it would be wider than this many characters.
export const cut = (text, most) => (text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`);

// Where the pointer is dragged, as x and y of the SVG; arrow keys move too.
export function draggable(node, move) {
  const report = (event) => {
    const box = node.getBoundingClientRect();
    move(event.clientX - box.left, event.clientY - box.top);
  };
  node.addEventListener("pointerdown", (event) => {
    node.setPointerCapture(event.pointerId);
    report(event);
    event.preventDefault();
    node.focus?.();
  });
  node.addEventListener("pointermove", (event) => node.hasPointerCapture(event.pointerId) && report(event));
}

export function onArrows(node, step) {
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  node.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    step(...move.map((x) => x * (event.shiftKey ? 10 : 1)));
  });
}

export const button = (words, onclick, attributes = {}) => html("button", { type: "button", onclick, ...attributes }, words);
