// Making elements, and what every view shares.

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Properties that start with "on" are listeners, those of `data` and `aria` are attributes.
export function html(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && !key.startsWith("aria")) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Paul Tol's "bright" and "muted" colours, which colour-blind people can tell apart.
const PALETTE = [
  "#4477aa", "#ee8866", "#228833", "#aa3377", "#66ccee", "#ccbb44", "#bb5566", "#777777",
  "#332288", "#44aa99", "#999933", "#882255",
];

export function colourOf(number) {
  if (number < PALETTE.length) return PALETTE[number];
  return `hsl(${(number * 137) % 360} 45% 50%)`;
}

// A table of text; those of `numeric` columns stand on the right.
export function tableOf(columns, rows, { caption, numeric = [], rowClass = () => "" } = {}) {
  const cell = (name, text, index) =>
    html(name, { className: numeric.includes(index) ? "number" : "" }, text);
  const head = html("tr", {}, ...columns.map((text, i) => {
    const made = cell("th", text, i);
    made.scope = "col";
    return made;
  }));
  const body = rows.map((row, i) =>
    html("tr", { className: rowClass(i) }, ...row.map((text, j) => cell("td", text, j))));
  const table = html("table", { className: "plain" });
  if (caption) table.append(html("caption", {}, caption));
  table.append(html("thead", {}, head), html("tbody", {}, ...body));
  return html("div", { className: "scroll", tabIndex: 0, role: "region",
    "aria-label": caption ?? columns.join(", ") }, table);
}

// Tells people who cannot see what has changed.
export function announce(text) {
  document.getElementById("status").textContent = text;
}

export async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Where a page may not use the clipboard, such as one from a file in some browsers.
    const area = html("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  announce(`${what} copied`);
}
