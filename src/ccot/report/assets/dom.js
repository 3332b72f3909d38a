// Elements and numbers. Names are data: they enter the page as text, never as markup.

const byId = (id) => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "style") Object.assign(made.style, value);
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function vector(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const fill = (id, ...children) => byId(id).replaceChildren(...children);

const count = (number, noun) =>
  `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.01 ? 1 : 0)} %`;

// Enough digits to tell values apart, not more.
function shown(value, digits = 4) {
  if (value === null || Number.isNaN(value)) return "missing";
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 12 });
}

// Amounts of a list stand below one another: they have equally many decimals.
const decimal = (value) => (value < 1000 ? value.toFixed(value < 100 ? 2 : 0) : shown(value, 3));

const CODES = { row: "R", column: "C" };
// Codes, colours and names belong to clusters, not to their place in the current cut.
const idOf = (side, cluster) => partitions[side].ids[cluster];
const clusterName = (side, cluster) => `${CODES[side]}${idOf(side, cluster)}`;
const paletteColour = (side, cluster) => report.palette[idOf(side, cluster) % report.palette.length];

// A name that the reader gave; else the one suggested, which the larger part of a split keeps.
function givenName(side, cluster) {
  const id = idOf(side, cluster);
  const given = state.names[side][id];
  if (given) return given;
  const { portraits, n_clusters: fitted } = model().sides[side];
  const kept = partitions[side].number >= fitted && id < fitted ? portraits?.[id] : null;
  return (kept ?? partitions[side].portraits?.[cluster])?.name ?? "";
}

const clusterTitle = (side, cluster) =>
  [clusterName(side, cluster), givenName(side, cluster)].filter(Boolean).join(" ");

function download(content, type, file) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  element("a", { href: address, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// Names that a spreadsheet would run as a formula get a quote in front, as in the files of ccot fit.
const harmless = (text) => (!report.raw_names && /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
const quoted = (value) => {
  const text = harmless(String(value));
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const asCsv = (lines) => [...lines.map((line) => line.map(quoted).join(",")), ""].join("\r\n");
const otherSide = (side) => (side === "row" ? "column" : "row");
