// Tabs: a view draws itself when it is opened first, and is told each address that is for it.

import { html } from "./dom.js";
import { decisionsView } from "./decisions.js";
import { differenceView } from "./difference.js";
import { graphView } from "./graph.js";
import { kernelsView } from "./kernels.js";
import { memoryView } from "./memory.js";
import { go, readRoute } from "./route.js";
import { sizesView } from "./sizes.js";
import { timelineView } from "./timeline.js";
import { unpacked } from "./packed.js";

async function readData() {
  const script = document.getElementById("data");
  const text = script.textContent;
  return JSON.parse(script.type === "application/gzip" ? await unpacked(text) : text);
}

const page = await readData();
const VIEWS = [
  { id: "changes", title: "Changes", draw: differenceView, has: page.difference !== null },
  { id: "kernels", title: "Kernels", draw: kernelsView, has: page.summary !== null },
  { id: "graph", title: "Graph", draw: graphView, has: page.graph !== null },
  { id: "memory", title: "Memory", draw: memoryView, has: page.memory !== null },
  { id: "timeline", title: "Timeline", draw: timelineView, has: page.timelines.length > 0 },
  { id: "sizes", title: "Sizes", draw: sizesView, has: page.sizes !== null },
  { id: "decisions", title: "Decisions", draw: decisionsView, has: page.decisions.length > 0 },
].filter((view) => view.has);

const opened = new Map();
const tabs = document.getElementById("tabs");
const main = document.getElementById("views");

for (const view of VIEWS) {
  view.tab = html("button", {
    role: "tab", id: `tab-${view.id}`, "aria-controls": `view-${view.id}`,
    onclick: () => go(view.id),
  }, view.title);
  view.panel = html("section", {
    role: "tabpanel", id: `view-${view.id}`, "aria-labelledby": view.tab.id, hidden: true,
  });
  tabs.append(view.tab);
  main.append(view.panel);
}

tabs.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const now = VIEWS.findIndex((view) => view.tab === document.activeElement);
  const next = VIEWS[(now + step + VIEWS.length) % VIEWS.length];
  next.tab.focus();
  go(next.id);
});

function open() {
  const route = readRoute();
  const view = VIEWS.find((each) => each.id === route.view) ?? VIEWS[0];
  for (const each of VIEWS) {
    each.panel.hidden = each !== view;
    each.tab.setAttribute("aria-selected", each === view);
    each.tab.tabIndex = each === view ? 0 : -1;
  }
  if (!opened.has(view.id)) opened.set(view.id, view.draw(page, view.panel));
  opened.get(view.id)?.show?.(route.view === view.id ? route.item : "");
}

// A "/" goes to the search of the view that is open.
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
  const field = document.querySelector("section:not([hidden]) input[type=search]");
  if (field) {
    event.preventDefault();
    field.focus();
  }
});
addEventListener("hashchange", open);
open();
performance.mark("first table");
document.body.dataset.ready = "yes";
