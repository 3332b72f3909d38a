// Partitions of one side: the fitted one, or a cut of the hierarchy.

function cutHierarchy(hierarchy, number) {
  const names = Array.from({ length: hierarchy.n_finest }, (_, i) => i);
  for (const [first, second] of hierarchy.merges.slice(0, hierarchy.n_finest - number)) {
    for (let i = 0; i < names.length; i++) if (names[i] === second) names[i] = first;
  }
  const used = [...new Set(names)].sort((a, b) => a - b);
  return names.map((name) => used.indexOf(name));
}

// Nodes of the tree that a cut consists of, in the order in which it numbers its clusters.
function cutNodes(hierarchy, number) {
  const { n_finest: leaves, merges } = hierarchy;
  const nodes = Array.from({ length: leaves }, (_, leaf) => leaf);
  merges.slice(0, leaves - number).forEach(([first, second], i) => {
    nodes[first] = leaves + i;
    nodes[second] = -1;
  });
  return nodes.filter((node) => node >= 0);
}

// The two nodes that each merge joins.
function childNodes({ n_finest: leaves, merges }) {
  const current = Array.from({ length: leaves }, (_, leaf) => leaf);
  return merges.map(([first, second], i) => {
    const pair = [current[first], current[second]];
    current[first] = leaves + i;
    return pair;
  });
}

// A number for every node, which gives its clusters their code, colour and name. The fitted
// clusters keep theirs; of a split the larger part keeps it, and so does it in a merger.
function nodeIdentities(side) {
  const { hierarchy, labels, n_clusters: fitted } = side;
  const { n_finest: leaves, finest } = hierarchy;
  const children = childNodes(hierarchy);
  const sizes = sizesOf(finest, leaves);
  for (const [first, second] of children) sizes.push(sizes[first] + sizes[second]);
  const anchor = Math.min(fitted, leaves);
  const nodes = cutNodes(hierarchy, anchor);
  const ids = new Array(2 * leaves - 1).fill(-1);
  matchNodes(nodes, cutHierarchy(hierarchy, anchor), finest, labels, fitted)
    .forEach((id, i) => { ids[nodes[i]] = id; });
  let next = fitted;
  const bySize = ([first, second]) => (sizes[first] >= sizes[second] ? [first, second] : [second, first]);
  for (let merge = leaves - anchor - 1; merge >= 0; merge--) {
    const [large, small] = bySize(children[merge]);
    ids[large] = ids[leaves + merge];
    ids[small] = next++;
  }
  for (let merge = leaves - anchor; merge < children.length; merge++) {
    ids[leaves + merge] = ids[bySize(children[merge])[0]];
  }
  return ids;
}

// Which fitted cluster each cluster of a cut is: the pairs that share most members first.
function matchNodes(nodes, coarse, finest, labels, fitted) {
  const shared = new Float64Array(nodes.length * fitted);
  finest.forEach((leaf, point) => { shared[coarse[leaf] * fitted + labels[point]]++; });
  const pairs = Array.from(shared.keys()).sort((a, b) => shared[b] - shared[a]);
  const [found, taken] = [new Array(nodes.length).fill(-1), new Set()];
  for (const pair of pairs) {
    const [node, cluster] = [Math.floor(pair / fitted), pair % fitted];
    if (found[node] >= 0 || taken.has(cluster)) continue;
    found[node] = cluster;
    taken.add(cluster);
  }
  return found;
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
  const { hierarchy } = side;
  const ids = hierarchy ? (side.identities ??= nodeIdentities(side)) : null;
  let [labels, own] = [side.labels, Array.from({ length: number }, (_, k) => k)];
  let [keys, nKeys, told] = [side.labels, side.n_clusters, side.portraits];
  if (!fitted) {
    const coarse = cutHierarchy(hierarchy, number);
    const nodes = cutNodes(hierarchy, number);
    labels = Uint32Array.from(hierarchy.finest, (leaf) => coarse[leaf]);
    own = nodes.map((node) => ids[node]);
    told = side.nodes && nodes.map((node) => side.nodes[node]);
  }
  if (hierarchy) {
    // In the order of the tree, so that the picture stays where it is when borders come and go.
    const places = treePlaces(hierarchy);
    const rank = fitted ? rankClusters(side, ids, places) : null;
    nKeys = hierarchy.n_finest;
    const inTree = (leaf) => places[leaf];
    keys = fitted
      ? Uint32Array.from(side.labels, (label, point) => rank[label] * nKeys + inTree(hierarchy.finest[point]))
      : Uint32Array.from(hierarchy.finest, inTree);
    if (fitted) nKeys *= number;
  }
  const order = sortByKey(side.order, keys, nKeys);
  return {
    fitted, number, labels, order, ids: own, portraits: told ?? null,
    leaves: hierarchy?.finest ?? null, hierarchy,
    sizes: sizesOf(labels, number),
    spans: findSpans(labels, order),
    confidence: fitted ? side.confidence : null,
    back: backOf(side, fitted, number),
    backOfNodes: side.halves?.nodes?.length ? side.halves.nodes : null,
  };
}

// How much of every cluster is found again with half of the data: of fitted ones, or of nodes of the tree.
function backOf({ halves, hierarchy }, fitted, number) {
  if (fitted || !halves) return halves?.clusters ?? null;
  return halves.nodes.length ? cutNodes(hierarchy, number).map((node) => halves.nodes[node]) : null;
}

// Rank of each fitted cluster along the tree.
function rankClusters(side, ids, places) {
  const { hierarchy, n_clusters: number } = side;
  const first = new Array(number).fill(Infinity);
  const nodes = cutNodes(hierarchy, Math.min(number, hierarchy.n_finest));
  const coarse = cutHierarchy(hierarchy, nodes.length);
  coarse.forEach((cluster, leaf) => {
    const id = ids[nodes[cluster]];
    if (id < number) first[id] = Math.min(first[id], places[leaf]);
  });
  const sorted = first.map((_, k) => k).sort((a, b) => first[a] - first[b] || a - b);
  const rank = [];
  sorted.forEach((cluster, place) => { rank[cluster] = place; });
  return rank;
}

// The same partition of the rows or columns that the picture holds.
function restrict(partition, kept) {
  if (!kept) return partition;
  const place = new Map(Array.from(kept, (point, index) => [point, index]));
  const labels = Uint32Array.from(kept, (point) => partition.labels[point]);
  const order = Uint32Array.from(
    partition.order.filter((point) => place.has(point)), (point) => place.get(point),
  );
  const leaves = partition.leaves && Uint32Array.from(kept, (point) => partition.leaves[point]);
  return { ...partition, labels, order, leaves, spans: findSpans(labels, order) };
}
