"use strict";
// Making elements, colours, and what every view shares.

const SVG = "http://www.w3.org/2000/svg";
// Okabe and Ito's colours, which colour-blind people can tell apart.
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7f7f7f"];

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function html(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function hint(text) {
  return svg("title", {}, text);
}

function colourOf(number) {
  const hue = PALETTE[number % PALETTE.length];
  return number < PALETTE.length ? hue : `hsl(${(number * 137) % 360} 50% 55%)`;
}

function tableOf(data) {
  const head = html("tr", {}, ...data.columns.map((text) => html("th", {}, text)));
  const rows = data.rows.map((row) => html("tr", {}, ...row.map((text) => html("td", {}, text))));
  return html("table", {}, head, ...rows);
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) { count /= 1024; unit += 1; }
  return `${unit ? count.toPrecision(3) : count} ${units[unit]}`;
}
