// The tree of groups: which boxes stand for which ops, given the groups that are open.

export const MOST_BOXES = 400;

export class Tree {
  constructor(graph) {
    this.graph = graph;
    this.open = new Set([0]);
    this.children = graph.groups.map(() => []);
    graph.groups.forEach((group, id) => {
      if (group.parent >= 0) this.children[group.parent].push({ group: id });
    });
    graph.group_of.forEach((group, node) => this.children[group].push({ node }));
    this.edgesOf = graph.nodes.map(() => ({ from: [], to: [] }));
    for (const [source, target] of graph.edges) {
      this.edgesOf[target].from.push(source);
      this.edgesOf[source].to.push(target);
    }
    this.sizes = this.countOps();
    // Ops are in their order; a group stands where its first op does.
    const first = graph.groups.map(() => Infinity);
    graph.group_of.forEach((group, node) => {
      for (let g = group; g >= 0; g = graph.groups[g].parent) first[g] = Math.min(first[g], node);
    });
    for (const parts of this.children) {
      parts.sort((a, b) => (a.node ?? first[a.group]) - (b.node ?? first[b.group]));
    }
  }

  countOps() {
    const sizes = this.graph.groups.map(() => 0);
    this.graph.group_of.forEach((group) => {
      for (let g = group; g >= 0; g = this.graph.groups[g].parent) sizes[g] += 1;
    });
    return sizes;
  }

  // The groups around a node, the outermost first.
  around(node) {
    const found = [];
    for (let g = this.graph.group_of[node]; g > 0; g = this.graph.groups[g].parent) found.unshift(g);
    return found;
  }

  // What is drawn for an op: itself, or the outermost group around it that is closed.
  boxOf(node) {
    const closed = this.around(node).find((group) => !this.open.has(group));
    return closed === undefined ? `n${node}` : `g${closed}`;
  }

  boxes() {
    let found = 0;
    const visit = (group) => {
      for (const part of this.children[group]) {
        found += 1;
        if (part.group !== undefined && this.open.has(part.group)) visit(part.group);
      }
    };
    visit(0);
    return found;
  }

  // Opens a group and those around it; closes others, the longest open ones first, where there
  // would be too many boxes.
  openGroup(group) {
    const kept = new Set([0]);
    for (let g = group; g > 0; g = this.graph.groups[g].parent) kept.add(g);
    for (const each of kept) {
      this.open.delete(each);
      this.open.add(each);
    }
    for (const each of [...this.open]) {
      if (this.boxes() <= MOST_BOXES) break;
      if (!kept.has(each)) this.closeGroup(each);
    }
  }

  closeGroup(group) {
    this.open.delete(group);
    for (const part of this.children[group]) if (part.group !== undefined) this.closeGroup(part.group);
  }

  // Edges between the parts of one group, each once.
  edgesIn(group) {
    const partOf = (node) => {
      let [inner, g] = [`n${node}`, this.graph.group_of[node]];
      while (g !== group && g > 0) [inner, g] = [`g${g}`, this.graph.groups[g].parent];
      return g === group ? inner : null;
    };
    const found = new Map();
    for (const node of this.nodesIn(group)) {
      const target = partOf(node);
      for (const source of this.edgesOf[node].from) {
        const from = partOf(source);
        if (from && from !== target) found.set(`${from} ${target}`, [from, target]);
      }
    }
    return [...found.values()];
  }

  nodesIn(group) {
    this.inside ??= new Map();
    if (!this.inside.has(group)) {
      this.inside.set(group, this.children[group].flatMap((part) =>
        (part.node !== undefined ? [part.node] : this.nodesIn(part.group))));
    }
    return this.inside.get(group);
  }
}
