// Partitions of one side: the fitted one, or a cut of the hierarchy.

function cutHierarchy(hierarchy, number) {
  const names = Array.from({ length: hierarchy.n_finest }, (_, i) => i);
  for (const [first, second] of hierarchy.merges.slice(0, hierarchy.n_finest - number)) {
    for (let i = 0; i < names.length; i++) if (names[i] === second) names[i] = first;
  }
  const used = [...new Set(names)].sort((a, b) => a - b);
  return names.map((name) => used.indexOf(name));
}

// Place of each finest cluster along the tree: in this order every cut is a row of intervals, so
// that borders come and go under the slider while the picture stays where it is.
function treePlaces(hierarchy) {
  const leaves = Array.from({ length: hierarchy.n_finest }, (_, i) => [i]);
  for (const [first, second] of hierarchy.merges) {
    leaves[first] = leaves[first].concat(leaves[second]);
    leaves[second] = [];
  }
  const places = new Uint32Array(hierarchy.n_finest);
  leaves.flat().forEach((leaf, place) => { places[leaf] = place; });
  return places;
}

// Sorts points by a small integer key; equal keys stay in the order given.
function sortByKey(order, keys, nKeys) {
  const starts = new Uint32Array(nKeys + 1);
  for (const point of order) starts[keys[point] + 1]++;
  for (let key = 0; key < nKeys; key++) starts[key + 1] += starts[key];
  const sorted = new Uint32Array(order.length);
  for (const point of order) sorted[starts[keys[point]]++] = point;
  return sorted;
}

// Runs of one cluster along an order.
function findSpans(labels, order) {
  const spans = [];
  order.forEach((point, place) => {
    const last = spans[spans.length - 1];
    if (last && last.cluster === labels[point]) last.end = place + 1;
    else spans.push({ cluster: labels[point], start: place, end: place + 1 });
  });
  return spans;
}

function sizesOf(labels, number) {
  const sizes = new Array(number).fill(0);
  for (const label of labels) sizes[label]++;
  return sizes;
}

function makePartition(side, number) {
  const fitted = number === side.n_clusters;
  let [labels, keys, nKeys] = [side.labels, side.labels, side.n_clusters];
  if (!fitted) {
    const { finest, n_finest: nFinest } = side.hierarchy;
    const [coarse, places] = [cutHierarchy(side.hierarchy, number), treePlaces(side.hierarchy)];
    labels = Uint32Array.from(finest, (leaf) => coarse[leaf]);
    [keys, nKeys] = [Uint32Array.from(finest, (leaf) => places[leaf]), nFinest];
  }
  const order = sortByKey(side.order, keys, nKeys);
  return {
    fitted, number, labels, order,
    sizes: sizesOf(labels, number),
    spans: findSpans(labels, order),
    confidence: fitted ? side.confidence : null,
  };
}

// The same partition of the rows or columns that the picture holds.
function restrict(partition, kept) {
  if (!kept) return partition;
  const place = new Map(Array.from(kept, (point, index) => [point, index]));
  const labels = Uint32Array.from(kept, (point) => partition.labels[point]);
  const order = Uint32Array.from(
    partition.order.filter((point) => place.has(point)), (point) => place.get(point),
  );
  return { ...partition, labels, order, spans: findSpans(labels, order) };
}
