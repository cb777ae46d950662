// Where boxes stand: ELK in a worker lays out one group at a time, and each result is kept.

import ELK from "elkjs/lib/elk-api.js";
import packed from "elk-worker";
import { unpacked } from "./packed.js";

export const LINE = 16;
const CHARACTER = 6.8;
const [MARGIN, TITLE] = [14, 24];
const OPTIONS = {
  "elk.algorithm": "layered",
  "elk.direction": "DOWN",
  "elk.edgeRouting": "POLYLINE",
  "elk.layered.thoroughness": "3",
  "elk.layered.spacing.nodeNodeBetweenLayers": "26",
  "elk.spacing.nodeNode": "18",
  "elk.layered.considerModelOrder.strategy": "PREFER_NODES",
  "elk.padding": `[top=${TITLE + MARGIN},left=${MARGIN},bottom=${MARGIN},right=${MARGIN}]`,
};

async function startElk() {
  const text = await unpacked(packed);
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  return new ELK({ workerFactory: () => new Worker(url) });
}

export class Layouts {
  constructor(tree, wordsOf) {
    this.tree = tree;
    this.wordsOf = wordsOf;
    this.elk = startElk();
    this.known = new Map();
    this.edges = new Map();
  }

  // The boxes of all open groups with their places, and the lines between them.
  async all() {
    const drawing = { boxes: [], lines: [] };
    const root = await this.of(0);
    this.put(root, 0, 0, drawing);
    return { ...drawing, width: root.width, height: root.height };
  }

  put(placed, x, y, drawing) {
    for (const line of placed.lines) {
      drawing.lines.push(line.map((point) => ({ x: point.x + x, y: point.y + y })));
    }
    for (const box of placed.boxes) {
      drawing.boxes.push({ ...box, x: box.x + x, y: box.y + y, inner: undefined });
      if (box.inner) this.put(box.inner, box.x + x, box.y + y, drawing);
    }
  }

  // A group is laid out anew where another of its groups is open than before.
  async of(group) {
    const parts = this.tree.children[group];
    const isOpen = (part) => part.group !== undefined && this.tree.open.has(part.group);
    const inner = new Map();
    for (const part of parts) if (isOpen(part)) inner.set(part.group, await this.of(part.group));
    const key = `${group}:${[...inner].map(([id, { key: own }]) => `${id}(${own})`)}`;
    if (!this.known.has(key)) {
      this.known.set(key, { ...await this.place(group, parts, inner), key });
    }
    return this.known.get(key);
  }

  async place(group, parts, inner) {
    const sizes = parts.map((part) => inner.get(part.group) ?? boxSize(this.wordsOf(part)));
    const ids = parts.map((part) => (part.node === undefined ? `g${part.group}` : `n${part.node}`));
    if (!this.edges.has(group)) this.edges.set(group, this.tree.edgesIn(group));
    const found = await (await this.elk).layout({
      id: "group",
      layoutOptions: OPTIONS,
      children: ids.map((id, i) => ({ id, width: sizes[i].width, height: sizes[i].height })),
      edges: this.edges.get(group).map(([source, target], i) =>
        ({ id: `e${i}`, sources: [source], targets: [target] })),
    });
    const boxes = found.children.map(({ id, x, y, width, height }, i) =>
      ({ id, x, y, width, height, part: parts[i], inner: inner.get(parts[i].group) }));
    const lines = found.edges.flatMap((edge) => (edge.sections ?? []).map((section) =>
      [section.startPoint, ...(section.bendPoints ?? []), section.endPoint]));
    return { boxes, lines, width: found.width, height: found.height };
  }
}

function boxSize(words) {
  const letters = Math.max(...words.map((text) => text.length));
  return { width: letters * CHARACTER + 28, height: words.length * LINE + 12 };
}
