// What a cell shows: its value, or the value beside what one would expect of it.

const MODES = {
  value: ["Value", "Values as given."],
  prepared: ["Prepared value", "Prepared values, which the fit used."],
  rated: ["Rated", "Share of the entries with a rating, in percent."],
  standard: ["Standard deviations", "Standard deviations above (+) or below (−) the mean of the column."],
  deviation: ["Deviation", "Difference from the mean of the column."],
  lift: ["Lift", "Lift: value divided by the value expected from the totals of its row and column."],
  information: ["Information", ""],
};
const INFORMATION = {
  amounts: "Contribution of each block to the mutual information of rows and columns, in thousandths of a bit.",
  numbers: "Share of the variance of the standardised columns that each block explains, in percent.",
};

// Means, deviations and totals of the columns, totals of the rows; found once.
function columnFacts(matrix) {
  if (matrix.facts) return matrix.facts;
  const [height, width] = matrix.shape;
  const [sums, squares, counts] = [0, 1, 2].map(() => new Float64Array(width));
  const rowSums = new Float64Array(height);
  for (let row = 0; row < height; row++) {
    matrix.visitRow(row, (column, value) => {
      sums[column] += value;
      counts[column]++;
      rowSums[row] += value;
    });
  }
  if (matrix.zeros) counts.fill(height);
  const means = sums.map((sum, j) => sum / (counts[j] || 1));
  // Squares of what is centred: large means would swallow small deviations.
  const stored = new Float64Array(width);
  for (let row = 0; row < height; row++) {
    matrix.visitRow(row, (column, value) => {
      squares[column] += (value - means[column]) ** 2;
      stored[column]++;
    });
  }
  const deviations = squares.map((square, j) => Math.sqrt(
    (square + (matrix.zeros ? (height - stored[j]) * means[j] ** 2 : 0)) / (counts[j] || 1)));
  const total = rowSums.reduce((sum, value) => sum + value, 0);
  matrix.facts = { sums, means, deviations, rowSums, total };
  return matrix.facts;
}

// The modes that make sense of a matrix.
function modesOf(matrix) {
  const offered = {
    prepared: model().prepared !== null, rated: matrix.missing, information: !matrix.missing,
    lift: matrix.amounts && columnFacts(matrix).total > 0,
  };
  return Object.keys(MODES).filter((mode) => offered[mode] ?? true);
}

// Columns in very different units cannot share a scale of colours.
function firstMode(matrix) {
  if (matrix.sparse) return "value";
  const spread = [...columnFacts(matrix).deviations].filter((value) => value > 0).sort((a, b) => a - b);
  const at = (share) => spread[Math.round(share * (spread.length - 1))];
  if (spread.length < 2 || spread.length > 200) return "value";
  return at(0.9) > 8 * at(0.1) || at(1) > 4 * at(0.5) ? "standard" : "value";
}

// The same matrix with other values; what a column adds to every entry is kept apart if sparse.
function viewOf(matrix, mode) {
  if (mode === "value" || mode === "information") return matrix;
  matrix.views ??= {};
  if (mode === "prepared") {
    return matrix.views[`${mode} ${state.model}`] ??= preparedView(matrix, model().prepared);
  }
  const make = { lift: liftView, rated: ratedView }[mode] ?? shiftedView;
  return matrix.views[mode] ??= make(matrix, mode);
}

const TRANSFORMS = {
  none: (value) => value, log: (value) => Math.log(Math.max(value, Number.MIN_VALUE)),
  sqrt: (value) => Math.sqrt(Math.max(value, 0)), log1p: Math.log1p,
};

// Values as the fit saw them; words, of which it saw the level, have no number.
function preparedView(matrix, recipe) {
  const [, width] = matrix.shape;
  const held = (list, kept) => (kept ? Float64Array.from(kept, (point) => list[point]) : list);
  const [factor, shift] = [recipe.factor, recipe.shift].map((list) => held(list, matrix.columns));
  const [low, high] = recipe.limits ?? [-Infinity, Infinity];
  const taken = Array.from({ length: width }, (_, j) => TRANSFORMS[typeof recipe.transform === "string"
    ? recipe.transform : recipe.transform[matrix.columns ? matrix.columns[j] : j]]);
  const prepare = (column, value) =>
    factor[column] * taken[column](Math.min(Math.max(value, low), high)) + shift[column];
  const effects = !recipe.row ? null : recipe.row.buffer ? held(recipe.row, matrix.rows)
    : ownEffects(matrix, prepare, recipe.row);
  const effect = (row) => (effects ? effects[row] : 0);
  const view = Object.assign(Object.create(matrix), {
    signed: true, amounts: false, zeros: matrix.zeros && factor.every(Number.isFinite),
    value: (row, column) => prepare(column, matrix.value(row, column)) - effect(row),
  });
  if (view.zeros) {
    view.offset = Float64Array.from({ length: width }, (_, j) => prepare(j, 0));
    view.rowOffset = effects && effects.map((one) => -one);
    view.visitRow = (row, visit) => matrix.visitRow(row,
      (column, value) => visit(column, prepare(column, value) - view.offset[column]));
  } else {
    view.visitRow = (row, visit) => visitAll(matrix, row, (column, value) => {
      const found = prepare(column, value) - effect(row);
      if (found === found) visit(column, found);
    });
  }
  withRange(view);
  view.signed = view.entryRange[0] < 0 && view.entryRange[1] > 0;
  return view;
}

// Zeros that are not stored are visited, too.
function visitAll(matrix, row, visit) {
  if (!matrix.zeros) return matrix.visitRow(row, visit);
  const line = new Float64Array(matrix.shape[1]);
  matrix.visitRow(row, (column, value) => { line[column] = value; });
  return line.forEach((value, column) => visit(column, value));
}

// The mean of a row's prepared numbers.
function ownEffects(matrix, prepare, isNumber) {
  return Float64Array.from({ length: matrix.shape[0] }, (_, row) => {
    let [sum, number] = [0, 0];
    visitAll(matrix, row, (column, value) => {
      if (!isNumber[matrix.columns ? matrix.columns[column] : column]) return;
      sum += prepare(column, value);
      number++;
    });
    return number ? sum / number : 0;
  });
}

// In percent.
function ratedView(matrix) {
  return withRange(Object.assign(Object.create(matrix), {
    signed: false, amounts: true, zeros: true,
    value: (row, column) => (Number.isNaN(matrix.value(row, column)) ? 0 : 100),
    visitRow: (row, visit) => matrix.visitRow(row, (column) => visit(column, 100)),
  }));
}

function liftView(matrix) {
  const { sums, rowSums, total } = columnFacts(matrix);
  const lift = (row, column, value) => (value === 0 ? 0 : (value * total) / (rowSums[row] * sums[column]));
  return withRange(Object.assign(Object.create(matrix), {
    signed: false, amounts: true,
    value: (row, column) => lift(row, column, matrix.value(row, column)),
    visitRow: (row, visit) => matrix.visitRow(row, (column, value) => visit(column, lift(row, column, value))),
  }));
}

function shiftedView(matrix, mode) {
  const { means, deviations } = columnFacts(matrix);
  const factors = mode === "standard" ? deviations.map((sd) => (sd > 0 ? 1 / sd : 0)) : means.map(() => 1);
  const offset = means.map((mean, j) => -mean * factors[j]);
  const kept = matrix.zeros ? () => 0 : (column) => offset[column];
  return withRange(Object.assign(Object.create(matrix), {
    signed: true, amounts: false, offset: matrix.zeros ? offset : null,
    value: (row, column) => matrix.value(row, column) * factors[column] + offset[column],
    visitRow: (row, visit) => matrix.visitRow(row,
      (column, value) => visit(column, value * factors[column] + kept(column))),
  }));
}

function withRange(view) {
  const [height, width] = view.shape;
  const some = Math.min(height * width, 20000);
  // Steps that share no factor with the width reach all columns.
  const values = Float64Array.from({ length: some }, (_, i) => {
    const at = Math.floor((i * (height * width - 1)) / Math.max(some - 1, 1));
    return view.value(Math.floor(at / width), (at + i) % width);
  });
  view.entryRange = centralRange(values);
  return view;
}

// A table of what blocks tell, in place of their means.
function blockTable(matrix, rows, columns, mode) {
  if (mode === "information") return matrix.amounts
    ? mutualInformation(matrix, rows, columns) : explained(matrix, rows, columns);
  if (mode !== "lift") return blockMeans(viewOf(matrix, mode), rows, columns);
  const { sums, down, across, total } = blockSums(matrix, rows, columns);
  return sums.map((line, k) => line.map((sum, l) => (sum * total) / (down[k] * across[l])));
}

function blockSums(matrix, rows, columns) {
  const [tall, wide] = [rows, columns].map((part) => sizesOf(part.labels, part.number));
  const sums = blockMeans(matrix, rows, columns)
    .map((line, k) => line.map((mean, l) => (Number.isNaN(mean) ? 0 : mean * tall[k] * wide[l])));
  const down = sums.map((line) => line.reduce((a, b) => a + b, 0));
  const across = columns.sizes.map((_, l) => sums.reduce((a, line) => a + line[l], 0));
  return { sums, down, across, total: down.reduce((a, b) => a + b, 0) };
}

function mutualInformation(matrix, rows, columns) {
  const { sums, down, across, total } = blockSums(matrix, rows, columns);
  return sums.map((line, k) => line.map((sum, l) =>
    (sum > 0 ? 1000 * (sum / total) * Math.log2((sum * total) / (down[k] * across[l])) : 0)));
}

function explained(matrix, rows, columns) {
  const [tall, wide] = [rows, columns].map((part) => sizesOf(part.labels, part.number));
  const entries = matrix.shape[0] * matrix.shape[1];
  return blockMeans(viewOf(matrix, "standard"), rows, columns)
    .map((line, k) => line.map((mean, l) => (100 * (mean ** 2) * tall[k] * wide[l]) / entries));
}
