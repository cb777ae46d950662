// What one reads first: the bottleneck in a sentence, a few figures, one bar of the whole model.

import { colourOf, html } from "./dom.js";
import { bytes, count, seconds, share } from "./format.js";

const BETWEEN = "between kernels";
const SMALLEST = 0.004;
// Kinds below this part are named together, where there are several.
const COUNTED = 0.0005;

export function overview(page, chooseKind) {
  const { summary } = page;
  return html("div", { className: "overview" },
    html("p", { className: "bottleneck" }, summary.bottleneck),
    html("dl", { className: "figures" }, ...figures(page).flatMap(figure)),
    kindBar(summary, chooseKind));
}

function figure([term, value, note]) {
  return html("div", {}, html("dt", {}, term),
    html("dd", {}, value, note ? html("small", {}, ` ${note}`) : null));
}

function figures(page) {
  const { summary } = page;
  const found = [[
    "One run",
    seconds(summary.seconds),
    summary.is_measured
      ? `measured${spread(summary)}; ${seconds(summary.predicted)} predicted`
      : summary.measured_kernels
        ? `${summary.measured_kernels} of ${page.kernels.length} kernels measured`
        : "predicted",
  ]];
  if (summary.memory) {
    const { arena_bytes, lower_bound, weights_bytes } = summary.memory;
    const proven = arena_bytes === lower_bound ? "the least for this order"
      : `no order plan below ${bytes(lower_bound)}`;
    found.push(["Memory peak", bytes(arena_bytes), proven]);
    found.push(["Weights", bytes(weights_bytes)]);
  }
  found.push(["Reorders", seconds(summary.reorders), ofAll(summary.reorders, summary)]);
  found.push(["Recomputation", seconds(summary.recomputed), ofAll(summary.recomputed, summary)]);
  found.push(["Kernels", count(page.kernels.length), `on ${summary.target}`]);
  const searched = page.kernels.filter((kernel) => kernel.searched);
  if (searched.length) {
    const better = searched.filter((kernel) => !kernel.searched.kept && kernel.schedule);
    const sum = (of) => searched.reduce((total, kernel) => total + kernel.runs * of(kernel), 0);
    const now = sum(({ searched: own, schedule }) => (schedule ? own.seconds : own.default));
    found.push(["Tuning", better.length ? `${better.length} faster` : "none faster",
      `of ${searched.length} searched, together ${(sum((k) => k.searched.default) / now).toFixed(2)} ×`]);
  } else {
    found.push(["Tuning", "none", "braid tune has searched no kernel"]);
  }
  found.push(["Deciding took", seconds(summary.deciding_seconds), "of CPU time, without code generation"]);
  const sizes = Object.entries(summary.sizes).map(([name, size]) => `${name}=${size}`);
  if (sizes.length) found.push(["Sizes", sizes.join(", ")]);
  return found;
}

function spread(summary) {
  if (summary.low === null) return "";
  const { median, low, high } = summary;
  return ` in the mean, median ${seconds(median)} (${seconds(low)} – ${seconds(high)})`;
}

function ofAll(value, summary) {
  return summary.seconds > 0 ? share(value / summary.seconds) : "";
}

// A kind is a button, which filters the table.
function kindBar(summary, chooseKind) {
  const shown = summary.kinds.filter((kind) => kind.seconds > 0);
  const total = shown.reduce((sum, kind) => sum + kind.seconds, 0) || 1;
  const bar = html("div", { className: "bar", role: "group", "aria-label": "Time by kind of kernel" });
  const legend = html("ul", { className: "legend" });
  // As in the timeline, where nothing stands for what is between kernels.
  const kinds = summary.kinds.map((kind) => kind.kind).filter((kind) => kind !== BETWEEN);
  const small = shown.filter((kind) => kind.seconds / total < COUNTED);
  const few = small.length > 2 ? small : [];
  shown.filter((kind) => !few.includes(kind)).forEach((kind) => {
    const part = kind.seconds / total;
    const text = `${kind.kind} ${share(part)}, ${seconds(kind.seconds)}`;
    const colour = kind.kind === BETWEEN ? "var(--line)" : colourOf(kinds.indexOf(kind.kind));
    if (part >= SMALLEST) {
      bar.append(html("span", { className: "part", title: text,
        style: `flex-grow:${part};background:${colour}` }));
    }
    const label = kind.kernels
      ? html("button", { type: "button", onclick: () => chooseKind(kind.kind) },
        `${kind.kind} × ${kind.kernels}`)
      : html("span", {}, kind.kind);
    const key = html("i", { className: "key", style: `background:${colour}` });
    legend.append(html("li", {}, key, label, ` ${share(part)} `,
      html("small", {}, seconds(kind.seconds))));
  });
  if (few.length) {
    const sum = few.reduce((all, kind) => all + kind.seconds, 0);
    legend.append(html("li", { title: few.map((kind) => kind.kind).join(", ") },
      `${few.length} other kinds ${share(sum / total)} `, html("small", {}, seconds(sum))));
  }
  return html("div", { className: "kinds" }, bar, legend);
}
