// What the matrix says about blocks.

function blockMeans(matrix, rows, columns) {
  const sums = new Float64Array(rows.number * columns.number);
  const counts = new Float64Array(sums.length);
  for (let row = 0; row < matrix.shape[0]; row++) {
    const offset = rows.labels[row] * columns.number;
    matrix.visitRow(row, (column, value) => {
      sums[offset + columns.labels[column]] += value;
      counts[offset + columns.labels[column]]++;
    });
  }
  if (matrix.zeros) {
    const [tall, wide] = [rows, columns].map((part) => sizesOf(part.labels, part.number));
    counts.forEach((_, at) => {
      counts[at] = tall[Math.floor(at / columns.number)] * wide[at % columns.number];
    });
  }
  const [across, down] = [offsetMeans(matrix.offset, columns), offsetMeans(matrix.rowOffset, rows)];
  return Array.from({ length: rows.number }, (_, k) =>
    Array.from({ length: columns.number }, (_, l) => {
      const at = k * columns.number + l;
      return sums[at] / counts[at] + (across?.[l] ?? 0) + (down?.[k] ?? 0);
    }));
}

// What a sparse view adds to every entry of a column, or of a row, on average over each cluster.
function offsetMeans(offset, { labels, number }) {
  if (!offset) return null;
  const sums = new Float64Array(number);
  labels.forEach((label, point) => { sums[label] += offset[point]; });
  const sizes = sizesOf(labels, number);
  return sums.map((sum, l) => sum / sizes[l]);
}
