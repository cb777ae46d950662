// The IR of a kernel's ops after each pass that changed them, beside how it was before.

import { html } from "./dom.js";

export function historyPanes(kernel, whyNone) {
  const { history } = kernel;
  if (!history?.length) {
    return html("p", { className: "soft" }, whyNone ? `No IR after each pass: ${whyNone}.` : "");
  }
  const before = pane("Before");
  const after = pane("After");
  const choice = html("select", { "aria-label": "Pass", onchange: () => show(Number(choice.value)) },
    ...history.map((change, index) => html("option", { value: index }, change.after)));
  const step = (by) => html("button", { type: "button",
    onclick: () => show(Math.min(history.length - 1, Math.max(0, Number(choice.value) + by))) },
  by < 0 ? "‹ earlier" : "later ›");

  function show(index) {
    choice.value = index;
    const old = index ? history[index - 1].text.split("\n") : [];
    const now = history[index].text.split("\n");
    before.title.textContent = index ? `after ${history[index - 1].after}` : "";
    after.title.textContent = `after ${history[index].after}`;
    before.fill(old, new Set(now));
    after.fill(now, new Set(old), index > 0);
  }

  show(history.length - 1);
  return html("div", { className: "history" },
    html("p", {}, "IR after each pass that changed it: ", step(-1), choice, step(1)),
    html("div", { className: "panes" }, before.element, after.element));
}

// Lines that the other pane does not have are marked. Both scroll together.
function pane(name) {
  const title = html("p", { className: "title" });
  const text = html("pre", { tabIndex: 0, "aria-label": name });
  const element = html("div", { className: "pane" }, title, text);
  text.addEventListener("scroll", () => {
    for (const other of element.parentElement.querySelectorAll("pre")) {
      if (other !== text) other.scrollTop = text.scrollTop;
    }
  });
  const fill = (lines, others, marks = true) => text.replaceChildren(
    ...lines.map((line) => html("span", { className: marks && !others.has(line) ? "changed" : "" },
      line)));
  return { element, title, fill };
}
