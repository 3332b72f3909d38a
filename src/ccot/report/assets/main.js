// The page: one state, and everything that shows it.

let report;
let picture;
let members;
const state = {
  model: 0, numbers: {}, arrangement: "clusters", side: "row", mode: "value", contrast: 1,
  names: { row: {}, column: {} },
};
let partitions;

const model = () => report.models[state.model];
const fittedNumbers = () => ({
  row: model().sides.row.n_clusters, column: model().sides.column.n_clusters,
});

// Showing --------------------------------------------------------------------------------------

function showModel(numbers = fittedNumbers()) {
  state.numbers = numbers;
  const { sides, warnings } = model();
  fill("warnings", ...warnings.map((text) => element("li", {}, text)));
  fill("figures", ...figures());
  for (const side of ["row", "column"]) {
    const slider = byId(`${side}-number`);
    slider.max = sides[side].hierarchy?.n_finest ?? sides[side].n_clusters;
    slider.disabled = slider.max === "1";
    slider.value = state.numbers[side];
  }
  if (report.matrix) showModes();
  byId("sliders").hidden = !sides.row.hierarchy && !sides.column.hierarchy;
  showPartitions();
}

// The modes of the cells that make sense of this model's values.
function showModes() {
  const offered = modesOf(report.matrix);
  if (!offered.includes(state.mode)) state.mode = unit();
  fill("mode", ...offered.map((mode) =>
    element("option", { value: mode, selected: mode === state.mode }, MODES[mode][0])));
}

function figures() {
  const figure = (term, value, detail) =>
    element("div", {}, element("dt", {}, term), element("dd", {}, value, " ", element("small", {}, detail)));
  const { sides, estimator } = model();
  const made = ["row", "column"].map((side, axis) => figure(
    side === "row" ? "Rows" : "Columns", report.shape[axis].toLocaleString("en"),
    `in ${count(sides[side].n_clusters, "cluster")}`,
  ));
  return [...made, figure("Estimator", estimator, "")];
}

function showPartitions() {
  partitions = Object.fromEntries(["row", "column"].map(
    (side) => [side, makePartition(model().sides[side], state.numbers[side])],
  ));
  showCut();
  if (report.matrix) showPicture();
  showBlocks(shownMeans(), otherMeans(), partitions, (k, l) => {
    if (!report.matrix) return;
    setArrangement("clusters");
    const span = (part, cluster) => part.spans.find((found) => found.cluster === cluster);
    const [rowSpan, columnSpan] = [span(picture.rows, k), span(picture.columns, l)];
    if (rowSpan && columnSpan) picture.showBlock(rowSpan, columnSpan);
    byId("matrix").scrollIntoView();
  });
  showSide();
  showAnnotations();
  showEvidence(model(), state.numbers, report.palette);
  if (report.matrix) showReadout(null);
}

function showCut() {
  const fitted = fittedNumbers();
  const parts = ["row", "column"].map((side) => {
    byId(`${side}-number-shown`).textContent = state.numbers[side];
    const kept = model().sides[side].hierarchy?.kept;
    return kept && `${percent(kept[state.numbers[side] - 1])} for ${side}s`;
  });
  const atFitted = partitions.row.fitted && partitions.column.fitted;
  const what = atFitted
    ? `The fitted clusters, ${fitted.row} × ${fitted.column}.`
    : "A cut of the hierarchy, without confidence of members.";
  const steps = model().sides.row.scaling ? " The weakest jumps are merged first." : "";
  byId("cut-hint").textContent = parts.some(Boolean)
    ? `${what} Information kept: ${parts.filter(Boolean).join(", ")}.`
    : what + steps;
  byId("fitted").disabled = atFitted;
}

function currentMeans() {
  const { matrix } = report;
  // Means over columns of different units would say nothing.
  if (unit() === "standard") {
    return blockMeans(viewOf(matrix, "standard"), restrict(partitions.row, matrix.rows), restrict(partitions.column, matrix.columns));
  }
  if (partitions.row.fitted && partitions.column.fitted && model().means) return model().means;
  if (!matrix) return null;
  return blockMeans(matrix, restrict(partitions.row, matrix.rows), restrict(partitions.column, matrix.columns));
}

// Means in another unit: as the fit saw values; where those shown are standardised, as given, of
// single columns only, as others need not have a common unit.
function otherMeans() {
  const { matrix } = report;
  const mode = matrix?.missing ? "rated" : unit() === "standard" ? "value" : "prepared";
  if (!matrix || (mode === "prepared" && !model().prepared)) return null;
  const [rows, columns] = [restrict(partitions.row, matrix.rows), restrict(partitions.column, matrix.columns)];
  const alone = columns.labels.reduce((found, label, column) => {
    const words = report.levels && model().prepared && Number.isNaN(model().prepared.factor[column]);
    found[label] = partitions.column.sizes[label] === 1 && !words;
    return found;
  }, []);
  if (mode === "value" && !alone.some(Boolean)) return null;
  const told = (l) => mode !== "value" || alone[l];
  const means = blockMeans(viewOf(matrix, mode), rows, columns);
  return { mode, means: means.map((line) => line.map((mean, l) => (told(l) ? mean : null))) };
}

// What block means are in: values, or standard deviations where columns differ in their units.
const unit = () => (report.matrix ? (report.matrix.unit ??= firstMode(report.matrix)) : "value");

function showPicture() {
  const { matrix, names } = report;
  const [rows, columns] = [restrict(partitions.row, matrix.rows), restrict(partitions.column, matrix.columns)];
  const held = (side, kept) => (kept ? Array.from(kept, (point) => names[side][point]) : names[side]);
  heldNames ??= { row: held("row", matrix.rows), column: held("column", matrix.columns) };
  const { arrangement, mode } = state;
  const filled = arrangement === "means" || mode === "information";
  picture.show({
    matrix, rows, columns, arrangement, mode, names: heldNames,
    table: !filled ? null : mode === unit() ? shownMeans() : blockTable(matrix, rows, columns, mode),
    tracks: { row: heldTracks("row", matrix.rows), column: heldTracks("column", matrix.columns) },
  });
}
let heldNames = null;

function showSide() {
  const { side } = state;
  for (const input of document.querySelectorAll(".side input")) input.checked = input.value === side;
  showCards(side, partitions[side], report.names);
  members.show(side, partitions[side], report.names[side]);
}

function showLegend({ limits, scale, averaged }) {
  const context = byId("legend").getContext("2d");
  for (let x = 0; x < N_SHADES; x++) {
    const value = limits.low + ((x + 0.5) / N_SHADES) * (limits.high - limits.low);
    context.fillStyle = asCss(scale.shades[shadeOf(value, limits)]);
    context.fillRect(x, 0, 1, 1);
  }
  byId("legend-low").textContent = shown(limits.low, 3);
  byId("legend-high").textContent = shown(limits.high, 3);
  const { matrix, shape } = report;
  byId("legend-title").textContent = state.mode === "prepared"
    ? `${legendTitle()} Preparation: ${model().prepared.how}.` : legendTitle();
  const notes = [describeAverages(averaged)];
  if (report.levels) notes.push(state.mode === "prepared"
    ? "Words have no prepared value." : "Words are shown as numbers of their categories, dates as days since 1970.");
  if (matrix.missing && state.mode !== "rated") notes.push("Means leave missing ratings out.");
  if (!matrix.exact) notes.push("Values are rounded to four digits.");
  if (matrix.shape[0] < shape[0] || matrix.shape[1] < shape[1]) {
    notes.push(`The picture shows ${matrix.shape[0].toLocaleString("en")} rows and `
      + `${matrix.shape[1].toLocaleString("en")} columns, taken evenly from every cluster.`);
  }
  byId("legend-note").textContent = notes.join(" ");
  remember();
}

const legendTitle = () => (state.mode === "information"
  ? INFORMATION[report.matrix.amounts ? "amounts" : "numbers"] : MODES[state.mode][1]);

function describeAverages(averaged) {
  if (!averaged) return state.mode === "information" ? "Blocks are filled." : "Blocks are filled with their means.";
  const [down, across] = averaged.map((entries) => Number(entries.toFixed(1)));
  return down * across > 1
    ? `A pixel is the mean of ${down} × ${across} entries.` : "Every entry is shown.";
}

function showReadout(aloud, event = null) {
  const readout = byId("readout");
  // Drawn again, it is as loud as before.
  if (aloud !== null) readout.setAttribute("aria-live", aloud ? "polite" : "off");
  readout.hidden = !picture.cursor;
  if (!picture.cursor) return readout.replaceChildren();
  const { matrix, annotations } = report;
  const row = picture.rowOrder[picture.cursor.row];
  const column = picture.columnOrder[picture.cursor.column];
  const [k, l] = [picture.rows.labels[row], picture.columns.labels[column]];
  const mean = shownMeans()?.[k]?.[l];
  const lines = [`block ${clusterName("row", k)}, ${clusterName("column", l)}`
    + (mean === undefined || mean === null ? "" : `, mean ${shown(mean, 3)}${unit() === "standard" ? " sd" : ""}`)];
  for (const [side, cluster] of [["row", k], ["column", l]]) {
    if (givenName(side, cluster)) lines.push(clusterTitle(side, cluster));
  }
  if (!["value", "information"].includes(state.mode)) {
    lines.push(`${MODES[state.mode][0].toLowerCase()} ${shown(picture.matrix.value(row, column), 3)}`);
  }
  for (const [side, point] of [["row", matrix.rows ? matrix.rows[row] : row],
    ["column", matrix.columns ? matrix.columns[column] : column]]) {
    lines.push(...annotations[side].map((track) => `${track.name}: ${trackValue(track, point)}`));
  }
  readout.replaceChildren(
    element("b", {}, picture.names.row[row]), " × ", element("b", {}, picture.names.column[column]), ": ",
    element("b", {}, shown(matrix.value(row, column))),
    ...lines.map((line) => element("span", {}, line)),
  );
  placeReadout(readout, event);
  return null;
}

// Beside the pointer, or the entry that the keys chose, and always on the screen.
function placeReadout(readout, event) {
  const box = picture.canvas.getBoundingClientRect();
  const at = event ?? {
    clientX: box.left + picture.toX(picture.cursor.column + 0.5),
    clientY: box.top + picture.toY(picture.cursor.row + 0.5),
  };
  // What the keys chose may have been scrolled away.
  readout.hidden = at.clientY < 0 || at.clientY > innerHeight;
  const { offsetWidth: width, offsetHeight: height } = readout;
  const beside = (place, size, room) => {
    const after = place + 16;
    return Math.max(4, after + size <= room - 4 ? after : Math.min(place - 16 - size, room - size - 4));
  };
  readout.style.left = `${beside(at.clientX, width, document.documentElement.clientWidth)}px`;
  readout.style.top = `${beside(at.clientY, height, innerHeight)}px`;
}

// Pointing asks for the means again and again; they change with the partitions only.
let meansOf = {};
function shownMeans() {
  if (meansOf.partitions !== partitions) meansOf = { partitions, means: currentMeans() };
  return meansOf.means;
}

function showComparison() {
  byId("comparison").hidden = report.models.length < 2;
  if (report.models.length < 2) return;
  const { models, agreement } = report;
  const agreed = (i, j) => ["row", "column"].map((side) => agreement[side][i][j].toFixed(2)).join(" · ");
  const rows = models.map(({ name, estimator, sides }, i) => [
    name === estimator ? name : `${name} (${estimator})`,
    `${sides.row.n_clusters} × ${sides.column.n_clusters}`,
    ...models.map((_, j) => (i === j ? "–" : agreed(i, j))),
  ]);
  fill("comparison-table", table(
    ["model", "blocks", ...models.map(({ name }) => `as ${name}`)], rows, models.map((_, i) => i + 2),
  ));
}

// Listening ------------------------------------------------------------------------------------

function setArrangement(arrangement) {
  state.arrangement = arrangement;
  for (const input of document.querySelectorAll("#arrangement input")) {
    input.checked = input.value === arrangement;
  }
  showPicture();
  picture.setCursor(null);
  showReadout(false);
}

function setMode(mode) {
  state.mode = mode;
  byId("mode").value = mode;
  showPicture();
  showReadout(false);
}

function setContrast(contrast) {
  state.contrast = picture.contrast = contrast;
  byId("contrast").value = Math.log2(contrast);
  picture.draw();
}

// What the address or a file of names asks for, as far as there is such a thing.
function adopt(wanted) {
  if (!wanted) return;
  for (const side of ["row", "column"]) Object.assign(state.names[side], wanted.names?.[side]);
  if (report.models[wanted.model]) state.model = wanted.model;
  byId("model").value = state.model;
  const numbers = fittedNumbers();
  for (const side of ["row", "column"]) {
    const [asked, most] = [wanted.numbers?.[side], model().sides[side].hierarchy?.n_finest ?? 0];
    if (Number.isInteger(asked) && asked >= 1 && asked <= most) numbers[side] = asked;
  }
  state.side = wanted.side === "column" ? "column" : "row";
  showModel(numbers);
  if (!report.matrix) return;
  if (["given", "clusters", "means"].includes(wanted.arrangement)) setArrangement(wanted.arrangement);
  if (modesOf(report.matrix).includes(wanted.mode)) setMode(wanted.mode);
  if (wanted.contrast > 0.1 && wanted.contrast < 20) setContrast(wanted.contrast);
  if (wanted.view && Object.values(wanted.view).every(Number.isFinite)) picture.setView(wanted.view);
}

function showMember(point) {
  const { matrix } = report;
  const isRow = state.side === "row";
  const kept = isRow ? matrix.rows : matrix.columns;
  const index = kept ? kept.indexOf(point) : point;
  const place = (isRow ? picture.rowOrder : picture.columnOrder).indexOf(index);
  byId("matrix").scrollIntoView();
  if (place < 0) return;
  const reach = 15;
  const { top, bottom, left, right } = picture.view;
  picture.setView(isRow
    ? { top: place - reach, bottom: place + reach + 1, left, right }
    : { left: place - reach, right: place + reach + 1, top, bottom });
  const middle = (low, high) => Math.floor((low + high) / 2);
  picture.setCursor(isRow
    ? { row: place, column: middle(left, right) } : { row: middle(top, bottom), column: place });
  showReadout(true);
}

function listen() {
  byId("arrangement").addEventListener("change", (event) => setArrangement(event.target.value));
  let waiting = false;
  for (const side of ["row", "column"]) {
    byId(`${side}-number`).addEventListener("input", (event) => {
      state.numbers[side] = Number(event.target.value);
      // Sliders speak faster than pictures are drawn: the last word counts.
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; showPartitions(); });
    });
  }
  byId("fitted").addEventListener("click", () => showModel());
  byId("mode").addEventListener("change", (event) => setMode(event.target.value));
  byId("contrast").addEventListener("input", (event) => setContrast(2 ** Number(event.target.value)));
  byId("save-png").addEventListener("click", () => savePicture("png"));
  byId("save-svg").addEventListener("click", () => savePicture("svg"));
  byId("save-cells").addEventListener("click", saveView);
  byId("save-names").addEventListener("click", saveNames);
  byId("print").addEventListener("click", () => print());
  // The address holds the state of the page: links inside it only scroll.
  for (const link of document.querySelectorAll(".bar a, .skip")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const target = document.querySelector(link.getAttribute("href"));
      target.scrollIntoView();
      target.tabIndex = -1;
      target.focus({ preventScroll: true });
    });
  }
  byId("zoom-in").addEventListener("click", () => picture.zoom(2));
  byId("zoom-out").addEventListener("click", () => picture.zoom(0.5));
  byId("zoom-all").addEventListener("click", () => picture.showAll());
  byId("model").addEventListener("change", (event) => {
    state.model = Number(event.target.value);
    showModel();
  });
  document.querySelectorAll(".side").forEach((fieldset, i) => {
    const choice = (side, text) => element("label", {},
      element("input", { type: "radio", name: `side-${i}`, value: side, checked: side === state.side }), text);
    fieldset.append(element("legend", {}, "Side"), choice("row", "Rows"), choice("column", "Columns"));
    fieldset.addEventListener("change", (event) => { state.side = event.target.value; showSide(); });
  });
  listenToTheme();
}

function listenToTheme() {
  const root = document.documentElement;
  const redraw = () => {
    byId("theme").textContent = currentTheme() === "dark" ? "Light" : "Dark";
    showPartitions();
  };
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = currentTheme() === "dark" ? "light" : "dark";
    redraw();
  });
  byId("theme").textContent = currentTheme() === "dark" ? "Light" : "Dark";
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", redraw);
  }
  addEventListener("beforeprint", () => { printing = true; redraw(); });
  addEventListener("afterprint", () => { printing = false; redraw(); });
}

async function start() {
  report = await decodeContent(JSON.parse(byId("content").textContent));
  picture = new Picture(byId("picture"), byId("overlay"));
  picture.onChange = showLegend;
  members = new Members(report.matrix ? showMember : null);
  addGestures(picture, showReadout);
  byId("no-matrix").hidden = Boolean(report.matrix);
  byId("matrix-view").hidden = !report.matrix;
  document.querySelector(".model-choice").hidden = report.models.length < 2;
  fill("model", ...report.models.map(({ name }, i) => element("option", { value: i }, name)));
  byId("footer").textContent = `Made by ccot ${report.version}. This page needs no network.`;
  const { view, ...named } = structuredClone(report.cluster_names);
  Object.assign(state.names, named);
  if (report.matrix) state.mode = unit();
  showComparison();
  listen();
  const wanted = recalled() ?? view;
  showModel();
  adopt(wanted);
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start().catch((error) => {
  const failure = byId("failure");
  failure.hidden = false;
  failure.textContent = typeof DecompressionStream === "undefined"
    ? "This browser is too old for the page: it needs one from 2024 or later."
    : `The page could not be shown: ${error.message}`;
  console.error(error);
});
