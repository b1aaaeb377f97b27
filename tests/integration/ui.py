"""idem ui in a real Chromium: find what is overdue, decide, see it gone; and what a
wrong token, another site and a script in a key can do, which is nothing.

IDEM_SCREENSHOTS names a directory to keep the pictures in.
"""

import contextlib
import http.client
import http.server
import json
import os
import re
import signal
import threading
import time
import urllib.parse

import chromium
from patience import PATIENCE, until
from tap import Idem, add, equal, kill_session, main, note, skip, test

EVIL = '<script>document.title="taken";alert(1)</script>'
EVIL_OWNER = '"><img src=x onerror=alert(1)>'


class Site:
    """idem ui on a store, left running."""

    def __init__(self, store, *options):
        self.process = store.start("ui", "--who", "ada@ops", *options)
        self.url = self.process.stdout.readline().decode().strip()
        if not self.url:
            error = self.process.stderr.read().decode()
            if "without libmicrohttpd" in error:
                skip("this build has no page: libmicrohttpd was not there")
            raise AssertionError(error)
        self.origin = self.url.rstrip("/")
        self.port = urllib.parse.urlsplit(self.url).port
        self.token = None
        if not options:
            self.token = self.process.stdout.readline().decode().partition("token: ")[2].strip()

    def request(self, method, path, body=None, **headers):
        """(status, text) of a request that is made by hand."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            body = urllib.parse.urlencode(body)
            headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode("latin-1")
        self.headers = answer.headers
        connection.close()
        return answer.status, text

    def cookie(self, token=None):
        return f"idem_{self.port}={token or self.token}"


@contextlib.contextmanager
def site(store, *options):
    s = Site(store, *options)
    try:
        yield s
        s.process.send_signal(signal.SIGTERM)
        equal((s.process.wait(PATIENCE), s.process.stderr.read()), (0, b""))
    finally:
        kill_session(s.process)
        s.process.stdout.close()
        s.process.stderr.close()


def filled():
    store = Idem()

    def begin(key, *options):
        done = store("begin", "-k", key, *options)
        equal(done.status, 0)
        return done.stdout

    begin("order-42", "-s", "eu", "--expect", "1ms", "--lease", "2s", "--owner", "web-1/77")
    begin(EVIL, "--expect", "1ms", "--lease", "1h", "--owner", EVIL_OWNER)
    begin("order-45", "--lease", "1h")
    equal(store("fail", "--token", "-", "--error", "<b>refused</b>", input=begin("order-43", "--lease", "1h")).status, 0)
    equal(store("unknown", "--token", "-", "--note", "no answer", input=begin("order-44", "--lease", "1h")).status, 0)
    time.sleep(2.2)
    return store


def record(store, key, scope=""):
    return json.loads(store("show", "--json", key, "-s", scope).stdout)


def audit():
    with contextlib.suppress(FileNotFoundError):
        with open("audit.log", encoding="utf-8") as f:
            return [json.loads(line) for line in f]
    return []


def keep(page, name):
    where = os.environ.get("IDEM_SCREENSHOTS", ".")
    page.screenshot(os.path.join(where, name + ".png"))


def in_browser(function):
    """Register a test that gets a browser."""

    def call():
        why = chromium.missing()
        if why is not None:
            skip(why)
        with chromium.browser() as page:
            return function(page)

    call.__name__ = function.__name__
    add(f"{function.__name__}: {' '.join(function.__doc__.split())}", call)
    return function


def log_in(page, s):
    page.open(s.url)
    page.type("input[name=token]", s.token)
    page.enter()
    page.await_load()  # It goes on by itself.
    equal(page.text("h1"), "All that is open")


def quiet(page, s):
    """Nothing came from elsewhere, and nothing was refused."""
    away = [url for url in page.requests if not url.startswith((s.url, "data:", "about:"))]
    equal(away, [])


# ---- The session of an operator ----


@in_browser
def a_stuck_operation_is_found_and_put_right(page):
    """Without JavaScript: log in, find what is late, read its story, decide, and see
    it gone; the audit log has who and why."""
    store = filled()
    with site(store) as s:
        page.call("Emulation.setScriptExecutionDisabled", value=True)
        page.open(s.url)
        keep(page, "1-login")
        assert "order-42" not in page.text()
        log_in(page, s)
        keep(page, "2-open")
        equal(page.texts(".card b"), ["2", "1", "1", "5"])

        page.click("a[href='/?show=overdue']")
        equal(sorted(page.texts("td:first-child")), sorted([EVIL, "order-42"]))
        page.click("a[href*='6f726465722d3432']")  # order-42
        equal(page.text("h1"), "order-42")
        story = page.texts("ol.story li")
        assert story[0].startswith("First asked for") and "web-1/77" in story[1], story
        assert story[-1] == "Nobody has said how it ended.", story
        keep(page, "3-record")

        page.click("input[value=complete]", load=False)
        page.type("textarea", "receipt 1001")
        page.type("input[name=reason]", "it is on the statement <b>")
        keep(page, "4-decide")
        page.click("button")
        equal(page.text(".said"), "It is decided, and on record.")
        assert page.texts("ol.story li")[-1].startswith("On record as: completed")
        keep(page, "5-decided")
        page.click("header a")
        equal(page.texts(".card b"), ["1", "1", "1", "4"])
        assert "order-42" not in page.text()
        keep(page, "6-gone")
        quiet(page, s)

    equal(record(store, "order-42", "eu")["status"], "completed")
    equal(store("show", "order-42", "-s", "eu", "--output").stdout, b"receipt 1001")
    equal([(e["key"], e["who"], e["why"], e["before"], e["after"]) for e in audit()],
          [("order-42", "ada@ops", "it is on the statement <b>", "in_progress", "completed")])
    note(f"{len(page.requests)} requests, all to this site; 6 pictures")


@in_browser
def records_are_searched_and_released(page):
    """A search finds a record by scope and key, or what is open and like it; another
    decision about it is told where somebody was faster."""
    store = filled()
    with site(store) as s:
        log_in(page, s)
        page.type("input[name=k]", "order-4")
        page.enter()
        equal(sorted(page.texts("td:first-child")), ["order-42", "order-43", "order-44", "order-45"])
        page.open(s.url)
        page.type("input[name=k]", "order-44")
        page.enter()
        equal(page.text("h1"), "order-44")
        page.click("input[value=release]", load=False)
        page.type("input[name=reason]", "never sent")
        equal(store("resolve", "order-44", "--fail", "--reason", "first").status, 0)
        equal(store("resolve", "order-44", "--release", "--reason", "then").status, 0)
        equal(store("begin", "-k", "order-44", "--lease", "1h").status, 0)
        page.click("button")
        assert page.text(".said").startswith("Nothing was decided:"), page.text()
        equal(record(store, "order-44")["status"], "in_progress")
        told = [each.partition("\n")[0].partition(":")[0] for each in page.texts("ol.story li")]
        equal(told, ["First asked for", "Started", "A person decided", "A person decided", "Started",
                     "Its lease ends", "Nobody has said how it ended."])
        times = page.eval("[...document.querySelectorAll('ol.story time')].map(e => e.dateTime)")
        equal(times, sorted(times))
        keep(page, "7-too-late")
        page.open(s.url + "record?s=&k=" + b"order-45".hex())
        equal(page.texts("button"), [])  # Not late: there is nothing to decide.
        page.open(s.url + "record?s=&k=" + b"none".hex())
        equal(page.text("h1"), "There is no such record")
        quiet(page, s)


# ---- What must do nothing ----


@in_browser
def a_script_in_a_key_is_text(page):
    """With JavaScript on, markup in a key, an owner and an error is shown as text."""
    store = filled()
    with site(store) as s:
        log_in(page, s)
        equal(page.eval("document.scripts.length"), 0)
        page.click("a[href*='" + EVIL.encode().hex() + "']")
        equal((page.text("h1"), page.eval("document.title")), (EVIL, EVIL))
        assert EVIL_OWNER in page.text()
        equal(page.eval("document.scripts.length + document.images.length"), 0)
        keep(page, "8-script")
        page.open(s.url + "search?k=" + urllib.parse.quote(EVIL_OWNER + EVIL) + "&s=" + urllib.parse.quote(EVIL))
        equal(page.eval("document.scripts.length + document.images.length"), 0)
        equal(page.eval("document.querySelector('input[name=k]').value"), EVIL_OWNER + EVIL)
        page.open(s.url + "record?s=&k=" + b"order-43".hex())
        assert "<b>refused</b>" in page.text()
        quiet(page, s)
        # The control: the policy would stop a script that had come through.
        page.call("Runtime.evaluate", expression="""(() => { const e = document.createElement('script');
            e.textContent = 'document.title = "taken"'; document.body.append(e); })()""")
        assert page.eval("document.title") != "taken"
        assert any("Content Security Policy" in c for c in page.complaints), page.complaints


@contextlib.contextmanager
def other_site(s, host, fields):
    """A page of somebody else's that posts a decision as soon as it is seen."""
    inputs = "".join(f'<input name="{n}" value="{v}">' for n, v in fields.items())
    body = (f'<body onload="document.forms[0].submit()"><form method="post" '
            f'action="{s.origin}/resolve">{inputs}</form>').encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{host}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def decision(store, key, **more):
    fence = record(store, key)["fence"]
    return {"s": "", "k": key.encode().hex(), "fence": fence, "decision": "release", "reason": "evil", **more}


def seal_of(s):
    _, text = s.request("GET", "/record?s=&k=" + b"order-44".hex(), Cookie=s.cookie())
    return re.search(r'name="seal" value="(\w+)"', text)[1]


@in_browser
def another_site_can_do_nothing(page):
    """A form of another site, of one that is the same site to a cookie, with and
    without our seal, and a frame around the page: nothing is decided."""
    store = filled()
    with site(store) as s:
        log_in(page, s)
        before = record(store, "order-44")
        for host, seal in (("localhost", ""), ("127.0.0.1", ""), ("127.0.0.1", seal_of(s)), ("localhost", seal_of(s))):
            with other_site(s, host, decision(store, "order-44", seal=seal)) as url:
                page.open(url)
                if page.eval("location.pathname") != "/resolve":
                    page.await_load()
                there = "document.readyState == 'complete' && location.pathname"
                until(lambda: page.eval(there) == "/resolve", "the form is sent")
                said = page.text("h1")
                assert said in ("Nothing was done", "Who are you?"), said
                equal((host, record(store, "order-44")), (host, before))
        equal(audit(), [])
        page.open("about:blank")
        page.call("Runtime.evaluate", expression=f"""document.body.innerHTML = '<iframe src="{s.url}"></iframe>'""")

        def refused():
            (frame,) = page.call("Page.getFrameTree")["frameTree"].get("childFrames", [{"frame": {}}])
            return frame["frame"] if "unreachableUrl" in frame["frame"] else None

        frame = until(refused, "the frame is refused")
        equal((frame["url"], frame["unreachableUrl"]), ("chrome-error://chromewebdata/", s.url))

        # The control: the same fields, sent from our own page, are obeyed.
        status, _ = s.request("POST", "/resolve", decision(store, "order-44", seal=seal_of(s)),
                              Cookie=s.cookie(), Origin=s.origin, Sec_Fetch_Site="same-origin")
        equal((status, record(store, "order-44")["status"], len(audit())), (200, "released", 1))


@test
def a_wrong_token_is_told_nothing():
    """Without the token, or with a wrong one, no path tells or changes anything."""
    store = filled()
    with site(store) as s:
        seal = seal_of(s)
        for cookie in ("", s.cookie("0" * 32), s.cookie(s.token[:-1]), s.cookie(s.token + "0"),
                       f"idem={s.token}", f"idem_{s.port}="):
            for path in ("/", "/?show=open", "/record?s=&k=" + b"order-44".hex(), "/search?k=order-44"):
                status, text = s.request("GET", path, Cookie=cookie)
                assert status == 403 and "order-4" not in text and seal not in text, (cookie, path, text)
            status, text = s.request("POST", "/resolve", decision(store, "order-44", seal=seal), Cookie=cookie)
            assert status == 403 and record(store, "order-44")["status"] == "unknown"
        status, text = s.request("POST", "/login", {"token": "wrong"})
        equal((status, s.headers["Set-Cookie"]), (403, None))
        status, text = s.request("POST", "/login", {"token": s.token})
        cookie = s.headers["Set-Cookie"]
        equal(status, 200)
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie, cookie
        equal(audit(), [])


@test
def odd_requests_are_refused():
    """Names that are not ours, forms that are not whole, too long or of another kind,
    and other methods change nothing, and the server goes on."""
    store = filled()
    with site(store) as s:
        c = s.cookie()
        for host in ("evil.example", f"evil.example:{s.port}", f"127.0.0.1.evil:{s.port}", "", "127.0.0.1",
                     "x" * 500):
            status, text = s.request("GET", "/", Cookie=c, Host=host)
            assert status in (400, 403) and "order-4" not in text, (host, text)
        equal(s.request("GET", "/", Cookie=c, Host=f"localhost:{s.port}")[0], 200)
        good = decision(store, "order-44", seal=seal_of(s))
        for wrong, status in (
            ({"seal": "0" * 32}, 403), ({"seal": ""}, 403), ({"fence": ""}, 400), ({"fence": "x"}, 400),
            ({"fence": "1"}, 409), ({"decision": "explode"}, 400), ({"k": "zz"}, 400), ({"k": ""}, 400),
            ({"k": "00" * 300}, 400), ({"s": "0"}, 400), ({"reason": ""}, 409), ({"reason": "x" * 5000}, 400),
            ({"result": "x" * 5000, "decision": "complete"}, 400), ({"reason": "x" * 100_000}, 413),
        ):
            got, _ = s.request("POST", "/resolve", {**good, **wrong}, Cookie=c)
            equal((wrong, got, record(store, "order-44")["status"]), (wrong, status, "unknown"))
        got, _ = s.request("POST", "/resolve", good, Cookie=c, Content_Type="application/json")
        equal(got, 403)
        for origin in ("null", "http://evil.example", f"https://127.0.0.1:{s.port}", f"http://127.0.0.1:{s.port + 1}"):
            equal((origin, s.request("POST", "/resolve", good, Cookie=c, Origin=origin)[0]), (origin, 403))
        for where in ("cross-site", "same-site", "none"):
            equal(s.request("POST", "/resolve", good, Cookie=c, Sec_Fetch_Site=where)[0], 403)
        for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
            equal((method, s.request(method, "/", Cookie=c)[0]), (method, 405))
        equal(s.request("GET", "/none", Cookie=c)[0], 404)
        for path in ("/record", "/record?s=&k=0", "/record?k=%00", "/record?s=&k=" + "ff" * 256, "/%2e%2e/x"):
            assert s.request("GET", path, Cookie=c)[0] in (400, 404), path
        refused = [e for e in audit() if e["answer"] == "OK"]
        equal((refused, record(store, "order-44")["status"]), ([], "unknown"))
        status, _ = s.request("GET", "/", Cookie=c)
        equal(status, 200)
        for name in ("Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "X-Frame-Options"):
            assert s.headers[name], name
        assert "script" not in s.headers["Content-Security-Policy"], "no script from anywhere"


@test
def it_is_for_this_host_alone():
    """Other addresses are refused; a token may come from a file, and is not printed."""
    store = filled()
    for where in ("0.0.0.0:0", "192.0.2.1:80", "[::]:80", "example.com:80", "127.0.0.1", "127.0.0.1:x", ":80",
                  "127.0.0.1:99999", "/tmp/x"):
        equal((where, store("ui", "--listen", where).status), (where, 64))
    for token in ("short", "has spaces in it, many", "x" * 300):
        with open("token", "w", encoding="ascii") as f:
            f.write(token)
        assert store("ui", "--token-file", "token").status == 64 or len(token) > 200
    with open("token", "w", encoding="ascii") as f:
        f.write("a-token_of-my-own-42\n")
    with site(store, "--token-file", "token", "--listen", "127.0.0.2:0") as s:
        assert s.url.startswith("http://127.0.0.2:"), s.url
        taken = store("ui", "--listen", f"127.0.0.2:{s.port}")
        equal((taken.status, taken.stdout), (69, b""))
        assert b"127.0.0.2" in taken.stderr and b"in use" in taken.stderr, taken
    with site(store, "--token-file", "token") as s:
        s.token = "a-token_of-my-own-42"
        equal(s.request("GET", "/", Cookie=s.cookie())[0], 200)


if __name__ == "__main__":
    main()
