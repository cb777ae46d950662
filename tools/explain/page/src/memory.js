// Arenas: time to the right, addresses upward, a rectangle for every tensor.

import { announce, colourOf, html, svg, tableOf } from "./dom.js";
import { Figure } from "./figure.js";
import { bytes } from "./format.js";
import { factList } from "./pinned.js";

const [FULL, LEFT] = [340, 84];
const [LETTER, LINE, FEWEST, FEW] = [6.8, 15, 14, 5];

export function memoryView(page, panel) {
  const view = page.memory;
  const highest = Math.max(...view.plans.map((plan) => plan.arena), 1);
  const field = html("input", { type: "search", placeholder: "Find tensors  ( / )",
    "aria-label": "Find tensors", oninput: () => draw() });
  const plans = view.plans.map((plan) => new Plan(plan, highest, () => field.value));
  const draw = () => plans.forEach((plan) => plan.figure.update(plan.figure.transform));
  panel.append(html("p", { className: "summary" }, view.summary),
    html("div", { className: "tools" }, field), ...plans.map((plan) => plan.element));
  if (view.table) {
    panel.append(tableOf(view.table.columns, view.table.rows,
      { caption: "Live at the peak, the largest first", numeric: [0, 1] }));
  }
}

class Plan {
  constructor(plan, highest, wanted) {
    Object.assign(this, { plan, wanted, up: FULL / highest });
    const top = FULL - plan.arena * this.up;
    this.figure = new Figure({
      label: `${plan.label}: tensors in the arena over the steps of the program`,
      left: LEFT, height: FULL, end: plan.steps.length,
      ticks: (at) => (Number.isInteger(at) && plan.steps[at] ? shortened(named(plan.steps[at])) : ""),
      draw: (scale) => this.blocks(scale),
      still: () => [svg("text", { class: "label", x: 0, y: Math.max(top + 4, 10) }, bytes(plan.arena)),
        svg("text", { class: "label", x: 0, y: FULL }, "0 B"),
        svg("line", { class: "peak", x1: LEFT, x2: "100%", y1: top, y2: top })],
    });
    this.about = html("div", { className: "about", "aria-live": "polite" },
      html("p", { className: "soft" }, "Choose a tensor to see who reads it, and why it lives so long."));
    this.element = html("div", {}, html("h2", {}, plan.label), this.figure.tools(),
      this.figure.element, this.about);
  }

  blocks(scale) {
    const wanted = this.wanted().trim().toLowerCase();
    const across = scale(1) - scale(0);
    return this.plan.blocks.map((block, index) => {
      const faded = wanted && !block.label.toLowerCase().includes(wanted);
      const made = svg("rect", {
        class: `mark${faded ? " faded" : ""}${index === this.chosen ? " chosen" : ""}`,
        tabindex: 0, role: "button", "aria-label": `${named(block.label)}, ${bytes(block.size)}`,
        x: scale(block.first), y: FULL - (block.offset + block.size) * this.up,
        width: Math.max((block.last - block.first + 1) * across - 1, 0.5),
        height: Math.max(block.size * this.up - 0.5, 0.5), style: `fill:${colourOf(index % 8)}`,
      }, svg("title", {}, `${named(block.label)}\n${bytes(block.size)}`));
      made.addEventListener("click", () => this.choose(index));
      made.addEventListener("keydown", (event) => {
        if (event.key === "Enter") this.choose(index);
      });
      return svg("g", {}, made, ...written(named(block.label), scale(block.first), made));
    });
  }

  choose(index) {
    this.chosen = index;
    const block = this.plan.blocks[index];
    const step = (at) => `${at} (${named(this.plan.steps[at])})`;
    const facts = [["Size", `${bytes(block.size)} at address ${block.offset}`],
      ["Type", html("code", {}, block.type || "scratch")], ["Made at step", step(block.first)],
      ["Read at steps", block.readers.map(step).join(", ") || "none"],
      ["Lives until step", step(block.last)], ["Why so long", block.why]];
    this.about.replaceChildren(html("h3", {}, named(block.label)), factList(facts));
    this.figure.update(this.figure.transform);
    announce(named(block.label));
  }
}

// The ops of the model alone, without the parts that an importer makes of them: NODE/part.
function named(label) {
  const names = label.split(", ");
  const own = names.filter((name) => !names.some((other) => name.startsWith(`${other}/`)));
  return own.length > FEW ? `${own[0]} … ${own.at(-1)} (${own.length} ops)` : own.join(" + ");
}

// The end of a name says more than its beginning, which modules share.
function shortened(text) {
  return text.length > 14 ? `…${text.slice(-13)}` : text;
}

// The name in its rectangle, where there is room for it.
function written(label, x, mark) {
  const [width, height] = ["width", "height"].map((side) => Number(mark.getAttribute(side)));
  const letters = Math.floor((width - 8) / LETTER);
  if (letters < Math.min(label.length, FEWEST) || height < LINE) return [];
  const text = label.length > letters ? `…${label.slice(1 - letters)}` : label;
  return [svg("text", { class: "written", x: x + 4, y: Number(mark.getAttribute("y")) + LINE - 3,
    "aria-hidden": "true" }, text)];
}
