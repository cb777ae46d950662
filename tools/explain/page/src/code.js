// The machine code of a kernel, filled in when it is opened: it may be thousands of lines.

import { copyText, html } from "./dom.js";
import { count } from "./format.js";

const SHOWN = 6;

export function codePane(page, kernel) {
  const text = page.code[kernel.code];
  if (!text) return null;
  const instructions = text.split("\n").filter((line) => /^\s+[a-z@]/.test(line));
  const place = html("div");
  const pane = html("details", { className: "code", ontoggle: () => {
    if (!pane.open || place.firstChild) return;
    place.append(
      html("p", {}, `Most frequent: ${frequent(instructions)} `, html("button", { type: "button",
        onclick: () => copyText(text, "Code") }, "Copy")),
      html("pre", { tabIndex: 0, "aria-label": `Code of ${kernel.name}` }, text));
  } }, html("summary", {}, `Machine code: ${count(instructions.length)} instructions`), place);
  return pane;
}

// The instructions that stand there most often: not those that run most often.
function frequent(instructions) {
  const counts = new Map();
  for (const line of instructions) {
    const [name] = line.trim().replace(/^@\S+\s+/, "").split(/[\s;]/);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, SHOWN)
    .map(([name, times]) => `${times} × ${name}`).join(", ");
}
