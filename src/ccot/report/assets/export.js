// Taking pictures and data away: PNG, SVG, CSV, and names and view as JSON.

// The calls of a canvas that the picture uses, recorded as SVG.
class SvgContext {
  constructor(width, height, measure) {
    Object.assign(this, { measure, matrix: "", clipped: "", path: "", stack: [], number: 0,
      fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, font: "", textAlign: "left",
      textBaseline: "middle", dash: "" });
    this.svg = vector("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` });
  }

  add(tag, attributes) {
    const made = vector(tag, attributes);
    if (this.matrix) made.setAttribute("transform", this.matrix);
    if (this.clipped) made.setAttribute("clip-path", this.clipped);
    this.svg.append(made);
    return made;
  }

  save() {
    const { matrix, clipped, dash, strokeStyle, fillStyle } = this;
    this.stack.push({ matrix, clipped, dash, strokeStyle, fillStyle });
  }

  restore() { Object.assign(this, this.stack.pop()); }
  translate(x, y) { this.matrix += `translate(${x} ${y})`; }
  rotate(angle) { this.matrix += `rotate(${(angle * 180) / Math.PI})`; }
  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${x.toFixed(2)} ${y.toFixed(2)}`; }
  lineTo(x, y) { this.path += `L${x.toFixed(2)} ${y.toFixed(2)}`; }
  rect(x, y, width, height) { this.path += `M${x} ${y}h${width}v${height}h${-width}z`; }
  setLineDash(dash) { this.dash = dash.join(" "); }
  measureText(text) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }

  clip() {
    const id = `clip${this.number++}`;
    const clip = vector("clipPath", { id }, vector("path", { d: this.path }));
    this.svg.append(clip);
    this.clipped = `url(#${id})`;
  }

  stroke() {
    this.add("path", { d: this.path, fill: "none", stroke: this.strokeStyle,
      "stroke-width": this.lineWidth, "stroke-dasharray": this.dash || "none" });
  }

  fillRect(x, y, width, height) { this.add("rect", { x, y, width, height, fill: this.fillStyle }); }

  fillText(text, x, y) {
    const [, weight, size, family] = this.font.match(/(\d+) (\d+)px (.*)/);
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    this.add("text", { x, y: y + 0.35 * size, "text-anchor": anchor, fill: this.fillStyle,
      "font-size": size, "font-weight": weight, "font-family": family.replaceAll('"', "'") }).textContent = text;
  }

  drawImage(image, x, y, width, height) {
    this.add("image", { x, y, width, height, href: image.toDataURL(),
      preserveAspectRatio: "none", style: "image-rendering:pixelated" });
  }
}

const fileName = (what) =>
  `${(report.title.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? ["report"]).join("-").slice(0, 60)}-${what}`;
const asSvgText = (svg) => new XMLSerializer().serializeToString(svg);

const LEGEND = { height: 52, width: 180, bar: 10, steps: 60 };

// The picture on its ground, with the scale of its colours below it.
function drawFigure(context) {
  const { cssWidth, cssHeight, gutter } = picture;
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, cssWidth, cssHeight + LEGEND.height);
  const { limits, scale } = picture.drawOn(context);
  const [x, y, step] = [gutter.left, cssHeight + 12, LEGEND.width / LEGEND.steps];
  for (let i = 0; i < LEGEND.steps; i++) {
    const value = limits.low + ((i + 0.5) / LEGEND.steps) * (limits.high - limits.low);
    context.fillStyle = asCss(scale.shades[shadeOf(value, limits)]);
    context.fillRect(x + i * step, y, step + 0.3, LEGEND.bar);
  }
  context.font = fontOf("name");
  context.fillStyle = inkColour();
  context.textBaseline = "middle";
  const line = y + LEGEND.bar + 10;
  const title = x + LEGEND.width + 14;
  const beside = title + context.measureText(legendTitle()).width < cssWidth;
  for (const [text, at, align, down] of [
    [shown(limits.low, 3), x, "left", line], [shown(limits.high, 3), x + LEGEND.width, "right", line],
    [legendTitle(), beside ? title : 6, "left", beside ? y + LEGEND.bar / 2 : line + 14],
  ]) {
    context.textAlign = align;
    context.fillText(text, at, down);
  }
}

function pictureAsSvg() {
  const { cssWidth, cssHeight } = picture;
  const context = new SvgContext(cssWidth, cssHeight + LEGEND.height, element("canvas").getContext("2d"));
  drawFigure(context);
  return context.svg;
}

function savePicture(kind) {
  if (kind === "svg") return download(asSvgText(pictureAsSvg()), "image/svg+xml", fileName("matrix.svg"));
  const ratio = 3;
  const { cssWidth, cssHeight } = picture;
  const canvas = element("canvas", { width: ratio * cssWidth, height: ratio * (cssHeight + LEGEND.height) });
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  drawFigure(context);
  return canvas.toBlob((blob) => download(blob, "image/png", fileName("matrix.png")));
}

// A chart with the colours that style sheets give it written into it.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg, copy].map((top) => [top, ...top.querySelectorAll("*")]);
  from.forEach((source, i) => {
    const style = getComputedStyle(source);
    for (const name of ["fill", "stroke", "stroke-dasharray", "font-size", "font-family", "font-weight"]) {
      to[i].setAttribute(name, style.getPropertyValue(name));
    }
  });
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return copy;
}

function saveChart(svg, kind, what) {
  const text = asSvgText(standalone(svg));
  if (kind === "svg") return download(text, "image/svg+xml", fileName(`${what}.svg`));
  const image = new Image();
  image.onload = () => {
    const canvas = element("canvas", { width: 3 * image.width, height: 3 * image.height });
    const context = canvas.getContext("2d");
    context.fillStyle = getComputedStyle(document.body).backgroundColor;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(blob, "image/png", fileName(`${what}.png`)));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  return null;
}

const saveButtons = (save) => element("span", { className: "save" }, ...["PNG", "SVG"].map((kind) =>
  element("button", { type: "button", className: "quiet", onclick: () => save(kind.toLowerCase()) }, kind)));

// The cells in view, with their names and clusters.
function saveView() {
  const { view, rowOrder, columnOrder } = picture;
  const rows = [...rowOrder.subarray(Math.floor(view.top), Math.ceil(view.bottom))];
  const columns = [...columnOrder.subarray(Math.floor(view.left), Math.ceil(view.right))];
  const { names } = picture;
  const title = (side, part, point) => clusterTitle(side, part.labels[point]);
  download(asCsv([
    ["name", "cluster", ...columns.map((column) => names.column[column])],
    ["", "", ...columns.map((column) => title("column", picture.columns, column))],
    ...rows.map((row) => [names.row[row], title("row", picture.rows, row),
      ...columns.map((column) => {
        const value = report.matrix.value(row, column);
        return Number.isNaN(value) ? "" : Number(value.toPrecision(7));
      })]),
  ]), "text/csv;charset=utf-8", fileName("cells.csv"));
}

// The state of the page: in its address, and in a file together with the names ------------------

function currentState() {
  const { model: shownModel, numbers, arrangement, mode, side, contrast } = state;
  const changed = picture?.matrix && picture.isZoomed;
  return { model: shownModel, numbers, arrangement, mode, side, contrast, view: changed ? picture.view : null };
}

function saveNames() {
  const named = Object.fromEntries(["row", "column"].map((side) => [side, Object.fromEntries(
    partitions[side].ids.map((id, cluster) => [id, givenName(side, cluster)]).filter(([, name]) => name))]));
  for (const side of ["row", "column"]) Object.assign(named[side], state.names[side]);
  download(`${JSON.stringify({ ...named, view: currentState() }, null, 2)}\n`, "application/json", fileName("names.json"));
}

let remembering = null;
function remember() {
  // Opening the page changes nothing that would have to be kept.
  if (!document.documentElement.dataset.ready) return;
  clearTimeout(remembering);
  remembering = setTimeout(() => {
    const kept = encodeURIComponent(JSON.stringify({ ...currentState(), names: state.names }));
    // A page inside a notebook has no address of its own.
    if (location.protocol !== "about:") history.replaceState(null, "", `#state=${kept}`);
  }, 250);
}

// What the address says, if it can be made sense of.
function recalled() {
  const found = location.hash.match(/^#state=(.*)$/);
  try {
    return found ? JSON.parse(decodeURIComponent(found[1])) : null;
  } catch {
    return null;
  }
}
