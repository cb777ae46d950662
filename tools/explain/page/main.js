// Tabs and the search field; a view draws itself when it is opened.

const page = JSON.parse(document.getElementById("data").textContent);
const draw = { graph: drawGraph, timeline: drawTimeline, memory: drawMemory };
const field = document.getElementById("search");
let search = () => null;

function open(index) {
  const view = page.views[index];
  const stage = document.getElementById("stage");
  stage.replaceChildren();
  document.getElementById("details").hidden = true;
  document.getElementById("summary").textContent = view.summary;
  const legend = Object.values(view.legend ?? {}).map((words, number) => {
    const key = html("span", {}, words);
    key.style.setProperty("--key", colourOf(number));
    return key;
  });
  document.getElementById("legend").replaceChildren(...legend);
  [...tabs.children].forEach((tab, i) => tab.setAttribute("aria-selected", i === index));
  search = draw[view.kind](view, stage);
  look();
}

function look() {
  const count = search(field.value);
  document.getElementById("found").textContent = count === null ? "" : `${count} found`;
}

const tabs = document.getElementById("tabs");
page.views.forEach((view, index) => {
  const tab = html("button", { role: "tab", onclick: () => { location.hash = index; } }, view.title);
  tabs.append(tab);
});
const fromAddress = () => Math.min(Number(location.hash.slice(1)) || 0, page.views.length - 1);
addEventListener("hashchange", () => open(fromAddress()));
addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  }
});
field.addEventListener("input", look);
open(fromAddress());
