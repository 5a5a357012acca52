// Opens a page, or a widget, on a packed model.

import { certificate } from "./certificate.js";
import { html } from "./draw.js";
import { FunctionView } from "./functions.js";
import { LearnerView } from "./learners.js";
import { PageModel } from "./models.js";
import { fromBase64, unpack } from "./payload.js";
import { SequenceView } from "./sequences.js";
import { TextView } from "./text.js";

const VIEWS = { words: SequenceView, reals: SequenceView, text: TextView, function: FunctionView, learner: LearnerView };

export async function mount(root, bytes, served = false) {
  const model = new PageModel({ ...(await unpack(bytes)), served });
  const proved = model.certificate.claims;
  const head = html(
    "header",
    {},
    html("div", {}, html("h1", {}, model.title), html("p", { class: "hint" }, `${model.is}: ${model.says}`)),
    html("span", { class: proved ? "badge" : "badge warn" }, proved ? "certified" : "no certificate"),
  );
  root.classList.add("explorer");
  const steps = html("div", { class: "steps" });
  root.replaceChildren(head, steps);
  const view = new VIEWS[model.kind](model);
  steps.append(...view.nodes, certificate(model));
  root.append(html("footer", {}, `Computed in this page in ${model.dtype}, with the bits of predict(path="reference").`));
  root.explorer = { model, view };
  return root.explorer;
}

// What anywidget calls: `model` holds the packed bytes, and `el` is the cell's output.
export async function renderWidget({ model, el }) {
  const { buffer, byteOffset, byteLength } = model.get("packed");
  const root = html("main", {});
  el.append(root);
  await mount(root, new Uint8Array(buffer, byteOffset, byteLength));
}

export async function openPage() {
  const root = document.getElementById("explorer");
  const packed = document.getElementById("model").textContent;
  const served = !packed.trim();
  const bytes = served ? new Uint8Array(await (await fetch("model")).arrayBuffer()) : fromBase64(packed);
  const { model } = await mount(root, bytes, served);
  document.title = model.title;
  root.dataset.ready = String(performance.now());
}
