// What the matrix says about clusters: block means, and what sets each cluster apart.

const TOP = 6;

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
  if (matrix.sparse) {
    const [tall, wide] = [rows, columns].map((part) => sizesOf(part.labels, part.number));
    counts.forEach((_, at) => {
      counts[at] = tall[Math.floor(at / columns.number)] * wide[at % columns.number];
    });
  }
  return Array.from({ length: rows.number }, (_, k) =>
    Array.from({ length: columns.number }, (_, l) => {
      const at = k * columns.number + l;
      return sums[at] / counts[at];
    }));
}

// Sums over each cluster of one side, for every point of the other.
function clusterSums(matrix, partition, side) {
  const width = matrix.shape[side === "row" ? 1 : 0];
  const [sums, counts] = [0, 1].map(() => new Float64Array(partition.number * width));
  const squares = new Float64Array(width);
  for (let row = 0; row < matrix.shape[0]; row++) {
    matrix.visitRow(row, (column, value) => {
      const [own, other] = side === "row" ? [row, column] : [column, row];
      const at = partition.labels[own] * width + other;
      sums[at] += value;
      counts[at]++;
      squares[other] += value * value;
    });
  }
  if (matrix.sparse) {
    const sizes = sizesOf(partition.labels, partition.number);
    counts.forEach((_, at) => { counts[at] = sizes[Math.floor(at / width)]; });
  }
  return { sums, counts, squares, width };
}

// For every cluster the points of the other side that it has more of than the rest. Amounts are
// compared by lift, the ratio of means, ranked by the information it carries, so that something
// seen once does not lead; values below zero by their difference, up or down, in standard
// deviations.
function profiles(matrix, partition, side) {
  const { sums, counts, squares, width } = clusterSums(matrix, partition, side);
  const tops = Array.from({ length: partition.number }, () => []);
  for (let other = 0; other < width; other++) {
    let [sum, number] = [0, 0];
    for (let at = other; at < sums.length; at += width) {
      sum += sums[at];
      number += counts[at];
    }
    const mean = sum / number;
    const deviation = Math.sqrt(Math.max(squares[other] / number - mean * mean, 0));
    if (!(deviation > 0)) continue;
    tops.forEach((top, cluster) => {
      const at = cluster * width + other;
      const own = sums[at] / counts[at];
      const lift = own / mean;
      const effect = (own - mean) / deviation;
      const score = matrix.amounts ? own * Math.log(lift) : Math.abs(effect);
      if (score > 0 && Number.isFinite(score)) top.push({ other, own, lift, effect, score });
    });
  }
  return tops.map((top) => top.sort((a, b) => b.score - a.score).slice(0, TOP));
}
