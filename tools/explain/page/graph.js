// Graphs: drag to pan, wheel to zoom, point at a box for what is known about it.

function drawGraph(view, stage) {
  const drawing = view.drawing;
  const keys = Object.keys(view.legend);
  const hue = (key) => (keys.includes(key) ? colourOf(keys.indexOf(key)) : "var(--soft)");
  const content = svg("g");
  const boxes = drawing.boxes.map((box) => boxOf(box, hue));
  // What holds others lies below everything, and edges below what they join.
  content.append(...boxes.filter((_, i) => drawing.boxes[i].holds));
  for (const frame of drawing.frames) content.append(...frameOf(frame));
  for (const line of drawing.lines) content.append(edge(line, hue));
  content.append(...boxes.filter((_, i) => !drawing.boxes[i].holds));
  const canvas = svg("svg", { class: "graph" }, content);
  stage.append(canvas);
  const camera = new Camera(canvas, content, drawing);
  boxes.forEach((element, index) => {
    element.addEventListener("mouseenter", () => showDetails(drawing.boxes[index]));
    element.addEventListener("focus", () => showDetails(drawing.boxes[index]));
  });
  return (text) => find(text, drawing.boxes, boxes, camera);
}

function edge(line, hue) {
  const [first, ...rest] = line.points;
  let path = `M${first[0]},${first[1]}`;
  let [x, y] = first;
  for (const [nextX, nextY] of rest) {
    const middle = (y + nextY) / 2;
    path += `C${x},${middle} ${nextX},${middle} ${nextX},${nextY}`;
    [x, y] = [nextX, nextY];
  }
  const style = line.colour ? `stroke:${hue(line.colour)};opacity:1` : "";
  return svg("path", { class: "edge", d: path, style }, hint(line.label));
}

function frameOf(frame) {
  const { x, y, width, height } = frame;
  return [
    svg("rect", { class: "frame", x, y, width, height, rx: 6 }),
    svg("text", { class: "note", x: x + 8, y: y + 14 }, frame.label),
  ];
}

function boxOf(box, hue) {
  const { x, y, width, height } = box;
  const group = svg("g", { class: "box", tabindex: 0 });
  group.append(svg("rect", { x, y, width, height, rx: 5 }));
  if (box.colour) {
    const stripe = { class: "stripe", x: x + 1, y: y + 1, width: 6, height: height - 2, rx: 3 };
    group.append(svg("rect", { ...stripe, style: `fill:${hue(box.colour)}` }));
  }
  group.append(svg("text", { x: x + 14, y: y + 17 }, box.shown));
  group.append(svg("text", { class: "note", x: x + 14, y: y + 32 }, box.note));
  return group;
}

function find(text, boxes, elements, camera) {
  const wanted = text.trim().toLowerCase();
  const hits = boxes.map((box) => searchText(box).includes(wanted));
  elements.forEach((element, i) => element.classList.toggle("faded", wanted !== "" && !hits[i]));
  const first = hits.indexOf(true);
  if (wanted && first >= 0) {
    camera.lookAt(boxes[first]);
    showDetails(boxes[first]);
  }
  return wanted ? hits.filter(Boolean).length : null;
}

function searchText(box) {
  return [box.label, box.note, ...box.facts.flat()].join(" ").toLowerCase();
}

function showDetails(box) {
  const aside = document.getElementById("details");
  const facts = box.facts.flatMap(([key, value]) => [html("dt", {}, key), html("dd", {}, value)]);
  aside.replaceChildren(html("h2", {}, box.label), html("dl", {}, ...facts));
  if (box.choices) aside.append(tableOf(box.choices));
  aside.hidden = false;
}

class Camera {
  constructor(canvas, content, drawing) {
    Object.assign(this, { canvas, content });
    const { width, height } = canvas.getBoundingClientRect();
    this.scale = Math.min(1, Math.max(0.35, (width - 40) / drawing.width));
    this.x = Math.max(20, (width - drawing.width * this.scale) / 2);
    this.y = Math.max(20, (height - drawing.height * this.scale) / 2);
    this.y = drawing.height * this.scale > height ? 20 : this.y;
    canvas.addEventListener("wheel", (event) => this.zoom(event), { passive: false });
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) this.move(event.movementX, event.movementY);
    });
    this.update();
  }
  move(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.update();
  }
  zoom(event) {
    event.preventDefault();
    const corner = this.canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - corner.left, event.clientY - corner.top];
    const factor = Math.exp(-event.deltaY * 0.0015);
    const scale = Math.min(4, Math.max(0.02, this.scale * factor));
    this.x = px - ((px - this.x) * scale) / this.scale;
    this.y = py - ((py - this.y) * scale) / this.scale;
    this.scale = scale;
    this.update();
  }
  lookAt(box) {
    const { width, height } = this.canvas.getBoundingClientRect();
    this.scale = Math.max(this.scale, 0.8);
    this.x = width / 2 - (box.x + box.width / 2) * this.scale;
    this.y = height / 2 - (box.y + box.height / 2) * this.scale;
    this.update();
  }
  update() {
    this.content.setAttribute("transform", `translate(${this.x},${this.y}) scale(${this.scale})`);
  }
}
