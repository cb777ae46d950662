// A figure over time: an axis, zooming and panning sideways, and marks that can be chosen.

import { axisBottom } from "d3-axis";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { zoom } from "d3-zoom";
import { html, svg } from "./dom.js";

const [BOTTOM, RIGHT] = [26, 30];

// `draw(scale)` gives the marks; `ticks` writes a place on the axis.
export class Figure {
  constructor({ label, left, height, end, ticks, draw, still = () => [] }) {
    Object.assign(this, { left, height, end, ticks, draw });
    this.marks = svg("g");
    this.axis = svg("g", { class: "axis", transform: `translate(0,${height})` });
    this.clip = svg("rect", { height: height + BOTTOM, x: left });
    const id = `clip-${Math.random().toString(36).slice(2)}`;
    const clip = svg("clipPath", { id }, this.clip);
    this.chart = svg("svg", { class: "figure", height: height + BOTTOM, role: "group",
      "aria-label": label }, clip, ...still(), svg("g", { "clip-path": `url(#${id})` }, this.marks),
    this.axis);
    this.element = html("div", { className: "chart" }, this.chart);
    this.zoom = zoom().scaleExtent([1, 500]).filter((event) =>
      !event.button && (event.type !== "wheel" || event.ctrlKey || event.metaKey || event.shiftKey))
      .on("zoom", ({ transform }) => this.update(transform));
    select(this.chart).call(this.zoom);
    this.chart.addEventListener("keydown", (event) => {
      const factor = { "+": 1.5, "=": 1.5, "-": 1 / 1.5 }[event.key];
      const move = { ArrowLeft: 60, ArrowRight: -60 }[event.key];
      if (factor) this.scaleBy(factor);
      else if (move) select(this.chart).call(this.zoom.translateBy, move, 0);
      else return;
      event.preventDefault();
    });
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  scaleBy(factor) {
    select(this.chart).call(this.zoom.scaleBy, factor);
  }

  resize() {
    const width = Math.max(this.element.clientWidth, 200);
    if (width === this.width) return;
    this.width = width;
    this.chart.setAttribute("width", width);
    this.clip.setAttribute("width", Math.max(width - this.left, 0));
    this.scale = scaleLinear([0, this.end || 1], [this.left, width - RIGHT]);
    const extent = [[this.left, 0], [width, this.height]];
    this.zoom.extent(extent).translateExtent(extent);
    this.update(this.transform);
  }

  update(transform) {
    if (!this.scale) return;
    this.transform = transform;
    const scale = transform ? transform.rescaleX(this.scale) : this.scale;
    this.marks.replaceChildren(...this.draw(scale));
    const count = Math.max(2, Math.floor(this.width / 120));
    select(this.axis).call(axisBottom(scale).ticks(count).tickFormat(this.ticks));
  }

  tools() {
    const button = (title, label, factor) => html("button", { type: "button", "aria-label": label,
      onclick: () => this.scaleBy(factor) }, title);
    return html("span", { className: "zoom" }, button("+", "Zoom in", 1.6), button("−", "Zoom out", 1 / 1.6),
      html("small", {}, " drag to move, Shift and wheel to zoom"));
  }
}
