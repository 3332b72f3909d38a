// The way back from pack.py: base64, deflate, bytes of equal weight together.

const TYPES = {
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array,
  float32: Float32Array, float64: Float64Array,
};

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(text) {
  const stream = new Blob([fromBase64(text)]).stream();
  const inflated = stream.pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}

async function decodeArray(packed) {
  const planes = await inflate(packed.bytes);
  const Type = TYPES[packed.type];
  const width = Type.BYTES_PER_ELEMENT;
  const length = planes.length / width;
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < width; plane++) {
    for (let i = 0; i < length; i++) bytes[i * width + plane] = planes[plane * length + i];
  }
  return new Type(bytes.buffer);
}

const decodeOptional = (packed) => (packed === null ? null : decodeArray(packed));

async function decodeText(packed) {
  return JSON.parse(new TextDecoder().decode(await inflate(packed)));
}

async function decodeValues(packed) {
  const stored = await decodeArray(packed.values);
  if (!packed.table) return stored;
  const table = packed.table.map((value) => (value === null ? NaN : value));
  return Float64Array.from(stored, (code) => table[code]);
}

async function decodeMatrix(packed) {
  const [rows, columns, values] = await Promise.all([
    decodeOptional(packed.rows), decodeOptional(packed.columns), decodeValues(packed),
  ]);
  const facts = { shape: packed.shape, rows, columns, exact: packed.exact,
    signed: packed.signed, amounts: packed.amounts, missing: packed.missing ?? false };
  if (!packed.lengths) return new DenseMatrix(values, facts);
  const [lengths, gaps] = await Promise.all([
    decodeArray(packed.lengths), decodeArray(packed.gaps),
  ]);
  return new SparseMatrix(values, lengths, gaps, facts);
}

async function decodeSide(packed) {
  const { hierarchy, scaling } = packed;
  return {
    ...packed,
    labels: await decodeArray(packed.labels),
    order: await decodeArray(packed.order),
    confidence: await decodeOptional(packed.confidence),
    hierarchy: hierarchy && { ...hierarchy, finest: await decodeArray(hierarchy.finest) },
    scaling: scaling && { ...scaling, log: await decodeArray(scaling.log) },
  };
}

async function decodePrepared(packed) {
  if (!packed) return null;
  const [factor, shift] = await Promise.all([decodeArray(packed.factor), decodeArray(packed.shift)]);
  return { ...packed, factor, shift, row: packed.row?.bytes ? await decodeArray(packed.row) : packed.row };
}

async function decodeModel(packed) {
  const [row, column] = await Promise.all([
    decodeSide(packed.sides.row), decodeSide(packed.sides.column),
  ]);
  return { ...packed, sides: { row, column }, prepared: await decodePrepared(packed.prepared) };
}

async function decodeContent(content) {
  const [rowTracks, columnTracks, rowNames, columnNames, matrix, ...models] = await Promise.all([
    decodeTracks(content.annotations.row),
    decodeTracks(content.annotations.column),
    decodeText(content.names.row),
    decodeText(content.names.column),
    content.matrix && decodeMatrix(content.matrix),
    ...content.models.map(decodeModel),
  ]);
  return {
    ...content, names: { row: rowNames, column: columnNames }, matrix, models,
    annotations: { row: rowTracks, column: columnTracks },
  };
}
