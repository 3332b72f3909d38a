// Colour scales, even in lightness by construction (OKLCH). Small values have the colour of the
// page: little ink on paper, little light in the dark.

const SCALES = {
  light: {
    plain: [[0.985, 0.008, 200], [0.86, 0.075, 190], [0.7, 0.115, 215], [0.52, 0.14, 255],
            [0.36, 0.14, 280], [0.24, 0.09, 295]],
    signed: [[0.36, 0.14, 262], [0.6, 0.13, 250], [0.83, 0.06, 240], [0.975, 0, 0],
             [0.85, 0.075, 60], [0.65, 0.15, 45], [0.4, 0.13, 30]],
    missing: [0.88, 0.005, 80],
  },
  dark: {
    plain: [[0.22, 0.015, 265], [0.36, 0.1, 285], [0.5, 0.135, 262], [0.66, 0.125, 225],
            [0.82, 0.12, 180], [0.965, 0.07, 130]],
    signed: [[0.93, 0.05, 230], [0.72, 0.12, 245], [0.44, 0.11, 258], [0.22, 0.005, 265],
             [0.46, 0.1, 40], [0.72, 0.14, 55], [0.94, 0.07, 85]],
    missing: [0.33, 0.004, 265],
  },
};
const N_SHADES = 256;

function fromOklch(lightness, chroma, hue) {
  const angle = (hue * Math.PI) / 180;
  const [a, b] = [chroma * Math.cos(angle), chroma * Math.sin(angle)];
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((value) => {
    const held = Math.min(1, Math.max(0, value));
    const curved = held <= 0.0031308 ? 12.92 * held : 1.055 * held ** (1 / 2.4) - 0.055;
    return Math.round(255 * curved);
  });
}

// Stops are mixed in the plane of the two colour axes: hues never run the long way round.
function mixStops([first, second], part) {
  const flat = [first, second].map(([lightness, chroma, hue]) => {
    const angle = (hue * Math.PI) / 180;
    return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
  });
  const [lightness, a, b] = flat[0].map((value, i) => value + part * (flat[1][i] - value));
  return [lightness, Math.hypot(a, b), (Math.atan2(b, a) * 180) / Math.PI];
}

function makeScale(stops) {
  return Array.from({ length: N_SHADES }, (_, shade) => {
    const place = (shade / (N_SHADES - 1)) * (stops.length - 1);
    const left = Math.min(Math.floor(place), stops.length - 2);
    return fromOklch(...mixStops(stops.slice(left, left + 2), place - left));
  });
}

const made = new Map();
function scaleFor(theme, signed) {
  const key = `${theme} ${signed}`;
  if (!made.has(key)) {
    const shades = makeScale(SCALES[theme][signed ? "signed" : "plain"]);
    const missing = fromOklch(...SCALES[theme].missing);
    made.set(key, { shades, missing, words: Uint32Array.from([...shades, missing], asWord) });
  }
  return made.get(key);
}

// One pixel of an ImageData as a little-endian word.
const asWord = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
const asCss = ([r, g, b]) => `rgb(${r} ${g} ${b})`;

function shadeOf(value, limits) {
  if (Number.isNaN(value)) return N_SHADES;
  const share = (value - limits.low) / (limits.high - limits.low || 1);
  const curved = limits.root ? Math.sqrt(Math.max(share, 0)) : share;
  return Math.min(N_SHADES - 1, Math.max(0, Math.floor(curved * N_SHADES)));
}

// Black or white, whichever has the higher contrast on a colour, as WCAG reckons it.
function inkOn(colour) {
  const [r, g, b] = colour.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return (light + 0.05) ** 2 > 1.05 * 0.05 ? "#000000" : "#ffffff";
}

let printing = false;
function currentTheme() {
  if (printing || matchMedia("print").matches) return "light";
  const asked = document.documentElement.dataset.theme;
  return asked || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

// Canvases do not resolve custom properties; the text colour of the page is the ink.
const inkColour = () => getComputedStyle(document.body).color;
const ofPage = (name) => {
  const probe = element("span", { style: { color: `var(${name})`, display: "none" } });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
};
const softColour = () => ofPage("--soft");
const faintColour = () => ofPage("--strong-line");
const accentColour = () => ofPage("--accent");
