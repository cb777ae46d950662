// A model that is compiled once for all sizes: what its kernels take at other sizes.

import { announce, html, tableOf } from "./dom.js";
import { seconds, share } from "./format.js";

const SHOWN = 12;

export function sizesView(page, panel) {
  const { likely, points, kernels } = page.sizes;
  const symbols = Object.keys(likely).filter((symbol) =>
    points.filter((point) => point.symbol === symbol).length > 1);
  const decided = Object.entries(likely).map(([name, size]) => `${name}=${size}`).join(", ");
  panel.append(html("p", { className: "summary" },
    `Decisions were made at ${decided}. The same kernels run at all sizes; these are their predicted `
    + "times where one size changes and the others stay."));
  for (const symbol of symbols) {
    const own = points.map((point, index) => ({ ...point, index }))
      .filter((point) => point.symbol === symbol).sort((a, b) => a.size - b.size);
    panel.append(...slider(symbol, likely[symbol], own, kernels));
  }
}

function slider(symbol, likely, points, kernels) {
  const usual = Math.max(0, points.findIndex((point) => point.size === likely));
  const base = points[usual];
  const said = html("output", {});
  const place = html("div", { className: "sized" });
  const field = html("input", { type: "range", min: 0, max: points.length - 1, step: 1,
    value: usual, "aria-label": `Size of ${symbol}`, oninput: () => show(Number(field.value)) });

  function show(number) {
    const point = points[number];
    const times = point.seconds / base.seconds;
    said.textContent = `${symbol} = ${point.size}: one run ${seconds(point.seconds)}`
      + (number === usual ? " (decided here)" : `, ${times.toPrecision(3)} × that at ${likely}`);
    field.setAttribute("aria-valuetext", said.textContent);
    place.replaceChildren(curve(symbol, points, number, likely),
      table(symbol, point, base, kernels));
    announce(said.textContent);
  }

  show(usual);
  return [html("h2", {}, symbol), html("div", { className: "tools sizes" }, field, said), place];
}

function curve(symbol, points, chosen, likely) {
  const rows = points.map((point) => [point.size === likely ? `${point.size} (likely)` : point.size,
    seconds(point.seconds), seconds(point.seconds / point.size)]);
  return tableOf([symbol, "One run", `Per 1 of ${symbol}`], rows, {
    caption: "One run at each size", numeric: [0, 1, 2],
    rowClass: (i) => (i === chosen ? "taken" : ""),
  });
}

function table(symbol, point, base, kernels) {
  const order = [...kernels].sort((a, b) => b.seconds[point.index] - a.seconds[point.index]);
  const rows = order.slice(0, SHOWN).map((kernel) => {
    const [now, usual] = [kernel.seconds[point.index], kernel.seconds[base.index]];
    return [kernel.name, kernel.kind, kernel.device, seconds(now), share(now / point.seconds),
      usual > 0 ? `${(now / usual).toPrecision(3)} ×` : "–"];
  });
  const left = order.length - rows.length;
  return tableOf(["Kernel", "Kind", "Where", `At ${point.size}`, "Share", `To that at ${base.size}`], rows, {
    caption: `Kernels at ${symbol} = ${point.size}${left > 0 ? `, without the ${left} shortest` : ""}`,
    numeric: [3, 4, 5],
  });
}
