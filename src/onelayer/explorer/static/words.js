// Tokens that are words: type one, or pick it from the vocabulary.

import { html } from "./draw.js";

const MOST_OFFERED = 2000; // words that a list offers; any other can be typed

export class Words {
  constructor(model) {
    this.model = model;
    const offered = model.vocabulary.slice(0, MOST_OFFERED).map((word) => html("option", { value: word }));
    this.list = html("datalist", { id: `words-${Math.random().toString(36).slice(2)}` }, offered);
    this.node = this.list;
  }

  label(token) {
    return token < 0 ? "?" : this.model.vocabulary[token];
  }

  another(tokens) {
    return tokens.length ? tokens[tokens.length - 1] : 0;
  }

  known(tokens) {
    return tokens.every((token) => token >= 0);
  }

  // A field for one token; `change` gets the id of the word, or -1.
  field(token, place, change, select) {
    const input = html("input", {
      class: "word", type: "text", list: this.list.id, spellcheck: "false", autocomplete: "off", "aria-label": `Token ${place + 1}`,
      onfocus: () => {
        input.select();
        select();
      },
      onchange: () => change(this.model.index.get(input.value.trim()) ?? -1),
    });
    input.value = this.label(token);
    input.size = Math.max(3, Math.min(22, input.value.length + 1));
    return input;
  }

  follow() {}
}
