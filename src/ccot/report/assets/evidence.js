// How the numbers of clusters came about: steps of scalings, costs of merges, the next best.

function scalingChart(side, { scaling, labels, n_clusters: number }, palette) {
  const order = Uint32Array.from(labels, (_, i) => i).sort((a, b) => scaling.log[a] - scaling.log[b]);
  let [low, high] = [scaling.log[order[0]], scaling.log[order[order.length - 1]]];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const chart = new Chart({
    title: `${side === "row" ? "Rows" : "Columns"}: ${count(scaling.jumps.length + 1, "step")}`,
    xLabel: `${side}s, sorted`, yLabel: "log scaling",
    x: [0, order.length - 1], y: [low - 0.05 * (high - low), high + 0.05 * (high - low)],
  });
  const byCluster = Array.from({ length: number }, () => []);
  order.forEach((point, rank) => byCluster[labels[point]].push([rank, scaling.log[point]]));
  byCluster.forEach((points, k) => chart.dots(points, palette[k % palette.length]));
  scaling.jumps.forEach((jump, i) => {
    const strength = scaling.strength[i];
    const weak = scaling.significant !== null && strength < scaling.significant;
    chart.mark(jump - 0.5, weak ? "weak" : "");
    if (scaling.significant === null || scaling.jumps.length > 6) return;
    const atRight = jump < 0.75 * order.length;
    chart.text(
      weak ? "not significant" : `p < 1e−${Math.floor(strength)}`,
      chart.toX(jump - 0.5) + (atRight ? 4 : -4), atRight ? CHART_HEIGHT - MARGIN.bottom - 6 : MARGIN.top + 10,
      { "text-anchor": atRight ? "start" : "end" },
    );
  });
  const caption = scaling.jumps.length
    ? "Each point is a " + side + ". A dashed line is a jump between two clusters"
      + (scaling.significant === null ? "." : ", with an upper bound on the probability of a false alarm. A dotted line is not significant.")
    : `No jump is significant: the curve is smooth, and all ${side}s are in one cluster.`;
  return { chart, caption };
}

function mergeChart(side, { costs, n_clusters: chosen }, number) {
  const floor = 1e-12 * Math.max(...costs);
  const points = costs.map((cost, i) => [i + 2, cost]).filter(([, cost]) => cost > floor);
  if (!points.length) return null;
  const logs = padded(points.map(([, cost]) => Math.log10(cost)));
  const chart = new Chart({
    title: `${side === "row" ? "Rows" : "Columns"}: ${count(chosen, "cluster")}`,
    xLabel: `${side} clusters before the merge`, yLabel: "information lost",
    x: [1.5, costs.length + 1.5], y: logs.map((value) => 10 ** value), log: true,
  });
  const granted = points.find(([k]) => k > chosen);
  if (granted) {
    const [first, cost] = granted;
    const decay = points.map(([k]) => [k, (cost * (first - 1)) / (k - 1)])
      .filter(([, value]) => value < 10 ** logs[1] && value > 10 ** logs[0]);
    chart.line(decay, { stroke: "var(--soft)", "stroke-dasharray": "1 4" });
  }
  for (const [k, cost] of points) {
    const refused = k <= chosen;
    chart.circle(k, cost, `from ${k} to ${k - 1} clusters: ${shown(cost)}`, {
      fill: refused ? "var(--accent)" : "var(--page)",
      stroke: refused ? "var(--accent)" : "var(--soft)",
    });
  }
  chart.mark(chosen + 0.5);
  if (number !== chosen) chart.mark(number + 0.5, "now");
  return {
    chart,
    caption: "Information lost by merging two clusters, from few clusters (left) to many. The dashed "
      + "line is the chosen cut: merges left of it are not made. The dotted curve is the decay "
      + "expected without a jump. A solid line is the cut on the slider.",
  };
}

function halvesChart(side, { halves, n_clusters: chosen }) {
  const { numbers, mean, spread, plausible } = halves;
  const [low, high] = [0, 1].map((sign) => mean.map((value, i) => value + (sign ? 1 : -1) * spread[i]));
  const chart = new Chart({
    title: `${side === "row" ? "Rows" : "Columns"}: found again with half of the data`,
    xLabel: `${side} clusters`, yLabel: "agreement of halves",
    x: [numbers[0] - 0.7, numbers[numbers.length - 1] + 0.7],
    y: [Math.min(0, ...low), Math.max(1, ...high)],
  });
  if (plausible[0] < plausible[1]) chart.shade(plausible[0] - 0.5, plausible[1] + 0.5);
  numbers.forEach((k, i) => chart.line([[k, low[i]], [k, high[i]]], { stroke: "var(--soft)" }));
  chart.line(numbers.map((k, i) => [k, mean[i]]), { stroke: "var(--accent)", "stroke-width": 1.5 });
  numbers.forEach((k, i) => chart.circle(k, mean[i], `${count(k, "cluster")}: ${shown(mean[i], 2)} ± ${shown(spread[i], 2)}`, {
    fill: k === chosen ? "var(--accent)" : "var(--page)", stroke: "var(--accent)",
  }));
  return {
    chart,
    caption: `Agreement of clusters found in two halves of the data (1: the same, 0: as by chance), mean and `
      + `standard deviation over random halves. Filled: the chosen number. `
      + (plausible[0] < plausible[1] ? `Shaded: ${plausible[0]} to ${plausible[1]} clusters would do as well.` : ""),
  };
}

function pathChart({ reg, scores, best }) {
  const means = scores.map((row) => row.reduce((sum, value) => sum + value, 0) / row.length);
  const logs = reg.map(Math.log10);
  const chart = new Chart({
    title: `Regularisation: ${shown(best)}`, xLabel: "reg", yLabel: "information shared (nats)",
    x: padded(logs), y: padded(scores.flat()), xTicks: reg.map((value, i) => [logs[i], shown(value)]),
  });
  scores.forEach((row, i) => chart.dots(row.map((value) => [logs[i], value]), "var(--soft)", 5));
  chart.line(means.map((value, i) => [logs[i], value]), { stroke: "var(--accent)", "stroke-width": 1.5 });
  reg.forEach((value, i) => chart.circle(logs[i], means[i], `reg ${value}: ${shown(means[i])}`, {
    fill: value === best ? "var(--accent)" : "var(--page)", stroke: "var(--accent)",
  }));
  return { chart, caption: "How well halves of the data reproduce each other's partitions. Filled: the chosen value." };
}

function showEvidence(model, numbers, palette) {
  fill("decisions", ...model.decisions.map((line) => element("li", {}, line)));
  const drawn = [];
  for (const side of ["row", "column"]) {
    const facts = model.sides[side];
    if (facts.scaling) drawn.push(scalingChart(side, facts, palette));
    else if (facts.costs && facts.costs.length) drawn.push(mergeChart(side, facts, numbers[side]));
    if (facts.halves && facts.halves.numbers.length > 1) drawn.push(halvesChart(side, facts));
  }
  if (model.path) drawn.push(pathChart(model.path));
  fill("charts", ...drawn.filter(Boolean).map(({ chart, caption }, i) =>
    element("figure", {}, chart.svg, element("figcaption", {}, caption, " ",
      saveButtons((kind) => saveChart(chart.svg, kind, `chart-${i + 1}`))))));
  fill("runners", ...[runnersUp(model), ...votesOf(model)].filter(Boolean));
  byId("summary").textContent = model.summary;
  fill("parameters", table(["parameter", "value"], Object.entries(model.parameters)));
}

const plain = (score) => score.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

// As in verdict.py, which warns of those that are near.
const RUNNERS = {
  icl: "Larger scores are better; a score less than 3 below the best is nearly as good.",
  jump: "Larger scores are better; a score above 90 % of the best is nearly as good.",
  reproducibility: "Larger scores are better; a score less than 0.05 below the best is nearly as good.",
};
const CRITERIA = { icl: "ICL", jump: "jump of merge costs", reproducibility: "halves of the data" };

function runnersUp({ candidates }) {
  if (candidates.length < 2) return null;
  const rows = candidates.map(({ n_row_clusters: rows, n_column_clusters: columns, score, criterion }) =>
    [`${rows} × ${columns}`, CRITERIA[criterion], plain(score),
      score === candidates[0].score ? "–" : plain(candidates[0].score - score)]);
  const made = table(["blocks", "criterion", "score", "behind"], rows, [2, 3]);
  made.tBodies[0].rows[0].className = "chosen";
  return element("div", {}, element("h3", {}, "The chosen numbers and the next best"),
    element("p", { className: "about" }, RUNNERS[candidates[0].criterion]), made);
}

function votesOf({ sides }) {
  return Object.entries(sides).map(([side, { votes }]) => {
    const ranked = Object.entries(votes).sort((a, b) => b[1] - a[1]).slice(0, 6);
    if (ranked.length < 2) return null;
    const rows = ranked.map(([number, share]) => [number, percent(share)]);
    return element(
      "div", {},
      element("h3", {}, `Number of ${side} clusters over the draws`),
      table([`${side} clusters`, "share of draws"], rows, [1]),
    );
  });
}

function table(heads, rows, numeric = []) {
  const cell = (tag, text, i) =>
    element(tag, { className: numeric.includes(i) ? "number" : "" }, text);
  return element(
    "table", { className: "rows fixed" },
    element("thead", {}, element("tr", {}, ...heads.map((head, i) => cell("th", head, i)))),
    element("tbody", {}, ...rows.map((row) =>
      element("tr", {}, ...row.map((text, i) => cell("td", text, i))))),
  );
}
