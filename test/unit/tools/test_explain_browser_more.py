"""Views of the page that some models have alone: sizes, machine code, and two compilations."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from braid.tools.cli import main
from test.unit.tools.test_explain_browser import AXE, SIZES, Browser, model, pytestmark
from test.unit.tools.test_explain_browser import driver as driver
from test.unit.tools.test_explain_more import OPEN

__all__ = ["pytestmark"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages with machine code, with sizes, and of two compilations."""
    folder = tmp_path_factory.mktemp("pages")
    fixed, opened = folder / "fixed.mlir", folder / "open.mlir"
    fixed.write_text(model())
    opened.write_text(OPEN)
    made = {name: folder / f"{name}.html" for name in ("code", "sizes", "changes")}
    assert main(["explain", str(fixed), "--assembly", "--html", str(made["code"])]) == 0
    assert main(["explain", str(opened), "--html", str(made["sizes"])]) == 0
    options = ["--b", "--target npu-small", "--html", str(made["changes"])]
    assert main(["diff", str(fixed), *options]) == 0
    return made


@pytest.fixture
def opens(driver: Any, pages: dict[str, Path]) -> Iterator[Any]:
    """Open a page at a fragment; nothing is said on the console."""
    made: list[Browser] = []

    def open_page(name: str, fragment: str = "", **how: Any) -> Browser:
        browser = Browser(driver, pages[name].as_uri())
        browser.open(fragment, **how)
        made.append(browser)
        return browser

    yield open_page
    said = [e for e in driver.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]
    assert made and not said


def test_a_kernel_shows_its_machine_code(opens: Any) -> None:
    browser = opens("code")
    browser.one(".row .open").click()
    summary = browser.one(".code summary")
    count = int(summary.text.split()[2].replace(",", ""))
    assert not browser.all(".code pre")
    summary.click()
    text = browser.one(".code pre").text
    assert count > 3 and len(text.split("\n")) >= count and "ret" in text


def test_a_slider_chooses_the_size(opens: Any) -> None:
    browser = opens("sizes", "sizes")
    said = browser.one("#view-sizes output").text
    assert "decided here" in said
    chosen = browser.one("#view-sizes .taken td").text
    assert "likely" in chosen
    browser.run("document.querySelector('#view-sizes input').focus()")
    browser.keys("\ue014")
    browser.wait(lambda: browser.one("#view-sizes output").text != said)
    assert "× that at" in browser.one("#view-sizes output").text
    assert "likely" not in browser.one("#view-sizes .taken td").text


def test_changes_are_filtered(opens: Any) -> None:
    browser = opens("changes")
    differ = len(browser.all(".moved tbody tr"))
    assert differ and "npu:0" in browser.one(".moved tbody").text
    browser.one(".tools input[type=checkbox]").click()
    every = len(browser.all(".moved tbody tr"))
    assert every >= differ
    browser.one(".tools input[type=search]").send_keys("there is no such kernel")
    browser.wait(lambda: not browser.all(".moved tbody tr"))
    assert browser.one(".said").text.startswith("0 of ")


VIEWS = [("code", "kernels"), ("sizes", "sizes"), ("changes", "changes")]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("page", "view"), VIEWS)
def test_nothing_is_wider(
    opens: Any, page: str, view: str, size: tuple[int, int], dark: bool
) -> None:
    browser = opens(page, view, size=size, dark=dark)
    assert browser.run("return document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.skipif(not AXE.exists(), reason="needs axe-core, which `make page` installs")
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("page", "view"), VIEWS)
def test_axe_finds_nothing(opens: Any, page: str, view: str, dark: bool) -> None:
    browser = opens(page, view, dark=dark)
    if page == "code":
        browser.one(".row .open").click()
        browser.one(".code summary").click()
    browser.run(AXE.read_text())
    found = browser.driver.execute_async_script(
        "axe.run().then(r => arguments[0](JSON.stringify(r.violations.map("
        "v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html)]))))"
    )
    assert json.loads(found) == []
