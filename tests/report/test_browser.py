"""The report in a real browser: no console error, no request, a table that sorts."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from tests.report.conftest import hostile_comparison

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-dev-shm-usage"),
)
LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")


class Browser:
    """A session of chromedriver, spoken to by the WebDriver protocol."""

    def __init__(self, port, binary):
        self.root = f"http://127.0.0.1:{port}/session"
        options = {"args": list(FLAGS), "binary": binary}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        started = self.ask("", {"capabilities": {"alwaysMatch": wanted}})
        self.root += "/" + started["sessionId"]

    def ask(self, path, body=None, method="POST"):
        data = None if method == "DELETE" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.root + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def script(self, text):
        return self.ask("/execute/sync", {"script": text, "args": []})

    def log(self, kind):
        return self.ask("/se/log", {"type": kind})


@pytest.fixture(scope="module")
def browser():
    driver = shutil.which("chromedriver")
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    if driver is None or binary is None:
        pytest.skip("no Chromium with chromedriver is installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [driver, f"--port={port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        session = _connect(port, binary)
        yield session
        session.ask("", method="DELETE")
    finally:
        process.terminate()
        process.wait()


def _connect(port, binary):
    deadline = time.monotonic() + 60
    while True:
        try:
            return Browser(port, binary)
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    """A report with hostile names, open in the browser."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    hostile_comparison(20, ('"><img src=x>', "<script>alert(1)</script>")).save_report(
        path
    )
    browser.ask("/url", {"url": path.as_uri()})
    return browser


def test_console_stays_silent(opened):
    assert opened.log("browser") == []


def test_nothing_is_requested_but_the_page(opened):
    messages = [json.loads(e["message"])["message"] for e in opened.log("performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    outside = [url for url in asked if not url.startswith(("file:", "data:"))]
    assert len(asked) >= 1
    assert outside == []


def errors(browser):
    return browser.script(
        "return [...document.querySelectorAll('.sortable tbody tr')]"
        ".map(row => row.cells[1].textContent)"
    )


def test_leaderboard_sorts_both_ways_and_failures_stay_comparable(opened):
    click = "document.querySelectorAll('.sortable thead button')[1].click()"
    opened.script(click)
    rising = errors(opened)
    opened.script(click)
    falling = errors(opened)
    figures = [float(text.split()[0]) for text in rising if "FAILED" not in text]
    assert figures == sorted(figures)
    assert len(set(figures)) > 3
    assert falling == rising[::-1]


def test_sorting_is_announced(opened):
    opened.script("document.querySelectorAll('.sortable thead button')[0].click()")
    announced = opened.script(
        "return document.querySelectorAll('.sortable th[aria-sort]').length"
    )
    assert announced == 1


def test_embedded_data_can_be_read_by_a_script(opened):
    name = opened.script(
        "return JSON.parse(document.getElementById('prudent-data').textContent)"
        ".data.classes[0]"
    )
    assert name == '"><img src=x>'


def test_page_is_not_wider_than_the_window(opened):
    assert opened.script(
        "return document.documentElement.scrollWidth <= window.innerWidth"
    )
