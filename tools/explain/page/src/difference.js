// Two compilations side by side: the kernels that moved most first, what moved, and why.

import { html, tableOf } from "./dom.js";
import { bytes, seconds } from "./format.js";

const MORE = 100;

export function differenceView(page, panel) {
  const found = page.difference;
  const most = Math.max(...found.kernels.map((each) => Math.abs(gain(each))), 1e-12);
  const field = html("input", { type: "search", placeholder: "Filter kernels  ( / )",
    "aria-label": "Filter kernels", oninput: () => draw() });
  const alike = html("input", { type: "checkbox", onchange: () => draw() });
  const body = html("tbody");
  const said = html("span", { className: "said" });
  let limit = MORE;
  const more = html("button", { type: "button", className: "more", onclick: () => {
    limit += MORE;
    draw();
  } }, "Show more");

  function draw() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = found.kernels.filter((each) => (alike.checked || each.what.length)
      && words.every((word) => text(each).includes(word)));
    said.textContent = `${rows.length} of ${found.kernels.length} kernels`;
    body.replaceChildren(...rows.slice(0, limit).map((each) => row(each, most)));
    more.hidden = rows.length <= limit;
  }

  const head = ["Kernel", "A", "B", "B − A", "What differs", "Why"];
  panel.append(html("p", { className: "bottleneck" }, sentence(found)),
    html("dl", { className: "figures" }, ...["A", "B"].map((side, index) => html("div", {},
      html("dt", {}, side), html("dd", {}, found.labels[index],
        html("small", {}, ` ${seconds(found.seconds[index])}`))))),
    html("div", { className: "tools" }, field,
      html("label", {}, alike, " those decided alike, too"), said),
    html("table", { className: "kernels moved" }, html("thead", {}, html("tr", {},
      ...head.map((title, index) => html("th", { scope: "col",
        className: index > 0 && index < 4 ? "number" : "" }, title)))), body),
    more, ...extras(found));
  draw();
}

function gain(each) {
  return each.seconds_b - each.seconds_a;
}

function text(each) {
  return [each.name, ...each.what, ...each.why].join(" ").toLowerCase();
}

function sentence({ seconds: [a, b], is_measured: isMeasured, kernels }) {
  const differ = kernels.filter((each) => each.what.length).length;
  const how = isMeasured ? "measured" : "predicted";
  const head = !(a > 0 && b > 0) ? "Times are unknown"
    : Math.abs(a / b - 1) < 0.005 ? `Both take the same time, ${how}`
      : `${a < b ? "A" : "B"} is ${(a < b ? b / a : a / b).toFixed(2)} × as fast as ${a < b ? "B" : "A"}, ${how}`;
  const moved = kernels.filter((each) => each.what.length).reduce((sum, each) => sum + gain(each), 0);
  const total = b - a;
  const part = differ && Math.abs(total) > 1e-9
    ? `, which make ${Math.round(100 * moved / total)}\u00a0% of that` : "";
  return `${head}. ${differ} of ${kernels.length} kernels were decided differently${part}.`;
}

function row(each, most) {
  const change = gain(each);
  const width = `${(50 * Math.abs(change) / most).toFixed(1)}%`;
  const bar = html("span", { className: `diverge ${change > 0 ? "slower" : "faster"}`,
    "aria-hidden": "true" }, html("span", { style: `width:${width}` }));
  const shown = `${change > 0 ? "+" : change < 0 ? "−" : ""}${seconds(Math.abs(change))}`;
  const lines = (texts) => html("ul", { className: "lines" },
    ...texts.map((line) => html("li", {}, line)));
  const cell = (title, className, ...children) =>
    html("td", { className, "data-title": title }, ...children);
  return html("tr", { className: "row" },
    cell("Kernel", "name", html("b", {}, each.name),
      html("small", {}, (each.a[0] ?? each.b[0]).computes.join(" → "))),
    cell("A", "number", each.a.length ? seconds(each.seconds_a) : "–"),
    cell("B", "number", each.b.length ? seconds(each.seconds_b) : "–"),
    cell("B − A", "number", html("span", {}, shown, bar)),
    cell("What differs", "", each.what.length ? lines(each.what) : "nothing"),
    cell("Why", "reason", each.why.length ? lines(each.why) : ""));
}

function extras({ settings, bytes: sizes }) {
  const made = [];
  if (settings.length) {
    made.push(tableOf(["Setting", "A", "B"], settings.map((each) =>
      [each.name, each.a || "–", each.b || "–"]), { caption: "Settings that differ" }));
  }
  if (sizes.length) {
    made.push(tableOf(["Bytes of", "A", "B"], sizes.map((each) =>
      [each.name, bytes(each.a ?? 0), bytes(each.b ?? 0)]),
    { caption: "Bytes that differ", numeric: [1, 2] }));
  }
  return made;
}
