// What a colour of the graph means: time, a device, or the layout of the result.

import { colourOf } from "./dom.js";
import { share } from "./format.js";

export const WAYS = [["time", "Time"], ["device", "Device"], ["layout", "Layout"]];
const SHADES = 5;

export class Colours {
  constructor(page) {
    this.kernels = page.kernels;
    this.nodes = page.graph.nodes;
    this.most = 1e-12;
    this.way = "time";
    this.known = {};
    // The time of a kernel counts once, at the first op that it computes.
    this.sharesOfNodes = this.nodes.map(() => 0);
    const counted = new Set();
    this.nodes.forEach((node, number) => {
      for (const id of node.kernels) {
        if (!counted.has(id)) this.sharesOfNodes[number] += this.kernels[id].share;
        counted.add(id);
      }
    });
    this.keys = { device: new Map(), layout: new Map() };
    for (const kernel of this.kernels) {
      for (const way of ["device", "layout"]) {
        const key = keyOf(kernel, way);
        if (!this.keys[way].has(key)) this.keys[way].set(key, this.keys[way].size);
      }
    }
  }

  // Shades are of the most expensive box of those that are drawn, which consist of these ops.
  begin(boxes) {
    this.most = Math.max(...boxes.map((nodes) => this.partOf(nodes)), 1e-12);
    this.known.time = undefined;
  }

  // The colour of what consists of these ops; empty where nothing is known of them.
  of(nodes) {
    // A list of nodes is always the same one for a group: what was found is kept.
    const known = (this.known[this.way] ??= new WeakMap());
    if (!known.has(nodes)) known.set(nodes, this.find(nodes));
    return known.get(nodes);
  }

  find(nodes) {
    const kernels = [...new Set(nodes.flatMap((node) => this.nodes[node].kernels))];
    if (!kernels.length) return "";
    if (this.way === "time") return this.shade(this.partOf(nodes) / this.most);
    const keys = new Set(kernels.map((id) => keyOf(this.kernels[id], this.way)));
    return keys.size === 1 ? colourOf(this.keys[this.way].get([...keys][0])) : "var(--line)";
  }

  // An op has the time of its kernels, which others may share; a group that of kernels begun in it.
  partOf(nodes) {
    if (nodes.length > 1) return this.shareOf(nodes);
    return Math.max(0, ...nodes.flatMap((node) => this.nodes[node].kernels)
      .map((id) => this.kernels[id].share));
  }

  shareOf(nodes) {
    return nodes.reduce((sum, node) => sum + this.sharesOfNodes[node], 0);
  }

  shade(part) {
    const level = Math.min(SHADES - 1, Math.floor(Math.sqrt(part) * SHADES));
    return `var(--heat-${level})`;
  }

  get title() {
    return { time: "Share of one run:", device: "Device:", layout: "Layout of the result:" }[this.way];
  }

  legend() {
    if (this.way === "time") {
      return Array.from({ length: SHADES }, (_, level) => {
        const [from, to] = [level, level + 1].map((at) => this.most * (at / SHADES) ** 2);
        return [`var(--heat-${level})`, `${percent(from, this.most)} – ${share(to, decimals(this.most))}`];
      });
    }
    const found = [...this.keys[this.way]].map(([key, number]) => [colourOf(number), key]);
    return [...found, ["var(--line)", "several"]];
  }
}

// As many decimals as tell the smallest steps up to a share apart.
function decimals(most) {
  return most < 0.001 ? 4 : most < 0.01 ? 3 : most < 0.1 ? 2 : 1;
}

function percent(value, most) {
  return value ? (100 * value).toFixed(decimals(most)) : "0";
}

function keyOf(kernel, way) {
  return way === "device" ? kernel.device : kernel.layouts.split("->")[1] || "none";
}
