// Lanes over time: a bar wherever something runs.

function drawTimeline(view, stage) {
  const [left, row, bottom] = [130, 34, 26];
  const end = Math.max(...view.bars.map((bar) => bar.end), 0) || 1;
  const figure = html("div", { className: "figure" });
  stage.append(figure);
  const width = Math.max(figure.clientWidth - 40, 600);
  const scale = (width - left) / end;
  const height = row * view.lanes.length + bottom;
  const chart = svg("svg", { width, height, role: "img" });
  view.lanes.forEach((name, lane) => chart.append(svg("text", { x: 0, y: lane * row + 20 }, name)));
  const bars = view.bars.map((bar) => {
    const text = `${bar.label}: ${bar.start.toPrecision(5)} to ${bar.end.toPrecision(5)} ${view.unit}`;
    return svg("rect", {
      class: "bar",
      x: left + bar.start * scale,
      y: bar.lane * row + 4,
      width: Math.max((bar.end - bar.start) * scale, 0.5),
      height: row - 10,
      style: `fill:${colourOf(bar.colour)}`,
    }, hint(text));
  });
  chart.append(...bars, svg("text", { class: "axis", x: left, y: height - 8 }, "0"));
  const last = { class: "axis", x: width, y: height - 8, "text-anchor": "end" };
  chart.append(svg("text", last, `${end.toPrecision(5)} ${view.unit}`));
  figure.append(chart);
  if (view.table) figure.append(tableOf(view.table));
  return (text) => {
    const wanted = text.trim().toLowerCase();
    const hits = view.bars.map((bar) => bar.label.toLowerCase().includes(wanted));
    bars.forEach((bar, i) => bar.classList.toggle("faded", wanted !== "" && !hits[i]));
    return wanted ? hits.filter(Boolean).length : null;
  };
}
