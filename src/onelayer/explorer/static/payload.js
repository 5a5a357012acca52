// From the bytes of a page, as explorer/payload.py packs them, to a described model with its arrays.

const TYPES = { float32: Float32Array, float64: Float64Array, int32: Int32Array };

export async function unpack(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const described = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  return withArrays(described, buffer, 8 + length);
}

export function fromBase64(text) {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

// Entries {type, shape, start} become {shape, data}.
function withArrays(entry, buffer, first) {
  if (Array.isArray(entry)) return entry.map((part) => withArrays(part, buffer, first));
  if (entry === null || typeof entry !== "object") return entry;
  if (Object.hasOwn(entry, "start") && Object.hasOwn(entry, "shape") && TYPES[entry.type]) {
    const size = entry.shape.reduce((a, b) => a * b, 1);
    return { shape: entry.shape, data: new TYPES[entry.type](buffer, first + entry.start, size) };
  }
  return Object.fromEntries(Object.entries(entry).map(([name, part]) => [name, withArrays(part, buffer, first)]));
}
