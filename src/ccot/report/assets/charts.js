// Small charts as SVG: axes, dots, marks.

const MARGIN = { left: 58, right: 14, top: 26, bottom: 40 };
const CHART_HEIGHT = 250;

class Chart {
  constructor({ title, xLabel, yLabel, x, y, log = false, xTicks = null }) {
    this.width = Math.max(280, Math.min(560, byId("charts").clientWidth));
    this.spans = { x, y: log ? y.map(Math.log10) : y };
    this.log = log;
    this.xTicks = xTicks ?? niceTicks(...x, 6, true).map((tick) => [tick, shown(tick)]);
    this.svg = vector("svg", {
      viewBox: `0 0 ${this.width} ${CHART_HEIGHT}`, role: "img", "aria-label": title,
    });
    this.text(title, MARGIN.left, 12, { class: "strong", "font-weight": 600 });
    this.text(xLabel, (MARGIN.left + this.width - MARGIN.right) / 2, CHART_HEIGHT - 6, {
      "text-anchor": "middle",
    });
    this.text(yLabel, 0, 0, {
      "text-anchor": "middle",
      transform: `translate(11 ${(MARGIN.top + CHART_HEIGHT - MARGIN.bottom) / 2}) rotate(-90)`,
    });
    this.drawAxes();
  }

  toX(value) {
    const [low, high] = this.spans.x;
    const room = this.width - MARGIN.left - MARGIN.right;
    return MARGIN.left + ((value - low) / (high - low || 1)) * room;
  }

  toY(value) {
    const [low, high] = this.spans.y;
    const room = CHART_HEIGHT - MARGIN.top - MARGIN.bottom;
    const place = this.log ? Math.log10(value) : value;
    return CHART_HEIGHT - MARGIN.bottom - ((place - low) / (high - low || 1)) * room;
  }

  text(content, x, y, attributes = {}) {
    const made = vector("text", { x, y, ...attributes });
    made.textContent = content;
    this.svg.append(made);
  }

  drawAxes() {
    const floor = CHART_HEIGHT - MARGIN.bottom;
    const ticks = this.log ? logTicks(...this.spans.y) : niceTicks(...this.spans.y, 4);
    for (const tick of ticks) {
      const y = this.toY(tick);
      const path = `M${MARGIN.left} ${y}H${this.width - MARGIN.right}`;
      this.svg.append(vector("path", { class: "grid", d: path }));
      this.text(shortened(tick), MARGIN.left - 6, y + 4, { "text-anchor": "end" });
    }
    for (const [tick, label] of this.xTicks) {
      this.text(label, this.toX(tick), floor + 17, { "text-anchor": "middle" });
    }
    this.svg.append(vector("path", {
      class: "axis", d: `M${MARGIN.left} ${floor}H${this.width - MARGIN.right}`,
    }));
  }

  // Many dots as one path: strokes of no length with round ends.
  dots(points, colour, size = 4) {
    // Of a million points most fall on others, and drawing every one would stop the browser.
    const d = [...new Set(points.map(
      ([x, y]) => `M${this.toX(x).toFixed(1)} ${this.toY(y).toFixed(1)}h0`))];
    this.svg.append(vector("path", {
      d: d.join(""), stroke: colour, "stroke-width": size, "stroke-linecap": "round", fill: "none",
    }));
  }

  line(points, attributes) {
    const d = points.map(([x, y], i) => `${i ? "L" : "M"}${this.toX(x)} ${this.toY(y)}`);
    this.svg.append(vector("path", { d: d.join(""), fill: "none", ...attributes }));
  }

  circle(x, y, hint, attributes) {
    const label = vector("title");
    label.textContent = hint;
    const made = vector("circle", { cx: this.toX(x), cy: this.toY(y), r: 4, ...attributes }, label);
    this.svg.append(made);
  }

  shade(from, to) {
    const top = MARGIN.top;
    this.svg.append(vector("rect", {
      x: this.toX(from), y: top, width: this.toX(to) - this.toX(from),
      height: CHART_HEIGHT - MARGIN.bottom - top, fill: "var(--accent)", opacity: 0.12,
    }));
  }

  mark(x, kind = "") {
    this.svg.append(vector("path", {
      class: `mark ${kind}`,
      d: `M${this.toX(x)} ${MARGIN.top}V${CHART_HEIGHT - MARGIN.bottom}`,
    }));
  }
}

function niceTicks(low, high, wanted, whole = false) {
  const raw = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  let step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.99);
  if (whole) step = Math.max(1, Math.round(step));
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + 1e-9 * step; tick += step) {
    ticks.push(Math.abs(tick) < 1e-9 * step ? 0 : tick);
  }
  return ticks;
}

// 1, 2, 5 in every power of ten; the powers alone where there are many.
function logTicks(low, high) {
  const factors = high - low > 2.5 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(low); power <= high; power++) {
    for (const factor of factors) {
      const place = power + Math.log10(factor);
      if (place >= low && place <= high) ticks.push(factor * 10 ** power);
    }
  }
  return ticks;
}

const shortened = (value) => (Math.abs(value) < 1000 || Math.abs(value) >= 1e15
  ? shown(value, 3)
  : value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 }));

function padded(values, share = 0.06) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const pad = share * (high - low) || 0.5;
  return [low - pad, high + pad];
}
