// What is known of the op that is pinned in the graph.

import { html } from "./dom.js";
import { nextText } from "./columns.js";
import { seconds, share } from "./format.js";
import { kernelKeys, routeTo } from "./route.js";

export function pinned(page, tree, node, goTo) {
  const { name, kind, type, kernels, why } = page.graph.nodes[node];
  const links = (nodes) => html("span", {}, ...nodes.map((other) => html("button", {
    type: "button", className: "link", onclick: () => goTo(other),
  }, page.graph.nodes[other].name)));
  const { from, to } = tree.edgesOf[node];
  const facts = [["Kind", kind], ["Type", html("code", {}, type)]];
  if (from.length) facts.push(["Reads", links(from)]);
  if (to.length) facts.push(["Read by", links(to)]);
  if (why) facts.push(["Why", why]);
  const keys = kernelKeys(page.kernels);
  const parts = kernels.map((id) => kernelBlock(page.kernels[id], keys[id]));
  if (!parts.length && kind !== "input" && kind !== "output") {
    parts.push(html("p", { className: "soft" },
      "No kernel computes it: it was folded, merged, or moves nothing."));
  }
  return [html("h2", {}, name), factList(facts), ...parts];
}

function kernelBlock(kernel, key) {
  return html("section", {}, html("h3", {}, "Its kernel"), factList([
    ["Kernel", html("a", { href: routeTo("kernels", key) }, kernel.name)],
    ["Where", kernel.placed ? `${kernel.device}: ${kernel.placed}` : kernel.device],
    ["Time", `${seconds(kernel.time)}, ${share(kernel.share)} of one run`],
    ["Decided", html("code", {}, `${kernel.layouts} ${kernel.family}`)],
    ["Because", kernel.reason],
    ["Next best", nextText(kernel)],
  ]));
}

export function factList(facts) {
  return html("dl", { className: "facts" }, ...facts.flatMap(([term, value]) =>
    [html("dt", {}, term), html("dd", {}, value)]));
}
