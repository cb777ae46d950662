"""The page of the service in headless Chromium; skipped where there is none."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import braid
from test.unit.tools.service.server import MODEL, Server, serving

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs Debian's chromium and chromium-driver"
)
_SECONDS = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("service")) as found:
        yield found


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument("--window-size=1280,900")
    options.add_argument(f"--user-data-dir={tmp_path}")
    # Nothing but the server can be reached: the page needs no network.
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield driver
    finally:
        driver.quit()


def wait(browser: Any, holds: Any) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, _SECONDS).until(holds)


def shown(browser: Any, selector: str) -> Any:
    def find(_: Any) -> Any:
        found = browser.find_elements("css selector", selector)
        return next((each for each in found if each.is_displayed()), None)

    return wait(browser, find)


def log_in(browser: Any, server: Server) -> None:
    browser.get(server.url)
    shown(browser, "#token").send_keys("wrong\n")
    wait(browser, lambda _: "token" in shown(browser, "#login .wrong").text)
    shown(browser, "#token").send_keys(f"{server.token}\n")
    shown(browser, "#submit summary")


def picture(browser: Any, name: str) -> None:
    folder = Path(__file__).parents[4] / "build" / "test" / "page"
    folder.mkdir(parents=True, exist_ok=True)
    browser.save_screenshot(str(folder / f"{name}.png"))


LATE = """
const [fetched, path] = [window.fetch, location.pathname + "tasks/"];
[window.asked, window.late] = [0, 0];
window.fetch = async (...request) => {
    const answer = await fetched(...request);
    const isTask = new URL(answer.url).pathname.startsWith(path);
    if (isTask && (await answer.clone().json()).state === "running") {
        window.asked += 1;
        await new Promise((go) => setTimeout(go, 5000));
        window.late += 1;
    }
    return answer;
};
"""
"""Answers that say that a task runs come late, after one that says that it is done."""


def test_a_task_from_its_model_to_its_explanation(browser: Any, server: Server) -> None:
    log_in(browser, server)
    picture(browser, "empty")
    shown(browser, "#submit summary").click()
    browser.find_element("id", "model").send_keys(str(MODEL))
    shown(browser, "#submit input[role=switch]").click()
    picture(browser, "new")
    shown(browser, "#submit button[type=submit]").click()
    line = shown(browser, "#line")
    assert "level 0 has" in shown(browser, "#lines").text
    picture(browser, "asks")
    line.send_keys("stop\n")
    shown(browser, "#task .state[data-state=done]")
    wait(browser, lambda _: "kernels searched" in shown(browser, "#lines").text)
    assert shown(browser, "#artifact").get_attribute("href").endswith("/artifact")
    picture(browser, "done")
    shown(browser, "#explain").click()
    browser.switch_to.window(browser.window_handles[-1])
    wait(browser, lambda _: "braid explain" in browser.title)
    shown(browser, ".row")
    picture(browser, "explain")
    # Its worker for the layout is allowed by the page's policy.
    shown(browser, "#tab-graph").click()
    shown(browser, "svg .box")
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert all("401" in entry["message"] for entry in severe), severe


def test_kernels_and_their_times(browser: Any, server: Server) -> None:
    client = server.client
    task = client.submit(MODEL, seconds=20, again=True)
    assert client.wait(task)["state"] == "done"
    failing = client.submit(MODEL, target="nowhere")
    with pytest.raises(braid.BraidError):
        client.wait(failing)
    log_in(browser, server)
    shown(browser, f".task[data-id='{task}']").click()
    rows = shown(browser, "#kernels").text
    assert "neg -> 1x4x3x3" in rows and "Library" in rows
    picture(browser, "kernels")
    shown(browser, f".task[data-id='{failing}']").click()
    assert "nowhere" in shown(browser, "#error").text
    picture(browser, "failed")
    shown(browser, "#delete").click()
    browser.switch_to.alert.accept()
    wait(browser, lambda _: not browser.find_elements("css selector", f"[data-id='{failing}']"))
    assert server.ask("GET", f"/tasks/{failing}")[0] == 404


def test_a_late_answer_is_left_out(browser: Any, server: Server) -> None:
    task = server.client.submit(MODEL, interactive=True, again=True)
    log_in(browser, server)
    shown(browser, f".task[data-id='{task}']").click()
    line = shown(browser, "#line")
    browser.execute_script(LATE)
    wait(browser, lambda _: browser.execute_script("return window.asked") > 0)
    line.send_keys("stop\n")
    shown(browser, "#task .state[data-state=done]")
    wait(browser, lambda _: browser.execute_script("return window.asked === window.late"))
    assert shown(browser, "#task .state").get_attribute("data-state") == "done"


def test_cancelling(browser: Any, server: Server) -> None:
    client = server.client
    task = client.submit(MODEL, interactive=True, again=True)
    log_in(browser, server)
    shown(browser, f".task[data-id='{task}']").click()
    shown(browser, "#order")
    shown(browser, "#cancel").click()
    shown(browser, "#task .state[data-state=cancelled]")
    assert client.task(task)["state"] == "cancelled"
    browser.set_window_size(420, 900)
    picture(browser, "narrow")
