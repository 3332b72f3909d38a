// Facts that were not used for fitting: tracks beside the matrix, and tables against the clusters.

async function decodeTracks(packed) {
  const tracks = await Promise.all(packed.map(async (track, i) => {
    const codes = track.codes ? await decodeArray(track.codes) : null;
    const values = track.values ? await decodeArray(track.values) : null;
    return { ...track, codes, values, start: i * 3, range: values && centralRange(values) };
  }));
  return tracks;
}

const categoryColour = ({ categories, start }, code) =>
  (code < categories.length ? OTHER_COLOURS[(start + code) % OTHER_COLOURS.length] : "transparent");

function trackColour(track, point) {
  if (track.codes) return categoryColour(track, track.codes[point]);
  const { shades } = scaleFor(currentTheme(), false);
  const [low, high] = track.range;
  const shade = shadeOf(track.values[point], { low, high });
  return shades[shade] ? asCss(shades[shade]) : "transparent";
}

function trackValue(track, point) {
  if (track.codes) return track.categories[track.codes[point]] ?? "missing";
  return shown(track.values[point]);
}

// Tracks of the rows or columns that the picture holds.
const heldTracks = (side, kept) => report.annotations[side].map((track) => ({
  name: track.name, colourOf: (point) => trackColour(track, kept ? kept[point] : point),
}));

function crossTable({ categories, codes }, { labels, number }) {
  const counts = Array.from({ length: number }, () => new Array(categories.length + 1).fill(0));
  codes.forEach((code, point) => { counts[labels[point]][code]++; });
  return counts;
}

// Adjusted Rand index of a table of counts.
function adjustedRand(counts) {
  const pairs = (n) => (n * (n - 1)) / 2;
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const down = counts.map(sum);
  const across = counts[0].map((_, j) => sum(counts.map((line) => line[j])));
  const all = pairs(sum(down));
  const [both, rows, columns] = [sum(counts.flat().map(pairs)), sum(down.map(pairs)), sum(across.map(pairs))];
  const expected = (rows * columns) / (all || 1);
  const most = (rows + columns) / 2;
  return most === expected ? 1 : (both - expected) / (most - expected);
}

function showAnnotations() {
  const parts = ["row", "column"].flatMap((side) => report.annotations[side].map((track) =>
    (track.codes ? categoryTable(side, track) : numberTable(side, track))));
  byId("annotations").hidden = !parts.length;
  fill("annotation-tables", ...parts);
}

function trackPart(track, text, ...tables) {
  return element("div", { className: "annotation" },
    element("h3", {}, track.name), element("p", { className: "about" }, text),
    element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": `${track.name} by cluster` }, ...tables));
}

function categoryTable(side, track) {
  if (!track.categories.length) return trackPart(track, "All values are missing.");
  const counts = crossTable(track, partitions[side]);
  const known = counts.map((line) => line.slice(0, -1));
  const heads = track.categories.map((name, code) => element("th", { scope: "col" },
    element("span", { className: "chip", style: { background: categoryColour(track, code) } }), name));
  const lines = known.map((line, k) => {
    const most = Math.max(...line);
    return element("tr", {},
      element("th", { scope: "row" }, chip(side, k), clusterTitle(side, k)),
      ...line.map((number) => element("td", { className: number && number === most ? "number most" : "number" },
        number ? number.toLocaleString("en") : "·")));
  });
  const agreement = adjustedRand(known.filter((line) => line.some(Boolean)));
  return trackPart(track,
    `Agreement with the ${side} clusters: ${(Math.round(100 * agreement) / 100 + 0).toFixed(2)} by the adjusted Rand `
      + "index, which is 1 for the same partition and about 0 for an unrelated one.",
    element("table", { className: "rows cross" },
      element("thead", {}, element("tr", {}, element("td"), ...heads)), element("tbody", {}, ...lines)));
}

function numberTable(side, track) {
  const { labels, number } = partitions[side];
  const byCluster = Array.from({ length: number }, () => []);
  track.values.forEach((value, point) => { if (!Number.isNaN(value)) byCluster[labels[point]].push(value); });
  const lines = byCluster.map((values, k) => {
    const sorted = values.sort((a, b) => a - b);
    const at = (share) => (sorted.length ? shown(sorted[Math.round(share * (sorted.length - 1))]) : "–");
    return [clusterTitle(side, k), at(0.25), at(0.5), at(0.75)];
  });
  return trackPart(track, `Quartiles over each ${side} cluster.`,
    table(["cluster", "lower quartile", "median", "upper quartile"], lines, [1, 2, 3]));
}
