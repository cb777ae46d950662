// The boxes of the graph: what is written in them, and their elements.

import { svg } from "./dom.js";
import { shape, share } from "./format.js";
import { LINE } from "./layout.js";

const LONGEST = 34;
const FEW = 3;

export class Words {
  constructor(page, tree, colours) {
    Object.assign(this, { page, tree, colours });
  }

  // Two lines: the name, of which the end says more than the beginning, and what is in it.
  of(part) {
    if (part.node !== undefined) {
      const { name, kind, type } = this.page.graph.nodes[part.node];
      return [cut(name), cut(`${kind} ${shape(type)}`)];
    }
    const { label, times } = this.page.graph.groups[part.group];
    const time = share(this.colours.shareOf(this.tree.nodesIn(part.group)));
    return [cut(label) + (times > 1 ? ` × ${times}` : ""), `${this.what(part.group)}, ${time}`];
  }

  // A few ops by their kinds, such as those that an importer makes of one; more by their number.
  what(group) {
    const nodes = this.tree.nodesIn(group);
    if (nodes.length > FEW) return `${nodes.length} ops`;
    return nodes.map((node) => this.page.graph.nodes[node].kind).join(" + ");
  }
}

function cut(text) {
  return text.length > LONGEST ? `…${text.slice(1 - LONGEST)}` : text;
}

// A button: a group opens or closes, an op is pinned.
export function boxElement({ x, y, width, height, part, id }, words, colour, isOpen, act) {
  const isGroup = part.group !== undefined;
  const does = isGroup ? (isOpen ? "close" : "open") : "pin";
  const element = svg("g", {
    class: `box${isGroup ? " group" : ""}${isOpen ? " is-open" : ""}`, tabindex: 0,
    role: "button", "data-id": id, "aria-label": `${does} ${words.join(" ")}`,
    transform: `translate(${x},${y})`,
  });
  if (isGroup) element.setAttribute("aria-expanded", isOpen);
  element.append(svg("rect", { width, height, rx: isGroup ? 8 : 4,
    style: colour ? `--fill:${colour}` : "" }));
  const shown = isOpen ? [words.join(" ")] : words;
  // The space between lines is what makes the label say what is seen.
  shown.forEach((text, line) => element.append(line ? " " : "",
    svg("text", { x: 12, y: 18 + line * LINE, class: line ? "note" : "" }, text)));
  element.addEventListener("click", act);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  });
  return element;
}
