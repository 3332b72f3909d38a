// The matrix as a picture: a window of it, averaged where entries outnumber pixels.

const STRIP = 8;
const TRACK = 12;
const SMALLEST_VIEW = 4;
const FONT = { cluster: 12, name: 11 };

class Picture {
  constructor(canvas, overlay) {
    Object.assign(this, {
      canvas, overlay, view: null, cursor: null, contrast: 1, tracks: { row: [], column: [] },
      onChange: () => {}, gutter: { left: 0, top: 0, right: 0, bottom: 0 },
    });
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
  }

  // What is shown: the matrix and the mode of its cells, the partitions of its rows and columns,
  // a table of its blocks, and whether as given, in the order of the clusters, or as blocks alone.
  show({ matrix, rows, columns, table, arrangement, mode, names, tracks }) {
    const given = arrangement === "given" && mode !== "information";
    const view = viewOf(matrix, mode);
    const filled = arrangement === "means" || mode === "information";
    Object.assign(this, {
      matrix: view, rows, columns, table, filled, names, tracks, given, mode,
      rowOrder: given ? Uint32Array.from(rows.labels, (_, i) => i) : rows.order,
      columnOrder: given ? Uint32Array.from(columns.labels, (_, i) => i) : columns.order,
      wholeRange: null, entryRange: view.entryRange ??= centralRange(view.values),
    });
    this.places = { row: leafPlaces(rows), column: leafPlaces(columns) };
    if (!this.view) this.showAll();
    else this.draw();
  }

  resize() {
    const width = this.canvas.parentElement.clientWidth;
    if (!this.matrix || !width || width === this.cssWidth) return;
    this.draw();
  }

  layout() {
    const [nRows, nColumns] = this.matrix.shape;
    this.cssWidth = this.canvas.parentElement.clientWidth;
    this.gutter = makeGutters(this, this.canvas.getContext("2d"));
    const { left, right, top, bottom } = this.gutter;
    const inner = Math.max(this.cssWidth - left - right, 40);
    // On paper it shares a page with the heading, unless the names need all of it.
    const tallest = printing ? Math.max(430, Math.min(680, PITCH * this.rows.number + 4))
      : Math.min(680, Math.max(340, 0.78 * innerHeight));
    // High enough for the names of the row clusters.
    const least = Math.min(tallest, Math.max(260, PITCH * this.rows.number + 4));
    const height = Math.max(Math.min((inner * nRows) / nColumns, tallest), least);
    this.cssHeight = Math.round(height + top + bottom);
    this.ratio = devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.overlay]) {
      canvas.width = Math.round(this.cssWidth * this.ratio);
      canvas.height = Math.round(this.cssHeight * this.ratio);
      canvas.style.height = `${this.cssHeight}px`;
      canvas.getContext("2d").setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    }
    this.area = { width: inner, height: this.cssHeight - top - bottom };
    this.canvas.dataset.area = [left, top, inner, this.area.height].join(" ");
  }

  // The window, in places along the order ------------------------------------------------------

  showAll() {
    const [nRows, nColumns] = this.matrix.shape;
    this.setView({ top: 0, bottom: nRows, left: 0, right: nColumns });
  }

  setView({ top, bottom, left, right }) {
    const [nRows, nColumns] = this.matrix.shape;
    [top, bottom] = holdWithin(top, bottom, nRows);
    [left, right] = holdWithin(left, right, nColumns);
    this.view = { top, bottom, left, right };
    this.draw();
  }

  get isZoomed() {
    const [nRows, nColumns] = this.matrix.shape;
    const { top, bottom, left, right } = this.view;
    return bottom - top < nRows - 1e-6 || right - left < nColumns - 1e-6;
  }

  zoom(factor, at = null) {
    const { top, bottom, left, right } = this.view;
    const [y, x] = at ? [at.y, at.x] : [(top + bottom) / 2, (left + right) / 2];
    this.setView({
      top: y - (y - top) / factor, bottom: y + (bottom - y) / factor,
      left: x - (x - left) / factor, right: x + (right - x) / factor,
    });
  }

  pan(down, across) {
    const { top, bottom, left, right } = this.view;
    this.setView({
      top: top + down, bottom: bottom + down, left: left + across, right: right + across,
    });
  }

  // Fills the window with a block; again, with the whole matrix.
  showBlock(rowSpan, columnSpan) {
    const block = {
      top: rowSpan.start, bottom: rowSpan.end, left: columnSpan.start, right: columnSpan.end,
    };
    const held = Object.keys(block).every((edge) => Math.abs(block[edge] - this.view[edge]) < 1);
    if (held) this.showAll();
    else this.setView(block);
  }

  // From a point of the screen to a place in the window, and back.
  placeAt(clientX, clientY) {
    const box = this.canvas.getBoundingClientRect();
    const { top, bottom, left, right } = this.view;
    return {
      x: left + ((clientX - box.left - this.gutter.left) / this.area.width) * (right - left),
      y: top + ((clientY - box.top - this.gutter.top) / this.area.height) * (bottom - top),
    };
  }

  toX(place) {
    const { left, right } = this.view;
    return this.gutter.left + ((place - left) / (right - left)) * this.area.width;
  }

  toY(place) {
    const { top, bottom } = this.view;
    return this.gutter.top + ((place - top) / (bottom - top)) * this.area.height;
  }

  // Colours ------------------------------------------------------------------------------------

  // Averages vary less than entries do, so the range of colours narrows from that of the entries
  // to that of the whole picture's pixels as one zooms out; panning and order do not change it.
  limits() {
    if (this.filled) return this.contrasted(blockLimits(this.table));
    const [nRows, nColumns] = this.matrix.shape;
    const { width, height } = this.pixels();
    this.wholeRange ??= centralRange(averageImage(
      this.matrix, this.rows.order, this.columns.order, height, width,
    ).means);
    const { top, bottom, left, right } = this.view;
    const perPixel = (down, across) => Math.max(down / height, 1) * Math.max(across / width, 1);
    const most = Math.log(perPixel(nRows, nColumns));
    const part = most > 0 ? Math.log(perPixel(bottom - top, right - left)) / most : 0;
    let [low, high] = [0, 1].map(
      (end) => this.entryRange[end] + part * (this.wholeRange[end] - this.entryRange[end]),
    );
    const { signed } = this.matrix;
    // Sparse amounts are mostly small: the square root keeps them apart from nothing.
    const root = this.matrix.zeros && this.matrix.amounts && this.mode !== "rated";
    if (signed) [low, high] = [-1, 1].map((sign) => sign * Math.max(-low, high));
    else if (root) low = 0;
    return this.contrasted({ low, high, root, signed });
  }

  // More contrast is a narrower range of values for the same range of colours.
  contrasted({ low, high, root, signed }) {
    const middle = signed ? 0 : root ? low : (low + high) / 2;
    const part = 1 / this.contrast;
    return { low: middle + part * (low - middle), high: middle + part * (high - middle), root, signed };
  }

  pixels() {
    return {
      width: Math.max(1, Math.round(this.area.width * this.ratio)),
      height: Math.max(1, Math.round(this.area.height * this.ratio)),
    };
  }

  // Drawing ------------------------------------------------------------------------------------

  draw() {
    this.layout();
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, this.cssWidth, this.cssHeight);
    const drawn = this.drawOn(context);
    this.drawCursor();
    this.canvas.classList.toggle("zoomed", this.isZoomed);
    const { top, bottom, left, right } = this.view;
    this.canvas.dataset.view = [top, bottom, left, right].map((v) => v.toFixed(2)).join(" ");
    // For those who check that no two names overlap.
    this.canvas.labelBoxes = this.boxes;
    this.onChange(drawn);
  }

  // Everything but the cursor, on a canvas or on what records the same calls as SVG.
  drawOn(context) {
    this.boxes = [];
    const limits = this.limits();
    const colours = { limits, scale: scaleFor(currentTheme(), limits.signed) };
    context.save();
    context.beginPath();
    context.rect(this.gutter.left, this.gutter.top, this.area.width, this.area.height);
    context.clip();
    const averaged = this.filled
      ? this.drawMeans(context, colours) : this.drawEntries(context, colours);
    if (!this.given) this.drawBorders(context);
    context.restore();
    drawMargins(this, context);
    return { ...colours, averaged };
  }

  // Returns how many entries, down and across, a pixel is the mean of.
  drawEntries(context, { scale, limits }) {
    const { width, height } = this.pixels();
    const { top, bottom, left, right } = this.view;
    const [firstRow, lastRow] = [Math.floor(top), Math.ceil(bottom)];
    const [firstColumn, lastColumn] = [Math.floor(left), Math.ceil(right)];
    const image = averageImage(
      this.matrix,
      this.rowOrder.subarray(firstRow, lastRow),
      this.columnOrder.subarray(firstColumn, lastColumn),
      height, width,
    );
    context.imageSmoothingEnabled = false;
    context.drawImage(
      paint(image, limits, scale),
      this.toX(firstColumn), this.toY(firstRow),
      this.toX(lastColumn) - this.toX(firstColumn), this.toY(lastRow) - this.toY(firstRow),
    );
    return [(lastRow - firstRow) / image.height, (lastColumn - firstColumn) / image.width];
  }

  drawMeans(context, { scale, limits }) {
    for (const rows of this.rows.spans) {
      for (const columns of this.columns.spans) {
        const mean = this.table[rows.cluster][columns.cluster];
        context.fillStyle = asCss(scale.shades[shadeOf(mean ?? NaN, limits)] ?? scale.missing);
        const [x, y] = [this.toX(columns.start), this.toY(rows.start)];
        context.fillRect(x, y, this.toX(columns.end) - x, this.toY(rows.end) - y);
      }
    }
    return null;
  }

  // White on a dark rim: seen on every colour of the scale.
  drawBorders(context) {
    context.beginPath();
    for (const { start } of this.rows.spans.slice(1)) {
      context.moveTo(this.gutter.left, this.toY(start));
      context.lineTo(this.gutter.left + this.area.width, this.toY(start));
    }
    for (const { start } of this.columns.spans.slice(1)) {
      context.moveTo(this.toX(start), this.gutter.top);
      context.lineTo(this.toX(start), this.gutter.top + this.area.height);
    }
    for (const [colour, width] of [["rgb(0 0 0 / .55)", 2.6], ["#fff", 1.2]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.stroke();
    }
  }

  // The entry pointed at -----------------------------------------------------------------------

  setCursor(cursor) {
    const [nRows, nColumns] = this.matrix.shape;
    const inside = cursor && cursor.row >= 0 && cursor.row < nRows
      && cursor.column >= 0 && cursor.column < nColumns;
    this.cursor = inside ? cursor : null;
    this.drawCursor();
  }

  // Moves the window just so far that the cursor is in it.
  follow() {
    const { top, bottom, left, right } = this.view;
    const { row, column } = this.cursor;
    const down = row < top ? row - top : Math.max(row + 1 - bottom, 0);
    const across = column < left ? column - left : Math.max(column + 1 - right, 0);
    if (down || across) this.pan(down, across);
  }

  drawCursor() {
    const context = this.overlay.getContext("2d");
    context.clearRect(0, 0, this.cssWidth, this.cssHeight);
    if (!this.cursor) return;
    const { row, column } = this.cursor;
    const [x, y] = [this.toX(column), this.toY(row)];
    const [width, height] = [this.toX(column + 1) - x, this.toY(row + 1) - y];
    context.beginPath();
    context.rect(this.gutter.left, this.gutter.top, this.area.width, this.area.height);
    context.clip();
    context.fillStyle = "rgb(128 128 128 / .28)";
    context.fillRect(this.gutter.left, y, this.area.width, Math.max(height, 1));
    context.fillRect(x, this.gutter.top, Math.max(width, 1), this.area.height);
    if (Math.min(width, height) < 5) return;
    context.strokeStyle = inkColour();
    context.lineWidth = 1.5;
    context.strokeRect(x, y, width, height);
  }
}

// An interval of at least a few entries, moved back inside.
function holdWithin(start, end, length) {
  const extent = Math.min(Math.max(end - start, Math.min(SMALLEST_VIEW, length)), length);
  const middle = (start + end) / 2;
  const held = Math.min(Math.max(middle - extent / 2, 0), length - extent);
  return [held, held + extent];
}

function paint({ means, width, height }, limits, scale) {
  const canvas = element("canvas", { width, height });
  const image = new ImageData(width, height);
  const words = new Uint32Array(image.data.buffer);
  for (let at = 0; at < words.length; at++) words[at] = scale.words[shadeOf(means[at], limits)];
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}
