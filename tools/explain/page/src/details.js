// All that is known of one kernel: facts, what was weighed, and its IR after each pass.

import { codePane } from "./code.js";
import { html, tableOf } from "./dom.js";
import { bytes, count, seconds, share } from "./format.js";
import { historyPanes } from "./history.js";
import { routeTo } from "./route.js";

export function kernelDetails(page, kernel, key) {
  return html("div", { className: "about" },
    html("dl", { className: "facts" }, ...facts(kernel, page).flatMap(([term, value]) =>
      [html("dt", {}, term), html("dd", {}, value)])),
    html("p", {}, kernel.ops.length && page.graph
      ? html("a", { href: routeTo("graph", kernel.ops[0]) }, "Show in the graph") : null, " ",
    html("a", { href: routeTo("kernels", key) }, "Link to this row")),
    candidates(kernel),
    historyPanes(kernel, page.summary.no_history),
    codePane(page, kernel));
}

function facts(kernel, page) {
  const { summary } = page;
  const isAlone = !page.kernels.some(({ placed }) => placed);
  const why = kernel.placed || (isAlone ? `target ${summary.target} has no other device` : "");
  const found = [
    ["Ops", kernel.ops.join(", ")],
    ["Results", kernel.results.join(", ")],
    ["Where", why ? `${kernel.device}: ${why}` : kernel.device],
    ["Because", kernel.reason],
    ["Measured", kernel.measured ? `${seconds(kernel.measured.seconds)} a run of the model, `
      + `${count(kernel.measured.count)} runs` : `no: ${kernel.not_measured}`],
  ];
  if (kernel.measured) found.push(["Counted", counted(kernel.measured, summary.missing_counters)]);
  if (kernel.runs !== 1) found.push(["Expected runs", kernel.runs.toPrecision(4)]);
  if (kernel.is_reorder) found.push(["Reorder", "it stores a tensor in another layout"]);
  if (kernel.is_recomputed) found.push(["Recomputed", "an earlier kernel has computed these ops"]);
  if (kernel.roofline) {
    const { parts, flops, bytes: moved, limit } = kernel.roofline;
    const least = Object.entries(parts).map(([name, time]) => `${name} ${seconds(time)}`).join(", ");
    found.push(["Roofline", `${least}; ${limit} sets it`
      + (kernel.roofline_share === null ? ", and is all that predicts its time" : `, ${share(kernel.roofline_share, 0)} is reached`)]);
    found.push(["By the model", `${count(flops)} operations, ${bytes(moved)} read and written`]);
  }
  return found;
}

// What the hardware counted, and why it did not count the rest.
function counted({ counters }, missing) {
  const known = Object.entries(counters).map(([name, value]) =>
    `${count(Math.round(value))} ${name.replaceAll("_", " ")}`);
  if (counters.cycles && counters.instructions) {
    known.push(`${(counters.instructions / counters.cycles).toFixed(2)} instructions a cycle`);
  }
  const reasons = [...new Set(Object.values(missing))].map((why) =>
    `no ${Object.keys(missing).filter((name) => missing[name] === why).join(", ")
      .replaceAll("_", " ")}: ${why}`);
  return [...known, ...reasons].join("; ") || "the profile has no counters";
}

function candidates(kernel) {
  if (kernel.candidates.length < 2) return html("p", { className: "soft" }, "Nothing else was weighed.");
  const order = [...kernel.candidates].sort((a, b) => (a.extra ?? Infinity) - (b.extra ?? Infinity));
  order.sort((a, b) => b.is_taken - a.is_taken);
  const rows = order.map((each) => [each.layouts, each.family, each.source, seconds(each.seconds),
    each.is_taken ? "taken" : each.extra === null ? "fits with nothing around it"
      : each.extra > 0 ? `${each.is_exact ? "+" : "at most +"}${seconds(each.extra)}` : "as good"]);
  return tableOf(["Layouts", "Kernel", "Cost by", "A run", "In all"], rows, {
    caption: "What was weighed", numeric: [3, 4],
    rowClass: (i) => (order[i].is_taken ? "taken" : ""),
  });
}
