// Clusters in numbers: block means, and a card for each cluster.

const MANY_BLOCKS = 12;

function showBlocks(means, partitions, onBlock) {
  const { row, column } = partitions;
  if (!means) {
    byId("blocks-about").textContent = "Means of these blocks need the matrix, which the page was made without.";
    fill("block-table");
    return;
  }
  byId("blocks-about").textContent =
    "Mean of the matrix over each block. Press one to see its entries.";
  const limits = blockLimits(means);
  const scale = scaleFor(currentTheme(), limits.signed);
  const head = (side, k) => {
    const size = partitions[side].sizes[k].toLocaleString("en");
    return element("th", { scope: side === "row" ? "row" : "col" }, chip(k), `${clusterName(side, k)} `,
      element("span", {}, `(${size})`));
  };
  const cell = (mean, k, l) => {
    const shade = shadeOf(mean ?? NaN, limits);
    const colour = scale.shades[shade] ?? scale.missing;
    return element("td", {}, element("button", {
      type: "button", onclick: () => onBlock(k, l),
      style: { background: asCss(colour), color: inkOn(colour) },
      "aria-label": `Block ${clusterName("row", k)}, ${clusterName("column", l)}: mean ${shown(mean, 3)}`,
    }, shown(mean, 3)));
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

const chip = (cluster) =>
  element("span", { className: "chip", style: { background: paletteColour(cluster) } });

function showCards(side, partition, tops, names, amounts) {
  const other = otherSide(side);
  byId("clusters-about").textContent = tops === null
    ? "What sets clusters apart needs the matrix, which the page was made without."
    : partition.number < 2
      ? `All ${side}s are in one cluster: there is nothing to tell it from.`
      : `Under each cluster the ${other}s that set it apart, the most telling first, with ${amounts
        ? `their lift: how many times their mean over all ${side}s`
        : `how far their mean lies above (+) or below (−) that of all ${side}s, in standard deviations (sd)`}.`;
  const largest = Math.max(...partition.sizes);
  fill("cards", ...partition.sizes.map((size, cluster) => {
    const items = (tops?.[cluster] ?? []).map(({ other: at, lift, effect }) => {
      const amount = amounts
        ? `× ${decimal(lift)}` : `${effect < 0 ? "−" : "+"} ${decimal(Math.abs(effect))} sd`;
      const name = names[other][at];
      return element("li", {}, element("span", { title: name }, name), element("span", {}, amount));
    });
    return element(
      "article", { className: "card" },
      element("header", {},
        element("h3", {}, chip(cluster), clusterName(side, cluster)),
        element("span", { className: "size" }, `${count(size, side)}, ${percent(size / partition.labels.length)}`)),
      element("div", { className: "bar-line" }, element("i", {
        style: { width: `${(100 * size) / largest}%`, background: paletteColour(cluster) },
      })),
      confidenceLine(partition, cluster),
      element("ol", {}, ...items),
    );
  }));
}

function confidenceLine({ labels, confidence }, cluster) {
  if (!confidence) return null;
  const own = confidence.filter((_, point) => labels[point] === cluster);
  if (!own.length) return null;
  const mean = own.reduce((sum, value) => sum + value, 0) / own.length / 1000;
  const least = own.reduce((low, value) => Math.min(low, value), 1000) / 1000;
  return element("p", { className: "hint" },
    `mean confidence ${mean.toFixed(2)}, least ${least.toFixed(2)}`);
}
