// Straight-line programs: the target of a function, and what the tokens of a learner hold. In float64.

const OPERATIONS = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  min: Math.min,
  max: Math.max,
  hypot: Math.hypot,
  neg: (a) => -a,
  abs: Math.abs,
  sqrt: Math.sqrt,
  exp: Math.exp,
  sin: Math.sin,
  cos: Math.cos,
  log: Math.log,
  tanh: Math.tanh,
};

// Lines such as "x 3", "const 0x1.8p+1" or "mul 0 4" over groups of numbers.
export function runScript(script, groups) {
  const values = [];
  for (const line of script.lines) {
    const [word, ...given] = line.split(" ");
    if (word === "const") values.push(readHex(given[0]));
    else if (OPERATIONS[word]) values.push(OPERATIONS[word](...given.map((i) => values[Number(i)])));
    else values.push(groups[word][Number(given[0])]);
  }
  return script.outputs.map((i) => values[i]);
}

// Python's float.hex, exactly.
export function readHex(text) {
  const [, sign, whole, part = "", power] = /^(-?)0x([01])\.?([0-9a-f]*)p([+-]\d+)$/.exec(text);
  const digits = parseInt(whole + part, 16);
  const exponent = Number(power) - 4 * part.length;
  const half = Math.trunc(exponent / 2);
  return (sign ? -1 : 1) * digits * 2 ** half * 2 ** (exponent - half);
}

// The target's values for tokens [n][d]: one list for each token, or one list for all.
export function evaluateTarget(described, tokens) {
  const { program, pooled, per } = described;
  if (!pooled) {
    const values = [];
    for (const [word, ...given] of program.lines) {
      if (word === "x") values.push(tokens[given[0]][given[1]]);
      else if (word === "const") values.push(given[0]);
      else values.push(OPERATIONS[word](...given.map((i) => values[i])));
    }
    const found = program.outputs.map((i) => values[i]);
    const each = per === "token" ? found.length / tokens.length : found.length;
    return Array.from({ length: found.length / each }, (_, i) => found.slice(i * each, (i + 1) * each));
  }
  const own = per === "token" ? tokens : tokens.slice(0, 1);
  return own.map((x) => program.outputs.map((i) => pooledValue(program.lines, i, x, tokens)));
}

// A line of a formula of a token x and of means and largest values over all tokens y.
function pooledValue(lines, output, x, tokens) {
  const value = (i, y) => {
    const [word, ...given] = lines[i];
    if (word === "x") return x[given[0]];
    if (word === "y") return y[given[0]];
    if (word === "const") return given[0];
    if (word === "mean") return tokens.reduce((sum, token) => sum + value(given[0], token), 0) / tokens.length;
    if (word === "largest") return Math.max(...tokens.map((token) => value(given[0], token)));
    return OPERATIONS[word](...given.map((k) => value(k, y)));
  };
  return value(output, null);
}
