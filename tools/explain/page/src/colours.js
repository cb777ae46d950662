// What a colour of the graph means: time, a device, or the layout of the result.

import { colourOf } from "./dom.js";
import { share } from "./format.js";

export const WAYS = [["time", "Time"], ["device", "Device"], ["layout", "Layout"]];
const SHADES = 5;

export class Colours {
  constructor(page) {
    this.kernels = page.kernels;
    this.nodes = page.graph.nodes;
    this.most = Math.max(...this.kernels.map((kernel) => kernel.share), 1e-12);
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
    if (this.way === "time") {
      const part = nodes.length > 1 ? this.shareOf(nodes)
        : Math.max(...kernels.map((id) => this.kernels[id].share));
      return this.shade(part / (nodes.length > 1 ? Math.max(this.most, part) : this.most));
    }
    const keys = new Set(kernels.map((id) => keyOf(this.kernels[id], this.way)));
    return keys.size === 1 ? colourOf(this.keys[this.way].get([...keys][0])) : "var(--line)";
  }

  shareOf(nodes) {
    return nodes.reduce((sum, node) => sum + this.sharesOfNodes[node], 0);
  }

  shade(part) {
    const level = Math.min(SHADES - 1, Math.floor(Math.sqrt(part) * SHADES));
    return `var(--heat-${level})`;
  }

  legend() {
    if (this.way === "time") {
      return Array.from({ length: SHADES }, (_, level) => {
        const from = this.most * (level / SHADES) ** 2;
        return [`var(--heat-${level})`, `from ${share(from, from && from < 0.01 ? 3 : 1)} of one run`];
      });
    }
    const found = [...this.keys[this.way]].map(([key, number]) => [colourOf(number), key]);
    return [...found, ["var(--line)", "several"]];
  }
}

function keyOf(kernel, way) {
  return way === "device" ? kernel.device : kernel.layouts.split("->")[1] || "none";
}
