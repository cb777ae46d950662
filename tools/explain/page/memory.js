// Arenas: time to the right, addresses upward, a rectangle for every tensor.

function drawMemory(view, stage) {
  const highest = Math.max(...view.plans.map((plan) => plan.arena), 1);
  const searches = view.plans.map((plan) => drawPlan(plan, highest, stage));
  if (view.table) stage.append(html("div", { className: "figure" }, tableOf(view.table)));
  return (text) => {
    const counts = searches.map((search) => search(text));
    return text.trim() ? counts.reduce((sum, count) => sum + count, 0) : null;
  };
}

function drawPlan(plan, highest, stage) {
  const [left, bottom, full] = [80, 24, 320];
  const figure = html("div", { className: "figure" }, html("h2", {}, plan.label));
  stage.append(figure);
  const width = Math.max(figure.clientWidth - 40, 600);
  const across = (width - left) / Math.max(plan.steps.length, 1);
  const up = full / highest;
  const chart = svg("svg", { width, height: full + bottom, role: "img" });
  const bars = plan.blocks.map((block, index) => {
    const range = `${plan.steps[block.first]} to ${plan.steps[block.last]}`;
    return svg("rect", {
      class: "bar",
      x: left + block.first * across,
      y: full - (block.offset + block.size) * up,
      width: (block.last - block.first + 1) * across,
      height: Math.max(block.size * up, 0.5),
      style: `fill:${colourOf(index % PALETTE.length)}`,
    }, hint(`${block.label}\n${bytes(block.size)} at ${block.offset}\n${range}`));
  });
  const top = full - plan.arena * up;
  chart.append(...bars, svg("line", { class: "peak", x1: left, x2: width, y1: top, y2: top }));
  chart.append(svg("text", { class: "axis", x: 0, y: Math.max(top + 4, 10) }, bytes(plan.arena)));
  chart.append(svg("text", { class: "axis", x: 0, y: full }, "0"));
  const label = { class: "axis", x: left, y: full + 16 };
  chart.append(svg("text", label, `${plan.steps.length} steps, in the order in which they run`));
  figure.append(chart);
  return (text) => {
    const wanted = text.trim().toLowerCase();
    const hits = plan.blocks.map((block) => block.label.toLowerCase().includes(wanted));
    bars.forEach((bar, i) => bar.classList.toggle("faded", wanted !== "" && !hits[i]));
    return hits.filter(Boolean).length;
  };
}
