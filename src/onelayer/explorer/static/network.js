// The forward pass, operation by operation as network/reference.py does it. Rows are tokens.

import { arithmeticOf, exponential, multiply, solve } from "./arithmetic.js";

export class Network {
  // tensors: {name: {shape, data}}; layers: attention, causal, context, mean, window and repeat of each.
  constructor(dtype, layers, tensors) {
    this.arithmetic = arithmeticOf(dtype);
    this.tensors = tensors;
    this.layers = layers.map((layer, i) => this.readLayer(layer, i ? `${i}.` : ""));
    this.readout = this.layers[this.layers.length - 1].readout;
    this.embedding = this.part("embedding.", ["lift", "table", "bias", "positions"]);
    this.kept = new Map(); // rows after the embedding and the layers before attention, by token and place
  }

  part(prefix, names) {
    return Object.fromEntries(names.map((name) => [name, this.tensors[prefix + name] ?? null]));
  }

  readLayer(layer, prefix) {
    const stack = (name) => {
      const found = [];
      for (let i = 0; this.tensors[`${prefix}${name}.${i}.weight`]; i++) {
        const weight = this.tensors[`${prefix}${name}.${i}.weight`];
        found.push({ weight, bias: this.tensors[`${prefix}${name}.${i}.bias`].data, grouped: weight.shape.length === 3 });
      }
      return found;
    };
    const heads = this.part(`${prefix}attention.`, ["W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "ridge"]);
    return { ...layer, ...heads, feedforward: stack("feedforward"), readout: stack("readout") };
  }

  get places() {
    return this.embedding.positions ? this.embedding.positions.shape[0] : Infinity;
  }

  // Outputs of the tokens that are `asked` (all, unless said), and what was seen on the way. Tokens are ids or lists
  // of numbers; logits are multiplied by `sharpness`, which is 1 in the model itself.
  // `depth` layers of the readout are run, all unless said.
  run(tokens, { asked = null, sharpness = 1, loops = null, depth = Infinity } = {}) {
    const seen = { stacks: {}, heads: [], loops: [] };
    const simple = this.layers.length === 1 && this.layers[0].repeat === 1;
    let h = tokens.map((token, place) => this.embed(token, place));
    seen.embedded = h;
    for (const layer of this.layers) {
      const visible = this.visibleTo(layer, h);
      const repeat = Math.min(layer.repeat, loops ?? layer.repeat);
      for (let loop = 0; loop < repeat; loop++) {
        h = this.feed(layer, h, tokens, simple, seen);
        seen.before = h;
        const queries = simple && asked ? asked : h.map((_, i) => i);
        const update = this.attend(layer, h, visible, queries, sharpness, seen);
        h = h.map((row, i) => (update[i] ? this.add(row, update[i]) : row));
        if (layer.repeat > 1 || this.layers.length > 1) seen.loops.push(h);
      }
    }
    seen.context = h;
    const wanted = asked ?? h.map((_, i) => i);
    const readout = this.readout.slice(0, depth);
    const outputs = wanted.map((i) => this.runStack(readout, h[i], "readout", seen, i, this.readout.length));
    return { outputs, asked: wanted, seen };
  }

  // What the readout makes of one row of the stream.
  readOff(row) {
    return this.runStack(this.readout, row, "readout", { stacks: {} }, 0);
  }

  add(a, b) {
    const found = new this.arithmetic.Row(a.length);
    for (let c = 0; c < a.length; c++) found[c] = a[c] + b[c];
    return found;
  }

  embed(token, place) {
    const { lift, table, bias, positions } = this.embedding;
    const { Row } = this.arithmetic;
    const slice = (tensor, i) => tensor.data.subarray(i * tensor.shape[1], (i + 1) * tensor.shape[1]);
    let row = table ? slice(table, token) : Row.from(token);
    if (lift) row = multiply(this.arithmetic, row, lift.data, lift.shape[1]);
    if (bias) row = this.add(row, bias.data);
    return positions ? this.add(row, slice(positions, place)) : row;
  }

  // The layers before attention. Of a model of ids they depend on token and place only, and are kept.
  feed(layer, h, tokens, simple, seen) {
    if (!layer.feedforward.length) return h;
    return h.map((row, place) => {
      const key = simple && this.embedding.table ? `${tokens[place]} ${this.embedding.positions ? place : ""}` : null;
      if (key !== null && this.kept.has(key)) return this.kept.get(key);
      const found = this.runStack(layer.feedforward, row, "feedforward", seen, place);
      if (key !== null) this.kept.set(key, found);
      return found;
    });
  }

  // `total` is the number of layers of the whole stack: all but its last end in ReLU.
  runStack(layers, row, name, seen, place, total = layers.length) {
    layers.forEach((layer, i) => {
      row = this.apply(layer, row);
      if (i + 1 < total) for (let c = 0; c < row.length; c++) if (!(row[c] > 0)) row[c] = 0;
      const value = (seen.stacks[`${name}.${i}`] ??= []);
      value[place] = row;
    });
    return row;
  }

  apply({ weight, bias, grouped }, row) {
    const { arithmetic } = this;
    const { shape, data } = weight;
    if (!grouped) return this.add(multiply(arithmetic, row, data, shape[1]), bias);
    const [groups, inputs, outputs] = shape;
    const found = new arithmetic.Row(groups * outputs);
    for (let g = 0; g < groups; g++) {
      const part = row.subarray(g * inputs, (g + 1) * inputs);
      found.set(multiply(arithmetic, part, data, outputs, g * inputs * outputs), g * outputs);
    }
    return this.add(found, bias);
  }

  // Which keys a query sees; read once, before the first loop.
  visibleTo(layer, h) {
    const keys = h.map((row) => layer.context === null || row[layer.context] !== 0);
    return (query, key) =>
      keys[key] &&
      (!layer.causal || key <= query) &&
      (layer.window === null || (key <= query && query - key < layer.window));
  }

  attend(layer, h, visible, queries, sharpness, seen) {
    const { arithmetic } = this;
    const [heads, width, size] = layer.W_Q.shape;
    const values = layer.W_V.shape[2];
    const update = [];
    for (const query of queries) update[query] = new arithmetic.Row(width);
    seen.heads = [];
    for (let head = 0; head < heads; head++) {
      const read = (W, b, outputs) => (row) => {
        const found = multiply(arithmetic, row, W.data, outputs, head * width * outputs);
        return b ? this.add(found, b.data.subarray(head * outputs, (head + 1) * outputs)) : found;
      };
      const k = h.map(read(layer.W_K, layer.b_K, size));
      const v = h.map(read(layer.W_V, null, values));
      const asking = read(layer.W_Q, layer.b_Q, size);
      const shown = { weights: [], averages: [], keys: k, values: v };
      for (const query of queries) {
        const q = asking(h[query]);
        const keys = h.map((_, key) => key).filter((key) => visible(query, key));
        const { weights, found } =
          layer.kind === "mesa"
            ? { weights: null, found: this.solveValues(q, k, v, keys, layer.ridge.data[head]) }
            : this.sumValues(layer, q, k, v, keys, sharpness);
        if (weights) shown.weights[query] = h.map((_, key) => weights.get(key) ?? 0);
        shown.averages[query] = found;
        const part = multiply(arithmetic, found, layer.W_O.data, width, head * values * width);
        for (let c = 0; c < width; c++) update[query][c] += part[c];
      }
      seen.heads.push(shown);
    }
    return update;
  }

  sumValues(layer, q, k, v, keys, sharpness) {
    const { arithmetic } = this;
    const { round, Row } = arithmetic;
    const logits = keys.map((key) => {
      let logit = 0;
      for (let c = 0; c < q.length; c++) logit = arithmetic.addProduct(logit, q[c], k[key][c]);
      return sharpness === 1 ? logit + 0 : round(logit * sharpness);
    });
    const sums = (weights) => {
      const found = new Row(v[0].length);
      keys.forEach((key, at) => {
        for (let c = 0; c < found.length; c++) found[c] = arithmetic.addProduct(found[c], weights[at], v[key][c]);
      });
      for (let c = 0; c < found.length; c++) found[c] += 0;
      return found;
    };
    if (layer.kind === "linear" || layer.kind === "relu") {
      const weights = layer.kind === "relu" ? logits.map((logit) => (logit > 0 ? logit : 0)) : logits;
      const alike = layer.kind === "linear" && !layer.causal && layer.window === null; // all queries see the same keys
      const found = alike ? this.readSums(q, this.sumKeys(k, v, keys)) : sums(weights);
      if (layer.mean) for (let c = 0; c < found.length; c++) found[c] /= Math.max(keys.length, 1);
      return { weights: new Map(keys.map((key, at) => [key, weights[at]])), found };
    }
    const top = logits.reduce((a, b) => (b > a ? b : a), -Infinity);
    const weights = logits.map((logit) =>
      layer.kind === "softmax" ? round(exponential(round(logit - top))) : Number(logit === top),
    );
    let mass = 0;
    for (const weight of weights) mass = round(mass + weight);
    const found = sums(weights);
    for (let c = 0; c < found.length; c++) found[c] /= mass > 0 ? mass : 1;
    return { weights: new Map(keys.map((key, at) => [key, weights[at] / mass])), found };
  }

  // Sums over keys of what each component of a key times each of a value is, a list of rows.
  sumKeys(k, v, keys) {
    const { Row, addProduct } = this.arithmetic;
    const sums = Array.from(k[0], () => new Row(v[0].length));
    for (const key of keys)
      sums.forEach((row, i) => {
        for (let j = 0; j < row.length; j++) row[j] = addProduct(row[j], k[key][i], v[key][j]);
      });
    return sums;
  }

  // What a query reads off such sums.
  readSums(q, sums) {
    const { Row, addProduct } = this.arithmetic;
    const found = new Row(sums[0].length);
    sums.forEach((row, i) => {
      for (let j = 0; j < found.length; j++) found[j] = addProduct(found[j], q[i], row[j]);
    });
    for (let j = 0; j < found.length; j++) found[j] += 0;
    return found;
  }

  solveValues(q, k, v, keys, ridge) {
    const gram = this.sumKeys(k, k, keys);
    gram.forEach((row, i) => (row[i] += ridge));
    return this.readSums(q, solve(this.arithmetic, gram, this.sumKeys(k, v, keys)));
  }
}
