// Around the matrix: trees with the cut, names of clusters, annotations, names of rows and columns.

const PITCH = 13;
const TREE = { row: 46, column: 38 };
const OTHER_COLOURS = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1",
  "#9c755f", "#ff9da7", "#8cd17d", "#86bcb6", "#d4a6c8", "#499894", "#79706e"];

const isNarrow = (picture) => picture.cssWidth < 560;

// Sizes depend on the matrix and the partitions, not on the zoom: the picture must not jump.
function makeGutters(picture, context) {
  const { names, rows, columns, tracks } = picture;
  const narrow = isNarrow(picture);
  const widest = (texts) => {
    const step = Math.ceil(texts.length / 300);
    return texts.reduce((most, text, i) =>
      (i % step ? most : Math.max(most, context.measureText(text).width)), 0);
  };
  context.font = fontOf("name");
  const called = (side) => widest(tracks[side].map(({ name }) => name));
  const right = Math.ceil(Math.min(Math.max(widest(names.row), called("column")), narrow ? 64 : 130)) + 8;
  const [below, tracked] = [widest(names.column), called("row")].map((width) => Math.ceil(Math.min(width, 110)));
  context.font = fontOf("cluster");
  const titles = (side, part) => part.sizes.map((_, k) =>
    (narrow && side === "row" ? clusterName(side, k) : clusterTitle(side, k)));
  const label = Math.ceil(Math.min(widest(titles("row", rows)), narrow ? 40 : 176)) + 8;
  const strip = (side) => STRIP + 5 + TRACK * tracks[side].length;
  const tree = (side, part) => (part.hierarchy && part.hierarchy.n_finest > 1 && !narrow ? TREE[side] : 4);
  const left = tree("row", rows) + label + strip("row");
  const inner = Math.max(picture.cssWidth - left - right, 40);
  const listed = titles("column", columns);
  const [, nColumns] = picture.matrix.shape;
  const fits = columns.spans.every(({ cluster, start, end }) =>
    ((end - start) / nColumns) * inner >= Math.min(context.measureText(listed[cluster]).width, 84) + 8);
  const above = fits ? PITCH + 4 : Math.ceil(Math.min(widest(listed), 140)) + 8;
  const upright = inner / nColumns >= below + 8;
  return {
    left, right, label, strip, above, upright: fits,
    trees: { row: tree("row", rows), column: tree("column", columns) },
    top: tree("column", columns) + above + strip("column"),
    bottom: Math.max(upright ? FONT.name : below, tracked) + 8,
  };
}

const fontOf = (kind) => `${kind === "cluster" ? 500 : 400} ${FONT[kind]}px ${getComputedStyle(document.body).fontFamily}`;

function drawMargins(picture, context) {
  for (const side of ["row", "column"]) {
    drawStrip(picture, context, side);
    picture.tracks[side].forEach((track, i) => drawTrack(picture, context, side, track, i));
    if (!picture.given) {
      drawClusterNames(picture, context, side);
      drawTree(picture, context, side);
    }
    drawNames(picture, context, side);
  }
}

// One side of the picture: where it runs on the screen, and what it consists of.
function edgeOf(picture, side) {
  const { gutter, area } = picture;
  const across = side === "column";
  const low = across ? gutter.left : gutter.top;
  return {
    across, low, high: low + (across ? area.width : area.height),
    toPixel: (place) => (across ? picture.toX(place) : picture.toY(place)),
    partition: across ? picture.columns : picture.rows,
    order: across ? picture.columnOrder : picture.rowOrder,
    view: across ? [picture.view.left, picture.view.right] : [picture.view.top, picture.view.bottom],
  };
}

// A bar beside the matrix, `away` pixels from it.
function fillBeside(picture, context, { across }, away, thickness, from, to) {
  const { gutter } = picture;
  if (across) context.fillRect(from, gutter.top - away - thickness, to - from, thickness);
  else context.fillRect(gutter.left - away - thickness, from, thickness, to - from);
}

function drawStrip(picture, context, side) {
  const edge = edgeOf(picture, side);
  const { partition, order, low, high, toPixel } = edge;
  const spans = picture.given ? findSpans(partition.labels, order) : partition.spans;
  for (const { cluster, start, end } of spans) {
    const [from, to] = [Math.max(toPixel(start), low), Math.min(toPixel(end), high)];
    if (to <= from) continue;
    context.fillStyle = paletteColour(side, cluster);
    fillBeside(picture, context, edge, 3, STRIP, from, to);
  }
}

function drawTrack(picture, context, side, track, i) {
  const edge = edgeOf(picture, side);
  const { order, low, high, view } = edge;
  const step = Math.max((high - low) / (view[1] - view[0]), 1 / picture.ratio);
  for (let at = low; at < high - 1e-6; at += step) {
    const place = Math.floor(view[0] + ((at - low + 1e-6) / (high - low)) * (view[1] - view[0]));
    const next = Math.min(at + step, high);
    context.fillStyle = track.colourOf(order[Math.min(place, order.length - 1)]);
    fillBeside(picture, context, edge, 3 + STRIP + 2 + i * TRACK, TRACK - 2, at, next);
  }
  nameTrack(picture, context, edge, track.name, 2 + STRIP + 2 + (i + 0.5) * TRACK);
}

// At the end of a track, `away` pixels from the matrix: below those of rows, right of the others.
function nameTrack({ gutter, area, ...picture }, context, { across }, name, away) {
  context.font = fontOf("name");
  context.fillStyle = softColour();
  const text = shortenTo(context, name, (across ? gutter.right : gutter.bottom) - 8);
  if (across) write(picture, context, text, gutter.left + area.width + 6, gutter.top - away);
  else write(picture, context, text, gutter.left - away, gutter.top + area.height + 5, { turned: true, align: "right" });
}

// Text that is known to overlap no other: its box is kept.
function write(picture, context, text, x, y, { turned = false, align = "left" } = {}) {
  const width = context.measureText(text).width;
  const shift = { left: 0, center: width / 2, right: width }[align];
  const tall = Number.parseInt(context.font.match(/(\d+)px/)[1], 10);
  picture.boxes.push(turned
    ? { text, x: x - tall / 2, y: y - width + shift, width: tall, height: width }
    : { text, x: x - shift, y: y - tall / 2, width, height: tall });
  context.textAlign = align;
  context.textBaseline = "middle";
  if (!turned) return context.fillText(text, x, y);
  context.save();
  context.translate(x, y);
  context.rotate(-Math.PI / 2);
  context.fillText(text, 0, 0);
  context.restore();
}

function shortenTo(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle).trimEnd()}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low).trimEnd()}…` : "";
}

// Labels at their clusters, moved apart where they would overlap; the smallest clusters go without
// where there is no room for all.
function placeLabels(spans, edge, pitch) {
  const room = Math.max(Math.floor((edge.high - edge.low) / pitch), 1);
  const wanted = spans.map(({ cluster, start, end }) => {
    const [from, to] = [Math.max(edge.toPixel(start), edge.low), Math.min(edge.toPixel(end), edge.high)];
    return { cluster, from, to, at: (from + to) / 2 };
  }).filter(({ from, to }) => to > from);
  const kept = wanted.length <= room ? wanted
    : [...wanted].sort((a, b) => (b.to - b.from) - (a.to - a.from)).slice(0, room).sort((a, b) => a.at - b.at);
  let last = edge.low - pitch / 2;
  for (const label of kept) last = label.place = Math.max(label.at, last + pitch);
  let next = edge.high + pitch / 2;
  for (const label of [...kept].reverse()) next = label.place = Math.min(label.place, next - pitch);
  return kept;
}

function drawClusterNames(picture, context, side) {
  const edge = edgeOf(picture, side);
  const { gutter } = picture;
  context.font = fontOf("cluster");
  context.fillStyle = context.strokeStyle = inkColour();
  context.lineWidth = 0.6;
  const border = side === "row" ? gutter.left - gutter.strip(side) : gutter.top - gutter.strip(side);
  if (side === "column" && gutter.upright) return writeAcross(picture, context, edge, border);
  const room = side === "row" ? gutter.label - 8 : gutter.above - 8;
  for (const { cluster, at, place } of placeLabels(edge.partition.spans, edge, PITCH)) {
    const title = side === "row" && isNarrow(picture) ? clusterName(side, cluster) : clusterTitle(side, cluster);
    const text = shortenTo(context, title, room);
    if (side === "row") write(picture, context, text, border - 6, place, { align: "right" });
    else write(picture, context, text, place, border - 6, { turned: true });
    if (Math.abs(at - place) < 2) continue;
    context.beginPath();
    context.moveTo(...(side === "row" ? [border - 4, place] : [place, border - 4]));
    context.lineTo(...(side === "row" ? [border + 1, at] : [at, border + 1]));
    context.stroke();
  }
}

function writeAcross(picture, context, edge, border) {
  for (const { cluster, start, end } of edge.partition.spans) {
    const [from, to] = [Math.max(edge.toPixel(start), edge.low), Math.min(edge.toPixel(end), edge.high)];
    const text = to > from ? shortenTo(context, clusterTitle("column", cluster), to - from - 4) : "";
    if (text) write(picture, context, text, (from + to) / 2, border - PITCH / 2 - 1, { align: "center" });
  }
}

// Names of rows on the right and of columns below: as many as fit.
function drawNames(picture, context, side) {
  const { across, low, high, order, view, toPixel } = edgeOf(picture, side);
  const { gutter, area } = picture;
  context.font = fontOf("name");
  context.fillStyle = softColour();
  const pitch = (high - low) / (view[1] - view[0]);
  const names = picture.names[side];
  const room = across ? gutter.bottom - 8 : gutter.right - 8;
  const [first, last] = [Math.floor(view[0]), Math.ceil(view[1])];
  const flat = across && pitch >= 24
    && Array.from(order.subarray(first, last)).every((point) => context.measureText(names[point]).width <= pitch - 6);
  const step = Math.max(Math.ceil(PITCH / pitch), 1);
  for (let place = Math.ceil(first / step) * step; place < last; place += step) {
    const at = toPixel(place + 0.5);
    if (at < low + 3 || at > high - 3) continue;
    const text = shortenTo(context, names[order[place]], flat ? Infinity : room);
    if (!across) write(picture, context, text, gutter.left + area.width + 6, at);
    else if (flat) write(picture, context, text, at, gutter.top + area.height + 10, { align: "center" });
    else write(picture, context, text, at, gutter.top + area.height + 5, { turned: true, align: "right" });
  }
}

// The tree ---------------------------------------------------------------------------------------

// Mean place of the members of each finest cluster along the order.
function leafPlaces({ leaves, hierarchy, order }) {
  if (!hierarchy || !leaves) return null;
  const [sums, counts] = [0, 1].map(() => new Float64Array(hierarchy.n_finest));
  order.forEach((point, place) => {
    sums[leaves[point]] += place + 0.5;
    counts[leaves[point]]++;
  });
  const places = Array.from(sums, (sum, leaf) => sum / counts[leaf]);
  for (const [first, second] of childNodes(hierarchy)) {
    const [a, b] = [places[first], places[second]];
    places.push(Number.isNaN(a) ? b : Number.isNaN(b) ? a : (a + b) / 2);
  }
  return places;
}

// Heights are by the number of clusters that a merge leaves, in logarithms, so that the cut is at
// the same height for equally many clusters and the few large ones have room. Branches found
// again with half of the data are drawn thicker.
function drawTree(picture, context, side) {
  const thickness = picture.gutter.trees[side];
  const { partition, low, high, toPixel, across } = edgeOf(picture, side);
  const places = picture.places[side];
  if (!places || thickness < 10) return;
  const { n_finest: leaves } = partition.hierarchy;
  const heightAt = (number) => 1 - Math.log(number) / Math.log(leaves);
  const level = (node) => (node < leaves ? 0 : heightAt(2 * leaves - 1 - node));
  const depth = (height) => thickness - 6 - height * (thickness - 12);
  context.save();
  context.beginPath();
  if (across) context.rect(low, 0, high - low, thickness);
  else context.rect(0, low, thickness, high - low);
  context.clip();
  const go = (name, along, from) => context[name](...(across ? [along, from] : [from, along]));
  const merges = childNodes(partition.hierarchy);
  const cut = leaves - partition.number;
  const back = partition.backOfNodes;
  const draw = (width, ...corners) => {
    context.lineWidth = width;
    context.beginPath();
    corners.forEach(([along, from], i) => go(i ? "lineTo" : "moveTo", along, from));
    context.stroke();
  };
  for (const [above, colour] of [[false, faintColour()], [true, inkColour()]]) {
    context.strokeStyle = colour;
    merges.forEach(([first, second], i) => {
      if (i >= cut !== above) return;
      const top = depth(level(leaves + i));
      const ends = [first, second].map((node) => toPixel(places[node]));
      draw(1, [ends[0], top], [ends[1], top]);
      [first, second].forEach((node, k) => {
        draw(back ? 0.5 + 2.5 * back[node] ** 2 : 1, [ends[k], depth(level(node))], [ends[k], top]);
      });
    });
  }
  context.lineWidth = 1;
  context.strokeStyle = accentColour();
  context.setLineDash([4, 3]);
  context.beginPath();
  const line = depth(heightAt(Math.max(partition.number - 0.5, 0.8)));
  go("moveTo", low, line);
  go("lineTo", high, line);
  context.stroke();
  context.restore();
}
