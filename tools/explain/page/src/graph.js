// The graph of the model's own ops: groups open by a click, a click on an op pins it.

import { boxElement, Words } from "./boxes.js";
import { Camera } from "./camera.js";
import { Colours, WAYS } from "./colours.js";
import { announce, html, svg } from "./dom.js";
import { Layouts } from "./layout.js";
import { pinned } from "./pinned.js";
import { noteRoute } from "./route.js";
import { Tree } from "./tree.js";

export function graphView(page, panel) {
  return new GraphView(page, panel);
}

class GraphView {
  constructor(page, panel) {
    this.page = page;
    this.tree = new Tree(page.graph);
    this.colours = new Colours(page);
    this.words = new Words(page, this.tree, this.colours);
    this.layouts = new Layouts(this.tree, (part) => this.words.of(part));
    this.byName = new Map(page.graph.nodes.map((node, number) => [node.name, number]));
    this.hits = [];
    this.build(panel);
    this.openWhatIsAlone();
    this.legend.append(html("li", {}, "The graph is being laid out …"));
    this.ready = this.draw().then(() => this.camera.begin());
  }

  // A model of one module, such as an encoder, begins with that open.
  openWhatIsAlone() {
    for (let group = 0; group !== undefined;) {
      const parts = this.tree.children[group].filter(({ node }) =>
        !["input", "output"].includes(this.page.graph.nodes[node]?.kind));
      group = parts.length === 1 ? parts[0].group : undefined;
      if (group === undefined || this.page.graph.groups[group].times > 1) break;
      this.tree.openGroup(group);
    }
  }

  build(panel) {
    this.content = svg("g");
    this.canvas = svg("svg", { class: "graph", role: "application", tabindex: 0,
      "aria-label": "Graph of the model: arrows move, + and - zoom, f fits, Enter opens or pins" },
    this.content);
    this.camera = new Camera(this.canvas, this.content);
    this.field = html("input", { type: "search", placeholder: "Find ops  ( / )",
      "aria-label": "Find ops", oninput: () => this.search(), onkeydown: (event) => {
        if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
      } });
    this.found = html("span", { className: "said" });
    this.way = html("select", { "aria-label": "Colour", onchange: () => {
      this.colours.way = this.way.value;
      this.draw();
    } }, ...WAYS.map(([value, title]) => html("option", { value }, title)));
    const button = (title, does) => html("button", { type: "button", onclick: does }, title);
    this.legend = html("ul", { className: "legend" });
    this.aside = html("aside", { hidden: true, "aria-label": "What is pinned", tabIndex: 0 });
    panel.append(
      html("div", { className: "tools" }, this.field, this.found,
        button("‹", () => this.next(-1)), button("›", () => this.next(1)),
        html("label", {}, "Colour ", this.way), button("Fit", () => this.camera.fit()),
        button("Close groups", () => this.closeAll())),
      html("div", { className: "stage" }, html("div", { className: "canvas" }, this.canvas,
        this.camera.map), this.aside),
      this.legend);
    panel.querySelectorAll(".tools button")[0].setAttribute("aria-label", "Previous match");
    panel.querySelectorAll(".tools button")[1].setAttribute("aria-label", "Next match");
  }

  nodesOf(part) {
    return part.node === undefined ? this.tree.nodesIn(part.group) : [part.node];
  }

  async draw() {
    const drawing = await this.layouts.all();
    const open = (box) => box.part.group !== undefined && this.tree.open.has(box.part.group);
    this.colours.begin(drawing.boxes.filter((box) => !open(box)).map((box) => this.nodesOf(box.part)));
    const colours = new Map(drawing.boxes.map((box) => [box.id, this.colours.of(this.nodesOf(box.part))]));
    const path = (points) => `M${points.map(({ x, y }) => `${x},${y}`).join("L")}`;
    this.boxes = new Map(drawing.boxes.map((box) => [box.id, box]));
    this.marks = svg("g", { class: "marks" });
    this.content.replaceChildren(
      ...drawing.boxes.filter(open).map((box) => this.boxElement(box, "", true)),
      svg("g", { class: "edges" }, ...drawing.lines.map((line) => svg("path", { d: path(line) }))),
      this.marks,
      ...drawing.boxes.filter((box) => !open(box))
        .map((box) => this.boxElement(box, colours.get(box.id), false)));
    this.camera.drawn({ ...drawing, boxes: drawing.boxes.filter((b) => !open(b)) },
      (id) => colours.get(id));
    this.legend.replaceChildren(html("li", {}, this.colours.title),
      ...this.colours.legend().map(([colour, text]) =>
        html("li", {}, html("i", { className: "key", style: `background:${colour}` }), text)),
      html("li", {}, html("i", { className: "key dashed" }), "opens by a click"));
    this.mark();
  }

  boxElement(box, colour, isOpen) {
    const { group, node } = box.part;
    return boxElement(box, this.words.of(box.part), colour, isOpen,
      () => (node === undefined ? this.toggle(group) : this.pin(node)));
  }

  async toggle(group) {
    const id = `g${group}`;
    const before = this.boxes.get(id);
    const opens = !this.tree.open.has(group);
    if (opens) this.tree.openGroup(group);
    else this.tree.closeGroup(group);
    await this.draw();
    const after = this.boxes.get(id);
    if (before && after) this.camera.hold(before, after);
    this.content.querySelector(`[data-id="${id}"]`)?.focus({ preventScroll: true });
    announce(`${this.page.graph.groups[group].label} ${opens ? "opened" : "closed"}`);
  }

  async closeAll() {
    this.tree.closeGroup(0);
    this.tree.open.add(0);
    await this.draw();
    this.camera.begin();
  }

  // Shows an op, with the groups around it open.
  async reveal(node) {
    const closed = this.tree.around(node).filter((group) => !this.tree.open.has(group));
    if (closed.length) {
      this.tree.openGroup(closed.at(-1));
      await this.draw();
    }
    const { x, y, width, height } = this.boxes.get(`n${node}`);
    this.camera.centre(x + width / 2, y + height / 2);
  }

  pin(node) {
    this.node = node;
    this.aside.hidden = false;
    this.aside.replaceChildren(html("button", { type: "button", className: "close",
      "aria-label": "Close", onclick: () => this.unpin() }, "×"),
    ...pinned(this.page, this.tree, node, (other) => this.reveal(other).then(() => this.pin(other))));
    noteRoute("graph", this.page.graph.nodes[node].name);
    this.mark();
  }

  unpin() {
    this.node = undefined;
    this.aside.hidden = true;
    noteRoute("graph");
    this.mark();
  }

  // Marks what was found, and what the pinned op reads and who reads it, across all groups.
  mark() {
    const hits = new Set(this.hits.map((node) => this.tree.boxOf(node)));
    for (const element of this.content.querySelectorAll(".box")) {
      element.classList.toggle("hit", hits.has(element.dataset.id));
      element.classList.toggle("pinned", element.dataset.id === `n${this.node}`);
    }
    const box = this.boxes?.get(`n${this.node}`);
    const { from = [], to = [] } = box ? this.tree.edgesOf[this.node] : {};
    const line = (a, b) => svg("line", { x1: a.x + a.width / 2, y1: a.y + a.height,
      x2: b.x + b.width / 2, y2: b.y });
    const seen = (nodes) => [...new Set(nodes.map((node) => this.tree.boxOf(node)))]
      .map((id) => this.boxes.get(id)).filter(Boolean);
    this.marks?.replaceChildren(...seen(from).map((other) => line(other, box)),
      ...seen(to).map((other) => line(box, other)));
  }

  search() {
    const wanted = this.field.value.trim().toLowerCase();
    this.hits = wanted ? this.page.graph.nodes.flatMap(({ name, kind }, number) =>
      (`${name} ${kind}`.toLowerCase().includes(wanted) ? [number] : [])) : [];
    this.at = -1;
    this.found.textContent = wanted ? `${this.hits.length} found` : "";
    this.mark();
  }

  async next(step) {
    if (!this.hits.length) return;
    const { length } = this.hits;
    this.at = (Math.max(this.at, step > 0 ? -1 : 0) + step + length) % length;
    this.found.textContent = `${this.at + 1} of ${length}`;
    await this.reveal(this.hits[this.at]);
    this.pin(this.hits[this.at]);
  }

  async show(item) {
    await this.ready;
    // What an importer makes of one op is named after it: NODE/part.
    const node = this.byName.get(item)
      ?? this.page.graph.nodes.findIndex(({ name }) => name.startsWith(`${item}/`));
    if (!item || !(node >= 0) || node === this.node) return;
    await this.reveal(node);
    this.pin(node);
  }
}
