// Rows of kernels as text for other programs.

import { COLUMNS, textOf } from "./columns.js";

export function markdown(kernels) {
  const escaped = (text) => text.replaceAll("|", "\\|").replaceAll("\n", " ");
  const line = (cells) => `| ${cells.map(escaped).join(" | ")} |`;
  return [
    line(COLUMNS.map((column) => column.title)),
    `|${COLUMNS.map((column) => (column.numeric ? "---:" : "---")).join("|")}|`,
    ...kernels.map((kernel) => line(COLUMNS.map((column) => textOf(column, kernel)))),
  ].join("\n");
}

// Times are in seconds and shares from 0 to 1, so that a spreadsheet can compute with them.
export function csv(kernels) {
  const fields = {
    kernel: (k) => k.name, device: (k) => k.device, runs: (k) => k.runs,
    predicted: (k) => k.predicted, measured: (k) => k.measured?.seconds ?? "",
    median: (k) => k.measured?.median ?? "", low: (k) => k.measured?.low ?? "", high: (k) => k.measured?.high ?? "",
    share: (k) => k.share, roofline: (k) => k.roofline_share ?? "",
    limit: (k) => k.roofline?.limit ?? "", wasted: (k) => k.wasted, layouts: (k) => k.layouts,
    family: (k) => k.family, schedule: (k) => k.schedule, source: (k) => k.source,
    reason: (k) => k.reason, next: (k) => k.next_best?.what ?? "",
    next_extra: (k) => k.next_best?.extra ?? "",
  };
  // A cell that begins like a formula would be one in a spreadsheet.
  const guarded = (text) => (/^[=+\-@\t]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
  const quoted = (value) => `"${guarded(String(value)).replaceAll('"', '""')}"`;
  const rows = kernels.map((k) => Object.values(fields).map((field) => quoted(field(k))).join(","));
  return [Object.keys(fields).join(","), ...rows].join("\n");
}
