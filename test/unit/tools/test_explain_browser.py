"""The page of `braid explain` in headless Chromium: what can be clicked, typed and linked to."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from braid.dialects.braid.names import names_of
from braid.frontends.mlir import parse_mlir
from braid.passes.infrastructure.context import make_context
from braid.tools.explain.document import page_data
from braid.tools.explain.model_page import ModelPage, Questions, explain_model
from braid.tools.explain.render import render
from braid.tools.explain.views import Bar, TimelineView

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="needs Debian's chromium and chromium-driver"
    ),
]
AXE = Path(__file__).parents[3] / "tools/explain/page/node_modules/axe-core/axe.min.js"
LAYERS = 12
SIZES = [(1280, 800), (400, 800)]


def model() -> str:
    """Return a stack of equal layers, named as such, after a convolution."""
    t, k = "tensor<1x8x16x16xf32>", "tensor<8x8x3x3xf32>"
    lines, last = list[str](), "%x"
    for n in range(LAYERS):
        for op, operands, types in (
            ("mul", f"{last}, {last}", f"({t}, {t})"),
            ("conv", f"%mul{n}, %k", f"({t}, {k})"),
            ("tanh", f"%conv{n}", f"({t})"),
        ):
            extra = (
                "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, "
                "pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, groups = 1 : i64, "
                if op == "conv"
                else ""
            )
            name = f'{{{extra}braid.name = "stack/layer.{n}/{op}"}}'
            lines.append(f"%{op}{n} = braid.{op} {operands} {name} : {types} -> {t}")
        last = f"%tanh{n}"
    head = f'%h = braid.exp {last} {{braid.name = "head"}} : ({t}) -> {t}'
    body = "\n  ".join([*lines, head, f"func.return %h : {t}"])
    return f"func.func @main(%x: {t}, %k: {k}) -> {t} {{\n  {body}\n}}"


@pytest.fixture(scope="module")
def explained() -> ModelPage:
    context = make_context()

    def read() -> Any:
        return parse_mlir(context, model(), "model.mlir").module

    assert any(names_of(op) for op in read().walk())
    return explain_model(context, read, "model.mlir", Questions())


@pytest.fixture(scope="module")
def page(explained: ModelPage, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(render(explained.data), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    # Nothing can be reached: the page needs no network.
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield found
    finally:
        found.quit()


class Browser:
    """The page in a browser, and what people do with it."""

    def __init__(self, driver: Any, page: str) -> None:
        self.driver, self.page = driver, page

    def open(
        self, fragment: str = "", size: tuple[int, int] = SIZES[0], dark: bool = False
    ) -> None:
        width, height = size
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        self.driver.get(f"{self.page}#{fragment}")
        self.wait(lambda: self.all("body[data-ready]"))

    def wait(self, holds: Any) -> Any:
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        # What is found may be drawn anew before it is looked at.
        redrawn = (StaleElementReferenceException,)
        waiting = WebDriverWait(self.driver, 60, ignored_exceptions=redrawn)
        return waiting.until(lambda _: holds())

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> Any:
        return self.wait(lambda: next((e for e in self.all(selector) if e.is_displayed()), None))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def names(self) -> list[str]:
        return [each.text for each in self.all(".row .open b")]

    def keys(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def fragment(self) -> str:
        return self.run("return decodeURIComponent(location.hash)")

    def click_box(self, label: str) -> None:
        box = self.wait(lambda: self.all(f'.box[aria-label*="{label}"]'))[0]
        self.run("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", box)

    def boxes(self) -> list[str]:
        labels = "return [...document.querySelectorAll('.box')].map(b => b.ariaLabel)"
        return self.run(labels)


@pytest.fixture
def browser(driver: Any, page: str) -> Iterator[Browser]:
    found = Browser(driver, page)
    found.open()
    yield found
    said = [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert not said


def test_kernels_are_sorted_by_what_is_clicked(browser: Browser, explained: ModelPage) -> None:
    kernels = list(explained.data["kernels"])
    by_time = [each["name"] for each in sorted(kernels, key=lambda k: -k["time"])]
    assert browser.names()[0] == by_time[0] and len(browser.names()) == len(kernels)
    browser.one('th[aria-sort="descending"] button').click()
    assert browser.all('th[aria-sort="ascending"]')
    least = min(kernel["time"] for kernel in kernels)
    assert browser.names()[0] in [k["name"] for k in kernels if k["time"] == least]
    next(b for b in browser.all("thead button") if b.text.startswith("Wasted")).click()
    most = max(kernel["wasted"] for kernel in kernels)
    assert browser.names()[0] in [k["name"] for k in kernels if k["wasted"] == most]


def test_filter_by_words_and_by_kind(browser: Browser, explained: ModelPage) -> None:
    browser.keys("/")
    browser.keys("layer.3", " ", "tanh")
    every = len(explained.kernels)
    browser.wait(lambda: 0 < len(browser.names()) < every)
    found = browser.names()
    assert all("layer.3" in name and "tanh" in name for name in found)
    assert browser.one(".said").text.startswith(f"{len(found)} of {every} ")
    browser.one(".legend button").click()
    kind, count = browser.one(".legend button").text.split(" × ")
    # Of other kinds are those whose names say it.
    browser.wait(lambda: len(browser.names()) >= int(count))
    assert browser.one(".tools input").get_property("value") == kind


def test_a_row_opens_has_a_link_and_the_link_opens_it(browser: Browser) -> None:
    browser.one(".row .open").click()
    assert browser.one(".details .plain caption").text == "What was weighed"
    fragment = browser.fragment()
    assert fragment.startswith("#kernels/") and "layer" in fragment
    pane = browser.one(".history select")
    options = [each.text for each in pane.find_elements("css selector", "option")]
    assert options[0] == "as read" and "apply-layouts" in options
    browser.one(".history button").click()  # earlier
    assert browser.one(".pane:last-child .title").text == f"after {options[-2]}"
    assert browser.all(".pane .changed")
    browser.open(browser.run("return location.hash.slice(1)"))
    assert browser.one(".details") and browser.fragment() == fragment


def test_the_keyboard_reaches_rows_and_tabs(browser: Browser) -> None:
    browser.run("document.querySelector('.row .open').focus()")
    browser.keys("\ue015", "\ue015", "\ue007")  # down, down, Enter
    opened = browser.one(".row.is-open .open b").text
    assert opened == browser.names()[2]
    assert browser.run("return document.activeElement.innerText").startswith(opened)
    browser.run("document.getElementById('tab-kernels').focus()")
    browser.keys("\ue014")
    browser.wait(lambda: browser.fragment() == "#graph")
    assert browser.one("#view-graph")


def test_selected_rows_are_added_up_and_copied(browser: Browser, explained: ModelPage) -> None:
    browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    for box in browser.all(".row input[type=checkbox]")[:2]:
        box.click()
    assert browser.one(".said").text.startswith("2 selected: ")
    names = browser.names()[:2]
    buttons = {each.text: each for each in browser.all(".tools button")}
    buttons["Copy Markdown"].click()
    lines = browser.wait(lambda: browser.run("return window.copied")).split("\n")
    assert len(lines) == 4 and lines[1].startswith("|---|") and names[0] in lines[2]
    buttons["Copy CSV"].click()
    browser.wait(lambda: browser.run("return window.copied").startswith("kernel,"))
    lines = browser.run("return window.copied").split("\n")
    assert len(lines) == 3 and lines[1].startswith(f'"{names[0]}"')
    assert browser.one("#status").get_attribute("textContent") == "CSV copied"


def test_repeated_layers_are_one_box_that_opens(browser: Browser) -> None:
    browser.open("graph")
    browser.wait(browser.boxes)
    assert any(f"× {LAYERS}" in label and label.startswith("open") for label in browser.boxes())
    few = len(browser.boxes())
    browser.click_box(f"× {LAYERS}")
    browser.wait(lambda: len(browser.boxes()) == few + LAYERS)
    browser.click_box("open layer.7")
    browser.wait(lambda: any("layer.7/conv" in label for label in browser.boxes()))
    browser.click_box("close layer.7")
    browser.wait(lambda: len(browser.boxes()) == few + LAYERS)
    next(b for b in browser.all(".tools button") if b.text == "Close groups").click()
    browser.wait(lambda: len(browser.boxes()) == few)


def test_search_cycles_and_pins(browser: Browser) -> None:
    browser.open("graph")
    browser.wait(browser.boxes)
    browser.one("#view-graph input").send_keys("tanh")
    assert browser.one("#view-graph .said").text == f"{LAYERS} found"
    browser.keys("\ue007")
    browser.wait(lambda: browser.one("#view-graph .said").text == f"1 of {LAYERS}")
    first = browser.one("aside h2").text
    browser.keys("\ue007")
    browser.wait(lambda: browser.one("#view-graph .said").text == f"2 of {LAYERS}")
    browser.wait(lambda: browser.one("aside h2").text != first)
    browser.wait(lambda: browser.all(".box.pinned"))
    pinned = browser.one("aside h2").text
    # Pointing at another box changes nothing of what is pinned.
    box = browser.all(".box")[0]
    browser.run("arguments[0].dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))", box)
    assert browser.one("aside h2").text == pinned
    assert browser.fragment() == f"#graph/{pinned}"
    browser.one("aside .facts a").click()
    browser.wait(lambda: browser.fragment().startswith("#kernels/"))
    assert browser.one(".details")


def test_a_link_to_an_op_opens_its_groups(browser: Browser) -> None:
    browser.open("graph/stack%2Flayer.5%2Fconv")
    browser.wait(lambda: browser.all("aside h2"))
    assert browser.one("aside h2").text == "stack/layer.5/conv"
    assert browser.all(".marks line")


def test_colours_have_a_legend(browser: Browser) -> None:
    from selenium.webdriver.support.ui import Select

    browser.open("graph")
    browser.wait(browser.boxes)
    texts: dict[str, str] = {}
    for way in ("Time", "Device", "Layout"):
        Select(browser.one("#view-graph select")).select_by_visible_text(way)
        browser.wait(lambda: browser.one("#view-graph .legend").text not in texts.values())
        texts[way] = browser.one("#view-graph .legend").text
    assert "of one run" in texts["Time"] and "cpu:0" in texts["Device"]


def test_keys_move_the_graph(browser: Browser) -> None:
    browser.open("graph")
    browser.wait(browser.boxes)
    where = "return document.querySelector('svg.graph > g').getAttribute('transform')"
    browser.run("document.querySelector('svg.graph').focus()")
    seen = [browser.run(where)]
    for key in ("\ue014", "+", "f"):
        browser.keys(key)
        browser.wait(lambda: browser.run(where) != seen[-1])
        seen.append(browser.run(where))


def test_memory_tells_why_a_tensor_lives(browser: Browser, explained: ModelPage) -> None:
    browser.open("memory")
    browser.wait(lambda: browser.all("#view-memory .mark"))
    block = explained.data["memory"]["plans"][0]["blocks"][0]
    browser.run(
        "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))",
        browser.all("#view-memory .mark")[0],
    )
    assert browser.one("#view-memory .about h3").text == block["label"]
    assert block["why"] in browser.one("#view-memory .about").text
    browser.one("#view-memory input").send_keys("nothing is called so")
    browser.wait(lambda: len(browser.all(".faded")) == len(browser.all("#view-memory .mark")))


def test_the_timeline_zooms(browser: Browser) -> None:
    browser.open("timeline")
    browser.wait(lambda: browser.all("#view-timeline .mark"))
    marks = "[...document.querySelectorAll('.mark')]"
    width = f"return Math.max(...{marks}.map(m => m.width.baseVal.value))"
    before = browser.run(width)
    browser.one("#view-timeline .zoom button").click()
    browser.wait(lambda: browser.run(width) > 1.4 * before)
    browser.run("document.querySelector('#view-timeline .mark').focus()")
    assert "µs" in browser.one("#view-timeline p[aria-live]").text


def test_decisions_are_filtered(browser: Browser) -> None:
    browser.open("decisions")
    rows = len(browser.all("#view-decisions tbody tr"))
    browser.one("#view-decisions input").send_keys("select-layouts")
    browser.wait(lambda: 0 < len(browser.all("#view-decisions tbody tr")) < rows)


def test_a_page_of_one_timeline(browser: Browser, tmp_path: Path) -> None:
    view = TimelineView("Order", "", ("dma",), (Bar(0, 0.0, 1.5, "conv"),), "µs")
    file = tmp_path / "simulated.html"
    file.write_text(render(page_data("stream", timelines=(view,))))
    browser.page = file.as_uri()
    browser.open()
    assert [tab.text for tab in browser.all("[role=tab]")] == ["Timeline"]
    browser.wait(lambda: browser.all(".mark"))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_wider_than_the_screen(
    browser: Browser, size: tuple[int, int], dark: bool
) -> None:
    for view in ("kernels", "graph", "memory", "timeline", "decisions"):
        browser.open(view, size, dark)
        wide = browser.run("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, view
        folder = Path(__file__).parents[3] / "build/test/explain"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{view}-{size[0]}-{'dark' if dark else 'light'}.png"
        browser.driver.save_screenshot(str(folder / name))


@pytest.mark.skipif(not AXE.exists(), reason="needs axe-core, which `make page` installs")
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("view", ["kernels", "graph", "memory", "timeline", "decisions"])
def test_axe_finds_nothing(browser: Browser, view: str, dark: bool) -> None:
    browser.open(view, dark=dark)
    if view == "kernels":
        browser.one(".row .open").click()
    if view == "graph":
        browser.wait(browser.boxes)
        browser.click_box(f"× {LAYERS}")
        browser.wait(lambda: browser.all(".box.is-open"))
    browser.run(AXE.read_text())
    found = browser.driver.execute_async_script(
        "axe.run().then(r => arguments[0](JSON.stringify(r.violations.map("
        "v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html)]))))"
    )
    assert json.loads(found) == []


def test_five_thousand_ops(browser: Browser, tmp_path: Path, explained: ModelPage) -> None:
    from braid.tools.explain.model_graph import GraphNode, model_graph

    kernel = explained.data["kernels"][0] | {"history": []}
    count = 5000
    nodes = [
        GraphNode(f"m.{n // 20}/op{n}", "conv", "tensor<4xf32>", (f"m.{n // 20}",), (n,))
        for n in range(count)
    ]
    graph = model_graph(nodes, [(n, n + 1) for n in range(count - 1)])
    from dataclasses import asdict

    data = dict(explained.data) | {
        "graph": asdict(graph),
        "kernels": [kernel | {"id": n, "ops": [f"m.{n // 20}/op{n}"]} for n in range(count)],
    }
    file = tmp_path / "large.html"
    file.write_text(render(data))
    assert file.stat().st_size < 3_000_000
    browser.page = file.as_uri()
    browser.open("kernels")
    shown = browser.run("return performance.getEntriesByName('first table')[0].startTime")
    # Twice of what is asked for, since tests run side by side.
    assert shown < 2000
    browser.open("graph")
    browser.wait(browser.boxes)
    opening = (
        "const done = arguments[0], g = [...document.querySelectorAll('.box.group:not(.is-open)')]"
        ".at(-1), id = g.dataset.id, began = performance.now();"
        "g.dispatchEvent(new MouseEvent('click', {bubbles: true}));"
        '(function look() { if (document.querySelector(`[data-id="${id}"].is-open`))'
        " done(performance.now() - began); else setTimeout(look, 1); })();"
    )
    times = [browser.driver.execute_async_script(opening) for _ in range(3)]
    assert min(times) < 400, times
    assert len(browser.boxes()) <= 400
