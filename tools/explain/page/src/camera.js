// Panning and zooming by pointer, wheel and keys, and the small map of the whole.

import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import { svg } from "./dom.js";

const STEP = 80;
const MAP = { width: 150, height: 110 };

export class Camera {
  constructor(canvas, content) {
    this.canvas = canvas;
    this.frame = svg("rect", { class: "frame" });
    this.mapContent = svg("g");
    this.map = svg("svg", { class: "minimap", "aria-hidden": "true", ...MAP }, this.mapContent,
      this.frame);
    this.zoom = zoom().scaleExtent([0.02, 4]).on("zoom", ({ transform }) => {
      this.transform = transform;
      content.setAttribute("transform", transform);
      this.updateMap();
    });
    this.transform = zoomIdentity;
    this.size = { width: 1, height: 1 };
    select(canvas).call(this.zoom).on("dblclick.zoom", null);
    canvas.addEventListener("keydown", (event) => this.key(event));
    this.map.addEventListener("click", (event) => {
      const { left, top } = this.map.getBoundingClientRect();
      this.centre((event.clientX - left) / this.scale, (event.clientY - top) / this.scale);
    });
  }

  // What is drawn has changed: the map shows it as plain boxes.
  drawn(drawing, colourOf) {
    this.size = { width: Math.max(drawing.width, 1), height: Math.max(drawing.height, 1) };
    this.scale = Math.min(MAP.width / this.size.width, MAP.height / this.size.height);
    this.mapContent.setAttribute("transform", `scale(${this.scale})`);
    this.mapContent.replaceChildren(...drawing.boxes.map(({ x, y, width, height, id }) =>
      svg("rect", { x, y, width, height, style: `fill:${colourOf(id) || "var(--line)"}` })));
    this.updateMap();
  }

  updateMap() {
    const { x, y, k } = this.transform;
    const { width, height } = this.canvas.getBoundingClientRect();
    const s = this.scale ?? 1;
    const place = { x: (-x / k) * s, y: (-y / k) * s, width: (width / k) * s, height: (height / k) * s };
    for (const [key, value] of Object.entries(place)) this.frame.setAttribute(key, value);
  }

  fit() {
    const { width, height } = this.canvas.getBoundingClientRect();
    const k = Math.min(1, width / (this.size.width + 20), height / (this.size.height + 20));
    this.to(zoomIdentity.translate((width - this.size.width * k) / 2,
      Math.max(10, (height - this.size.height * k) / 2)).scale(k));
  }

  // At the top, as large as can be read: how a graph is first shown.
  begin() {
    const { width } = this.canvas.getBoundingClientRect();
    const k = Math.min(1, Math.max(0.6, width / (this.size.width + 20)));
    this.to(zoomIdentity.translate((width - this.size.width * k) / 2, 10).scale(k));
  }

  centre(x, y) {
    const { width, height } = this.canvas.getBoundingClientRect();
    const k = Math.max(this.transform.k, 0.6);
    this.to(zoomIdentity.translate(width / 2 - x * k, height / 2 - y * k).scale(k));
  }

  // Keeps a point of the content where it is on the screen.
  hold(before, after) {
    const { x, y, k } = this.transform;
    this.to(zoomIdentity.translate(x + (before.x - after.x) * k, y + (before.y - after.y) * k).scale(k));
  }

  to(transform) {
    select(this.canvas).call(this.zoom.transform, transform);
  }

  key(event) {
    const moves = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP],
      ArrowDown: [0, -STEP] };
    const scales = { "+": 1.25, "=": 1.25, "-": 0.8 };
    const target = select(this.canvas);
    if (moves[event.key]) {
      const [x, y] = moves[event.key];
      target.call(this.zoom.translateBy, x / this.transform.k, y / this.transform.k);
    } else if (scales[event.key]) target.call(this.zoom.scaleBy, scales[event.key]);
    else if (event.key === "f") this.fit();
    else return;
    event.preventDefault();
  }
}
