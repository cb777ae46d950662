// What each pass has decided: its cost, the bound and the gap, in its own words.

import { html, tableOf } from "./dom.js";
import { share } from "./format.js";

export function decisionsView(page, panel) {
  const remarks = page.decisions;
  const field = html("input", { type: "search", placeholder: "Filter decisions  ( / )",
    "aria-label": "Filter decisions", oninput: () => draw() });
  const place = html("div");
  function draw() {
    const wanted = field.value.toLowerCase();
    const rows = remarks
      .filter((each) => `${each.pass} ${each.message}`.toLowerCase().includes(wanted))
      .map((each) => [each.pass, each.message,
        typeof each.data.gap === "number" ? share(each.data.gap, 2) : ""]);
    place.replaceChildren(tableOf(["Pass", "Decision", "Gap"], rows,
      { caption: "What passes have decided; a gap is to a bound by the cost model", numeric: [2] }));
  }
  draw();
  const free = page.free.map((each) => [each.ops.join(", "), each.why]);
  const proof = page.summary ? html("p", {}, `Layouts: ${page.summary.proof}`) : null;
  panel.append(html("div", { className: "tools" }, field), ...(proof ? [proof] : []), place,
    ...(free.length ? [tableOf(["Ops", "Why"], free, { caption: "Ops without a kernel" })] : []));
}
