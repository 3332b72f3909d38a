// The matrix, dense or sparse: entries, averages over pixels, sums over clusters.

class DenseMatrix {
  constructor(values, facts) {
    Object.assign(this, facts, { values, sparse: false, zeros: false });
  }

  value(row, column) {
    return this.values[row * this.shape[1] + column];
  }

  // Calls visit(column, value) for what is observed in a row.
  visitRow(row, visit) {
    const width = this.shape[1];
    for (let column = 0, at = row * width; column < width; column++, at++) {
      const value = this.values[at];
      if (value === value) visit(column, value);
    }
  }
}

class SparseMatrix {
  constructor(values, lengths, gaps, facts) {
    // What is not stored is zero, or missing, as ratings are.
    Object.assign(this, facts, { values, sparse: true, zeros: !facts.missing });
    this.starts = new Uint32Array(lengths.length + 1);
    this.indices = new Uint32Array(values.length);
    for (let row = 0, at = 0; row < lengths.length; row++) {
      for (let i = 0, column = 0; i < lengths[row]; i++, at++) {
        column += gaps[at];
        this.indices[at] = column;
      }
      this.starts[row + 1] = at;
    }
  }

  value(row, column) {
    let [low, high] = [this.starts[row], this.starts[row + 1]];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.indices[middle] < column) low = middle + 1;
      else high = middle;
    }
    const found = low < this.starts[row + 1] && this.indices[low] === column;
    return found ? this.values[low] : this.zeros ? 0 : NaN;
  }

  visitRow(row, visit) {
    for (let at = this.starts[row]; at < this.starts[row + 1]; at++) {
      visit(this.indices[at], this.values[at]);
    }
  }
}

// Which bin each of `length` places falls into, when there are no more than `most` bins.
function makeBins(length, most) {
  const number = Math.min(length, most);
  const bins = new Uint32Array(length);
  const sizes = new Uint32Array(number);
  for (let place = 0; place < length; place++) {
    bins[place] = Math.floor((place * number) / length);
    sizes[bins[place]]++;
  }
  return { bins, sizes, number };
}

// Means of the matrix over bins of rows and columns, both listed in the order they are shown.
function averageImage(matrix, rows, columns, mostRows, mostColumns) {
  const [down, across] = [makeBins(rows.length, mostRows), makeBins(columns.length, mostColumns)];
  const binOfColumn = new Int32Array(matrix.shape[1]).fill(-1);
  columns.forEach((column, place) => { binOfColumn[column] = across.bins[place]; });
  const sums = new Float64Array(down.number * across.number);
  const observed = new Uint32Array(matrix.zeros ? 0 : sums.length);
  rows.forEach((row, place) => {
    const offset = down.bins[place] * across.number;
    matrix.visitRow(row, (column, value) => {
      const bin = binOfColumn[column];
      if (bin < 0) return;
      sums[offset + bin] += value;
      if (!matrix.zeros) observed[offset + bin]++;
    });
  });
  const [shift, lift] = [[matrix.offset, columns, across], [matrix.rowOffset, rows, down]].map(binnedMeans);
  for (let y = 0, at = 0; y < down.number; y++) {
    for (let x = 0; x < across.number; x++, at++) {
      sums[at] /= matrix.zeros ? down.sizes[y] * across.sizes[x] : observed[at];
      sums[at] += shift[x] + lift[y];
    }
  }
  return { means: sums, height: down.number, width: across.number };
}

// What a sparse view adds to every entry of a column, or of a row, on average over each bin.
function binnedMeans([offset, points, { bins, sizes, number }]) {
  const means = new Float64Array(number);
  if (offset) points.forEach((point, place) => { means[bins[place]] += offset[point] / sizes[bins[place]]; });
  return means;
}

// The central 99 % of some values, of a part where they are many; all where that is a single one.
function centralRange(values) {
  const step = Math.ceil(values.length / 30000);
  const part = new Float64Array(Math.floor(values.length / (step || 1)));
  // The offset walks along, so that the part does not keep to the same columns of an image.
  for (let i = 0; i < part.length; i++) part[i] = values[i * step + (i % step)];
  const sorted = part.filter(Number.isFinite).sort();
  if (!sorted.length) return [0, 1];
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const [low, high] = [at(0.005), at(0.995)];
  return low < high ? [low, high] : [at(0), at(1)];
}
