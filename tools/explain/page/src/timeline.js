// Lanes over time: a bar wherever something runs.

import { announce, colourOf, html, svg, tableOf } from "./dom.js";
import { Figure } from "./figure.js";
import { seconds } from "./format.js";

const [ROW, LEFT, LETTER] = [34, 110, 6.8];

export function timelineView(page, panel) {
  for (const view of page.timelines) panel.append(...timeline(view));
}

function timeline(view) {
  const end = Math.max(...view.bars.map((bar) => bar.end), 0) || 1;
  const about = html("p", { className: "soft", "aria-live": "polite" }, "Choose a bar for its times.");
  const figure = new Figure({
    label: `${view.title} over time`, left: LEFT, height: ROW * view.lanes.length, end,
    ticks: (at) => time(at, view.unit),
    still: () => view.lanes.map((name, lane) => svg("text", { class: "label", x: 0, y: lane * ROW + 20 },
      name.length > 15 ? `${name.slice(0, 14)}…` : name)),
    draw: (scale) => bars(scale),
  });

  function bars(scale) {
    const [from, to] = scale.domain();
    return view.bars.filter((bar) => bar.end >= from && bar.start <= to).map((bar) => {
      const took = time(bar.end - bar.start, view.unit);
      const text = `${bar.label}: ${took}, from ${time(bar.start, view.unit)} `
        + `to ${time(bar.end, view.unit)}`;
      const width = Math.max(scale(bar.end) - scale(bar.start), 0.5);
      const made = svg("rect", { class: "mark", tabindex: 0, role: "button", "aria-label": text,
        x: scale(bar.start), y: bar.lane * ROW + 4, width, height: ROW - 10,
        style: `fill:${colourOf(bar.colour)}` }, svg("title", {}, text));
      const choose = () => {
        about.textContent = text;
        announce(text);
      };
      made.addEventListener("click", choose);
      made.addEventListener("focus", choose);
      return svg("g", {}, made, ...written(bar, scale(bar.start), width));
    });
  }

  return [html("h2", {}, view.title), html("p", { className: "summary" }, view.summary),
    figure.tools(), figure.element, ...legend(view), about,
    ...(view.table ? [tableOf(view.table.columns, view.table.rows, { caption: view.title })] : [])];
}

// The label of a bar, as much of it as there is room for.
function written(bar, x, width) {
  const letters = Math.floor((width - 8) / LETTER);
  if (letters < 5) return [];
  const text = bar.label.length > letters ? `${bar.label.slice(0, letters - 1)}…` : bar.label;
  return [svg("text", { class: "written", x: x + 4, y: bar.lane * ROW + 20, "aria-hidden": "true" }, text)];
}

function legend(view) {
  const used = new Set(view.bars.map((bar) => bar.colour));
  const names = view.legend.map((name, number) => [name, number]).filter(([, n]) => used.has(n));
  if (names.length < 2) return [];
  return [html("ul", { className: "legend" }, ...names.map(([name, number]) => html("li", {},
    html("i", { className: "key", style: `background:${colourOf(number)}` }), name)))];
}

function time(value, unit) {
  return unit === "µs" ? seconds(value * 1e-6) : `${Number(value.toPrecision(5))} ${unit}`;
}
