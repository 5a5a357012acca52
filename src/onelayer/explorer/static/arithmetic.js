// Arithmetic whose bits are those of network/arithmetic.py: sums in order, each product rounded before it is added.

const wide = new Float64Array(1);
const halves = new Uint32Array(wide.buffer); // little-endian, as the numbers of a page are
const TO_WHOLE = 1.5 * 2 ** 52;
const LOG2_E = 1.4426950408889634;
const LN2_HIGH = 0.6931471803691238;
const LN2_LOW = 1.9082149292705877e-10;
const LOWEST = -800;
const COEFFICIENTS = [1];
for (let i = 1, factorial = 1; i <= 13; i++) COEFFICIENTS.unshift(1 / (factorial *= i));

function powerOfTwo(k) {
  halves[0] = 0;
  halves[1] = (k + 1023) << 20;
  return wide[0];
}

// e^x for x <= 0, in float64.
export function exponential(x) {
  const z = Math.max(x, LOWEST);
  const power = z * LOG2_E + TO_WHOLE - TO_WHOLE;
  const rest = z - power * LN2_HIGH - power * LN2_LOW;
  let found = COEFFICIENTS[0];
  for (let i = 1; i < COEFFICIENTS.length; i++) found = found * rest + COEFFICIENTS[i];
  const half = Math.floor(power / 2);
  return found * powerOfTwo(half) * powerOfTwo(power - half);
}

const { fround } = Math;
const SINGLE = { Row: Float32Array, round: fround, addProduct: (total, a, b) => fround(total + fround(a * b)) };
const DOUBLE = { Row: Float64Array, round: (x) => x, addProduct: (total, a, b) => total + a * b };

export const arithmeticOf = (dtype) => (dtype === "float32" ? SINGLE : DOUBLE);

// x [k] times weight [k, m] (flat, from `start` on), each sum in order of k. A zero has no sign.
export function multiply(arithmetic, x, weight, outputs, start = 0) {
  const { Row, round } = arithmetic;
  const found = new Row(outputs);
  for (let k = 0; k < x.length; k++) {
    const a = x[k];
    if (a === 0) continue;
    for (let j = 0, at = start + k * outputs; j < outputs; j++, at++) {
      const b = weight[at];
      if (b !== 0) found[j] += round(a * b);
    }
  }
  for (let j = 0; j < outputs; j++) found[j] += 0;
  return found;
}

// gram^-1 cross for positive definite gram [s, s] and cross [s, v], both lists of rows, by elimination in order.
export function solve(arithmetic, gram, cross) {
  const { round } = arithmetic;
  const s = gram.length;
  const subtract = (row, factor, other, from) => {
    for (let c = from; c < row.length; c++) row[c] = round(row[c] - round(factor * other[c]));
  };
  for (let i = 0; i < s; i++)
    for (let j = i + 1; j < s; j++) {
      const factor = round(gram[j][i] / gram[i][i]);
      subtract(gram[j], factor, gram[i], i);
      subtract(cross[j], factor, cross[i], 0);
    }
  for (let i = s - 1; i >= 0; i--) {
    for (let j = i + 1; j < s; j++) subtract(cross[i], gram[i][j], cross[j], 0);
    for (let c = 0; c < cross[i].length; c++) cross[i][c] = round(cross[i][c] / gram[i][i]);
  }
  return cross;
}
