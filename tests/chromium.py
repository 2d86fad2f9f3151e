"""A real browser for the tests of pages: Chromium, spoken to by the DevTools protocol.

Messages go through two pipes, each ended by a zero byte, so that nothing but Chromium
itself is needed.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
)
#: A sheet of A4 between the margins that the browser leaves, in pixels of CSS.
SHEET = 718
KEYS = {
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "End": 35,
    "Home": 36,
    "PageUp": 33,
    "PageDown": 34,
    "Tab": 9,
}
MINUTES = 2


class Browser:
    """One tab, whose events are kept in the order in which they came."""

    def __init__(self, folder):
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        # The browser reads from 3 and writes to 4, whatever is free here.
        redirect = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", redirect, "bash", *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._rest, self._last, self._session, self.events = b"", 0, None, []
        pages = self.ask("Target.getTargets")["targetInfos"]
        page = next(target for target in pages if target["type"] == "page")
        attached = self.ask(
            "Target.attachToTarget", targetId=page["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def close(self):
        os.close(self._out)
        os.close(self._in)
        self._process.terminate()
        self._process.wait()

    def ask(self, method, **parameters):
        """Result of a command of the protocol."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self):
        deadline = time.monotonic() + 60 * MINUTES
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], deadline - time.monotonic())[0]:
                raise TimeoutError(f"Chromium said nothing for {MINUTES} minutes.")
            read = os.read(self._in, 2**20)
            if not read:
                raise RuntimeError("Chromium has ended.")
            self._rest += read
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, url, *, width=1280, height=900, dark=False, media="screen"):
        """Load a page, on a screen of a width, or as it is laid out on paper."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.events.clear()
        went = self.ask("Page.navigate", url=url)
        if "errorText" in went:
            raise RuntimeError(f"{url}: {went['errorText']}")
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._next())

    def script(self, text):
        """Value of an expression of the page, or of a promise that it is."""
        answer = self.ask(
            "Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def said(self, *methods):
        """Events of these names since the page was opened."""
        return [e["params"] for e in self.events if e.get("method") in methods]

    def press(self, key, times=1):
        """Press a key on the keyboard, as a person does."""
        pressed = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        for _ in range(times):
            self.ask("Input.dispatchKeyEvent", type="rawKeyDown", **pressed)
            self.ask("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def pointer(self, kind, x, y):
        """Move, press or release the left button of the mouse at a place."""
        is_moved = kind == "mouseMoved"
        self.ask(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button="left",
            buttons=0 if kind == "mouseReleased" else 1,
            clickCount=0 if is_moved else 1,
        )

    def click(self, selector):
        """Click in the middle of what a selector names."""
        x, y, width, height = self.box(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.pointer(kind, x + width / 2, y + height / 2)

    def box(self, selector):
        """Left, top, width and height of an element that is brought into view."""
        name = json.dumps(selector)
        return self.script(
            f"(() => {{ const part = document.querySelector({name});"
            "part.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const box = part.getBoundingClientRect();"
            "return [box.x, box.y, box.width, box.height]; })()"
        )

    def picture(self):
        """The whole page as PNG."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def printed(self):
        """The page as PDF, on A4."""
        self.ask("Emulation.setEmulatedMedia", media="")
        sheet = {"paperWidth": 8.27, "paperHeight": 11.69}
        printed = self.ask("Page.printToPDF", printBackground=True, **sheet)
        return base64.b64decode(printed["data"])
