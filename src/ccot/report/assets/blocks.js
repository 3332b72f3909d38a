// Clusters in numbers: block means, and a card for each cluster.

const MANY_BLOCKS = 12;

const OTHER_UNIT = {
  prepared: "Below it, the mean of the prepared values, which the fit used.",
  value: "Below it, for clusters of a single column, the mean in its unit.",
  rated: "Below it, the share of the entries with a rating.",
};

function showBlocks(means, other, partitions, onBlock) {
  const { row, column } = partitions;
  if (!means) {
    byId("blocks-about").textContent = "The page was made without the matrix, so it has no means of these blocks.";
    fill("block-table");
    return;
  }
  const about = unit() === "standard"
    ? "Mean over each block, in standard deviations above or below the mean of each column, because columns have different units."
    : report.matrix?.missing ? "Mean rating of each block, missing ratings left out." : "Mean of the matrix over each block.";
  byId("blocks-about").textContent = [about, OTHER_UNIT[other?.mode], "Click a block to see its entries."].filter(Boolean).join(" ");
  const limits = blockLimits(means);
  const scale = scaleFor(currentTheme(), limits.signed);
  const head = (side, k) => {
    const size = partitions[side].sizes[k].toLocaleString("en");
    return element("th", { scope: side === "row" ? "row" : "col", title: clusterTitle(side, k) },
      chip(side, k), `${clusterName(side, k)} `, element("span", {}, `(${size})`),
      side === "row" ? element("span", { className: "given-name" }, givenName(side, k)) : null);
  };
  const cell = (mean, k, l) => {
    const shade = shadeOf(mean ?? NaN, limits);
    const colour = scale.shades[shade] ?? scale.missing;
    const second = other?.means[k][l] ?? NaN;
    const below = Number.isNaN(second) ? null : `${shown(second, 3)}${other.mode === "rated" ? " %" : ""}`;
    return element("td", {}, element("button", {
      type: "button", onclick: () => onBlock(k, l),
      style: { background: asCss(colour), color: inkOn(colour) },
      "aria-label": `Block ${clusterName("row", k)}, ${clusterName("column", l)}: mean ${shown(mean, 3)}${below ? `, ${other.mode} ${below}` : ""}`,
    }, shown(mean, 3), below && element("small", {}, below)));
  };
  const wide = column.number > MANY_BLOCKS ? "block-means dense" : "block-means";
  fill("block-table", element(
    "table", { className: wide },
    element("thead", {}, element("tr", {}, element("td"),
      ...column.sizes.map((_, l) => head("column", l)))),
    element("tbody", {}, ...means.map((line, k) =>
      element("tr", {}, head("row", k), ...line.map((mean, l) => cell(mean, k, l))))),
  ));
}

function blockLimits(means) {
  const known = means.flat().filter((mean) => mean !== null && !Number.isNaN(mean));
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const most = Math.max(-low, high);
  // As for the matrix: what is barely below zero is no sign.
  const signed = low < 0 && high > 0 && Math.min(-low, high) > 0.1 * most;
  return signed ? { low: -most, high: most, signed } : { low, high, signed };
}

const chip = (side, cluster) =>
  element("span", { className: "chip", style: { background: paletteColour(side, cluster) } });

function showCards(side, partition, names) {
  const other = otherSide(side);
  const { portraits } = partition;
  byId("clusters-about").textContent = !portraits
    ? "Without the matrix, only the fitted clusters can be described."
    : partition.number < 2
      ? `All ${side}s are in one cluster: no division was supported by the data, so there is nothing to `
        + `compare. To look further, move the slider, give a number of clusters, or prepare the data differently.`
      : `Under each cluster are the ${other}s that distinguish it most, high (▲) or low (▼): `
        + "standard deviations (sd) or times (×) from the mean of all, or percent with the difference in points; "
        + "then the share of members for which this holds. Names are suggestions that you can change.";
  byId("confidence-about").hidden = !partition.confidence;
  byId("back-about").hidden = !partition.back;
  const largest = Math.max(...partition.sizes);
  fill("cards", ...partition.sizes.map((size, cluster) => element(
    "article", { className: "card" },
    element("header", {},
      element("h3", {}, chip(side, cluster), clusterName(side, cluster)),
      element("span", { className: "size" }, `${count(size, side)}, ${percent(size / partition.labels.length)}`)),
    nameField(side, cluster),
    element("div", { className: "bar-line" }, element("i", {
      style: { width: `${(100 * size) / largest}%`, background: paletteColour(side, cluster) },
    })),
    confidenceLine(partition, cluster),
    memberLine(portraits?.[cluster], size),
    traitList(portraits?.[cluster], side, names[other], partition.number),
    element("button", { type: "button", className: "quiet", onclick: () => saveCluster(side, cluster) }, "CSV of members"),
  )));
}

// The name of a cluster, to be written over.
function nameField(side, cluster) {
  const field = element("input", {
    type: "text", className: "name-field", value: givenName(side, cluster), spellcheck: false,
    "aria-label": `Name of ${clusterName(side, cluster)}`,
  });
  field.addEventListener("change", () => {
    const id = idOf(side, cluster);
    if (field.value.trim()) state.names[side][id] = field.value.trim();
    else delete state.names[side][id];
    showPartitions();
    remember();
  });
  return field;
}

function memberLine(portrait, size) {
  if (!portrait?.members?.length) return null;
  const more = size - portrait.members.length;
  const text = portrait.members.join(", ") + (more > 0 ? ` and ${count(more, "other")}` : "");
  return element("p", { className: "own-members" }, text);
}

function traitList(portrait, side, names, number) {
  if (!portrait || number < 2) return null;
  if (!portrait.traits.length) {
    return element("p", { className: "hint" }, `Close to the average in every ${otherSide(side)}.`);
  }
  return element("ol", {}, ...portrait.traits.slice(0, 6).map(([at, amount, share, sign, means]) => {
    // A level of a category has a title of its own.
    const title = typeof at === "string" ? at : names[at];
    return element("li", { title: means },
      element("span", { title }, `${sign > 0 ? "▲" : "▼"} ${title}`),
      element("span", {}, amount), element("span", { className: "share" }, percent(share)));
  }));
}

function saveCluster(side, cluster) {
  const { labels, confidence } = partitions[side];
  const lines = [["name", "cluster", "cluster_name", "confidence"]];
  labels.forEach((label, point) => {
    if (label !== cluster) return;
    lines.push([report.names[side][point], idOf(side, cluster), givenName(side, cluster),
      confidence ? (confidence[point] / 1000).toFixed(3) : ""]);
  });
  download(asCsv(lines), "text/csv;charset=utf-8", fileName(`${clusterName(side, cluster)}.csv`));
}

function confidenceLine({ labels, confidence, back }, cluster) {
  const again = !back ? ""
    : back[cluster] < 0.5 ? "not found again with half of the data"
      : `${percent(back[cluster])} of it is found again with half of the data`;
  if (!confidence) return again ? element("p", { className: "hint" }, again) : null;
  const own = confidence.filter((_, point) => labels[point] === cluster);
  if (!own.length) return null;
  const mean = own.reduce((sum, value) => sum + value, 0) / own.length / 1000;
  const least = own.reduce((low, value) => Math.min(low, value), 1000) / 1000;
  return element("p", { className: "hint" },
    `mean confidence ${mean.toFixed(2)}, least ${least.toFixed(2)}${again && `; ${again}`}`);
}
