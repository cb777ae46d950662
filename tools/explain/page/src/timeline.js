// Lanes over time: a bar wherever something runs.

import { announce, colourOf, html, svg, tableOf } from "./dom.js";
import { Figure } from "./figure.js";

const [ROW, LEFT] = [34, 110];

export function timelineView(page, panel) {
  for (const view of page.timelines) panel.append(...timeline(view));
}

function timeline(view) {
  const end = Math.max(...view.bars.map((bar) => bar.end), 0) || 1;
  const about = html("p", { className: "soft", "aria-live": "polite" }, "Choose a bar for its times.");
  const figure = new Figure({
    label: `${view.title} over time`, left: LEFT, height: ROW * view.lanes.length, end,
    ticks: (at) => `${Number(at.toPrecision(6))} ${view.unit}`,
    still: () => view.lanes.map((name, lane) => svg("text", { class: "label", x: 0, y: lane * ROW + 20 },
      name.length > 15 ? `${name.slice(0, 14)}…` : name)),
    draw: (scale) => bars(scale),
  });

  function bars(scale) {
    const [from, to] = scale.domain();
    return view.bars.filter((bar) => bar.end >= from && bar.start <= to).map((bar) => {
      const text = `${bar.label}: ${time(bar.start)} to ${time(bar.end)} ${view.unit}, `
        + `${time(bar.end - bar.start)} ${view.unit}`;
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
      return made;
    });
  }

  return [html("h2", {}, view.title), html("p", { className: "summary" }, view.summary),
    figure.tools(), figure.element, about,
    ...(view.table ? [tableOf(view.table.columns, view.table.rows, { caption: view.title })] : [])];
}

function time(value) {
  return Number(value.toPrecision(5));
}
