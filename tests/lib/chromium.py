"""A real Chromium without a window, driven through its debugging pipe.

    with chromium.browser() as page:
        page.open("http://127.0.0.1:8400/")
        page.click("a[href='/x']")
        page.text("h1")
        page.screenshot("x.png")

Clicks and keys go in as a person's would; scripts that look at a page run in a
world of their own, which the page's policy does not bind.
"""

import atexit
import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

from patience import PATIENCE
from tap import skip

# Without these Chromium keeps pages of its own ready for each window, each in a process,
# and another process for the next site.
UNSEEN = ["WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup",
          "SpareRendererForSitePerProcess"]  # fmt: skip


class Page:
    def __init__(self, process, write, read):
        self.process, self.to, self.source = process, write, read
        self.number = 0
        self.buffer = b""
        self.session = self.profile = None

    def begin(self):
        """Become the only page of a new profile. The former profile goes with its pages."""
        self.session = None
        if self.profile:
            self.call("Target.disposeBrowserContext", browserContextId=self.profile)
        self.profile = self.call("Target.createBrowserContext")["browserContextId"]
        self.loads = 0  # How many pages were loaded ...
        self.awaited = 0  # ... and how many of these a test waited for.
        self.requests = []  # The URLs that the browser asked for.
        self.complaints = []  # What it refused, and errors of pages.
        target = self.call("Target.createTarget", url="about:blank",
                           browserContextId=self.profile)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=1100, height=900, deviceScaleFactor=1, mobile=False)

    def _message(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.source], [], [], left)[0], "Chromium does not answer"
            more = os.read(self.source, 1 << 20)
            assert more, "Chromium is gone"
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        method, params = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self.loads += 1
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))

    def _wait(self, wanted, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        while True:
            message = self._message(deadline)
            if message.get("sessionId") != self.session:
                continue  # Of a page that is gone.
            self._note(message)
            if wanted(message):
                return message

    def _ask(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        return self._wait(lambda m: m.get("id") == self.number)

    def call(self, method, **params):
        answer = self._ask(method, **params)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def _begin(self):
        """Let await_load() wait for pages that load from here on."""
        self.awaited = self.loads

    def await_load(self):
        if self.loads == self.awaited:
            self._wait(lambda m: m.get("method") == "Page.loadEventFired")
        self.awaited += 1

    def open(self, url):
        self._begin()
        self.call("Page.navigate", url=url)
        self.await_load()

    def eval(self, script):
        """Return the value of @script in a world apart from the page's."""
        for _ in range(10):
            frame = self.call("Page.getFrameTree")["frameTree"]["frame"]["id"]
            world = self.call("Page.createIsolatedWorld", frameId=frame)["executionContextId"]
            answer = self._ask("Runtime.evaluate", expression=script, contextId=world, returnByValue=True,
                               awaitPromise=True)
            # A page that goes away meanwhile takes its worlds along.
            if "Cannot find context" not in answer.get("error", {}).get("message", ""):
                break
        assert "error" not in answer, answer
        assert "exceptionDetails" not in answer["result"], answer
        return answer["result"]["result"].get("value")

    def text(self, selector="body"):
        return self.eval(f"document.querySelector({json.dumps(selector)})?.innerText")

    def texts(self, selector):
        return self.eval(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText)")

    def click(self, selector, load=True):
        """Click with the mouse in the middle of the first element of @selector."""
        box = self.eval(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'}); const r = e.getClientRects()[0];"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        self._begin()
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
        if load:
            self.await_load()

    def type(self, selector, text):
        self.click(selector, load=False)
        self.call("Input.insertText", text=text)

    def enter(self):
        self._begin()
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r" if kind == "keyDown" else "",
                      windowsVirtualKeyCode=13)
        self.await_load()

    def look(self, scheme="light", width=1100):
        """Show the page to a person who prefers @scheme ("light", "dark"), @width wide."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def key(self, name):
        """Press one key, such as Tab, that loads nothing."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                      windowsVirtualKeyCode={"Tab": 9, "Space": 32, "ArrowDown": 40}[name])

    def screenshot(self, path):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as f:
            f.write(base64.b64decode(shot["data"]))


_running = []  # The page of the one browser.


def browser():
    """Give a page of a new profile, for a with block. The browser stays for the next one."""
    if shutil.which("chromium") is None:
        skip("chromium is not installed")
    if not _running or _running[0].process.poll() is not None:
        ending = contextlib.ExitStack()
        _running[:] = [ending.enter_context(started())]
        atexit.register(ending.close)
    _running[0].begin()
    return contextlib.nullcontext(_running[0])


@contextlib.contextmanager
def started():
    """Start a browser, and return it with its page."""
    ours_read, theirs_write = os.pipe()
    theirs_read, ours_write = os.pipe()

    def take_pipes():  # Chromium reads from 3 and writes to 4.
        a, b = os.dup(theirs_read), os.dup(theirs_write)
        os.dup2(a, 3)
        os.dup2(b, 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-extensions", "--disable-background-networking",
             "--no-startup-window", "--disable-features=" + ",".join(UNSEEN),
             "--remote-debugging-pipe", "--user-data-dir=" + profile],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=take_pipes, close_fds=False, start_new_session=True,
            env={**os.environ, "HOME": profile},
        )
        os.close(theirs_read)
        os.close(theirs_write)
        try:
            yield Page(process, ours_write, ours_read)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(ours_read)
            os.close(ours_write)
