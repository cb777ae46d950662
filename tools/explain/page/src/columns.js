// The columns of the table of kernels: what they sort by, and what they show.

import { html } from "./dom.js";
import { seconds, share } from "./format.js";

const FEW = 6;
// A mean so many times the third quartile is that of a few runs.
const DISTURBED = 1.5;

export const COLUMNS = [
  { id: "name", title: "Kernel", value: (k) => k.name, cell: nameCell, text: (k) => k.name },
  { id: "device", title: "Where", value: (k) => k.device, cell: (k) => k.device, hint: "why it runs there is in the row, which opens by a click" },
  { id: "predicted", title: "Predicted", value: (k) => k.predicted, numeric: true,
    cell: (k) => seconds(k.predicted) },
  { id: "measured", title: "Measured", value: (k) => k.measured?.seconds ?? -1, numeric: true,
    cell: measuredCell, text: measuredText },
  { id: "time", title: "Share", value: (k) => k.time, numeric: true,
    cell: (k) => meter(k.share, share(k.share), "share of one run"), text: (k) => share(k.share) },
  { id: "roofline", title: "Roofline", value: (k) => k.roofline_share ?? -1, numeric: true,
    cell: rooflineCell, text: rooflineText },
  { id: "wasted", title: "Wasted", value: (k) => k.wasted, numeric: true,
    hint: "time that the roofline leaves", cell: (k) => seconds(k.wasted) },
  { id: "decided", title: "Decided", value: decidedText, cell: decidedCell, text: decidedText },
  { id: "reason", title: "Because", value: (k) => k.reason, cell: reasonCell, text: reasonText },
  { id: "next", title: "Next best", value: (k) => k.next_best?.extra ?? Infinity,
    cell: nextCell, text: nextText },
];

export function textOf(column, kernel) {
  return column.text ? column.text(kernel) : String(column.cell(kernel));
}

function nameCell(kernel) {
  const made = computes(kernel.computes);
  return html("span", {}, html("b", {}, ...breakable(kernel.name)), html("small", {}, made));
}

// Lines may end after a module of a name.
function breakable(name) {
  return name.split(/(?<=\/)/).flatMap((part) => [part, html("wbr")]);
}

// Many ops by their kinds, with how often each stands.
function computes(kinds) {
  if (kinds.length <= FEW) return kinds.join(" → ");
  const counts = new Map();
  for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, times]) => (times > 1 ? `${times} × ${kind}` : kind)).join(", ");
}

// What the operands of a long kernel have in common is written once.
function layouts(text) {
  const [operands, results] = text.split("->");
  const parts = (operands ?? "").split(",");
  if (parts.length <= FEW || !results) return text;
  const counts = new Map();
  for (const part of parts) counts.set(part, (counts.get(part) ?? 0) + 1);
  return `${[...counts].map(([part, times]) => `${times} × ${part}`).join(", ")}->${results}`;
}

function measuredText(kernel) {
  if (!kernel.measured) return "–";
  const { seconds: value, median, low, high } = kernel.measured;
  if (low === null) return seconds(value);
  return `${seconds(value)} (median ${seconds(median)}, ${seconds(low)}–${seconds(high)})`;
}

function measuredCell(kernel) {
  if (!kernel.measured) return html("span", { title: kernel.not_measured, className: "soft" }, "–");
  const { seconds: value, median, low, high } = kernel.measured;
  const title = low === null ? "the mean of all runs"
    : `mean; median ${seconds(median)}, quartiles ${seconds(low)} and ${seconds(high)}`;
  const spread = low === null ? null : html("small", {}, `${seconds(low)} – ${seconds(high)}`);
  const disturbed = high !== null && value > DISTURBED * high
    ? html("small", { className: "warn" }, "a few runs took far longer") : null;
  return html("span", { title }, seconds(value), spread, disturbed);
}

function rooflineText(kernel) {
  if (kernel.roofline_share === null) return kernel.roofline?.limit ?? "–";
  return `${share(kernel.roofline_share, 0)} ${kernel.roofline.limit}`;
}

function rooflineCell(kernel) {
  if (kernel.roofline_share === null) {
    return html("span", { className: "soft", title: "Nothing else predicts its time" }, "–",
      kernel.roofline ? html("small", {}, kernel.roofline.limit) : null);
  }
  const above = kernel.roofline_share > 1
    ? "Above the roofline: fewer operations than the plain loops have, or operands in caches" : "";
  const bar = meter(Math.min(kernel.roofline_share, 1), share(kernel.roofline_share, 0),
    "share of the roofline", kernel.roofline.limit);
  bar.title = above || `${kernel.roofline.limit} sets the roofline`;
  bar.append(html("small", {}, kernel.roofline.limit));
  return bar;
}

function meter(part, text, label, kind = "") {
  const width = `${(100 * Math.max(0, Math.min(part, 1))).toFixed(1)}%`;
  return html("span", { className: `meter ${kind}` },
    html("span", {}, text),
    html("span", { className: "track", "aria-hidden": "true", title: label },
      html("span", { style: `width:${width}` })));
}

function decidedText(kernel) {
  return [kernel.layouts, kernel.family, kernel.schedule].filter(Boolean).join(" · ");
}

function decidedCell(kernel) {
  const source = `cost by ${kernel.source}`;
  return html("span", { className: "decided" }, html("code", {}, layouts(kernel.layouts)),
    html("small", {}, [kernel.family, kernel.schedule, source].filter(Boolean).join(" · ")));
}

function reasonText(kernel) {
  return kernel.placed ? `${kernel.reason}; on ${kernel.device}: ${kernel.placed}` : kernel.reason;
}

// On a target of several devices, why here is as much of a decision as how.
function reasonCell(kernel) {
  if (!kernel.placed) return kernel.reason;
  return html("span", {}, kernel.reason, html("small", {}, `on ${kernel.device}: ${kernel.placed}`));
}

export function nextText(kernel) {
  const best = kernel.next_best;
  if (!best) return "nothing else";
  return `${best.what}: ${extraText(best)}`;
}

function nextCell(kernel) {
  const best = kernel.next_best;
  if (!best) return html("span", { className: "soft" }, "nothing else");
  return html("span", { className: "decided" }, html("code", {}, best.what),
    html("small", {}, extraText(best)));
}

function extraText({ extra, is_exact: isExact }) {
  return extra > 0 ? `${isExact ? "+" : "at most +"}${seconds(extra)}` : "as good";
}
