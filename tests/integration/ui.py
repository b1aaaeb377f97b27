"""idem ui in a real Chromium: a person sees what is overdue, decides about it, and sees
it gone; the pages are accessible; they say so in an outage; and a wrong token, another
site and a script in a key can do nothing.

IDEM_SCREENSHOTS names a directory to keep the pictures in.
"""

import contextlib
import functools
import errno
import http.client
import http.server
import json
import os
import re
import signal
import socket
import time
import urllib.parse

import axe
import chromium
import dynamo
from files import write
from line import Line
from patience import PATIENCE, until
from tap import Idem, equal, end_session, main, note, skip, test
import web

EVIL = '<script>document.title="taken";alert(1)</script>'
EVIL_OWNER = '"><img src=x onerror=alert(1)>'


class Site:
    """idem ui on a store, left running."""

    def __init__(self, store, *options, env=None):
        self.process = store.start("ui", "--owner", "ada@ops", *options, env=env)
        self.url = self.process.stdout.readline().decode().strip()
        if not self.url:
            error = self.process.stderr.read().decode()
            if "without libmicrohttpd" in error:
                skip("this build has no page: libmicrohttpd was not there")
            raise AssertionError(error)
        self.origin = self.url.rstrip("/")
        self.port = urllib.parse.urlsplit(self.url).port
        self.token = None
        self.inside = None
        if "--token-file" not in options:
            self.token = self.process.stdout.readline().decode().partition("token: ")[2].strip()
            self.log_in()

    def request(self, method, path, body=None, **headers):
        """(status, text) of a request that is made by hand."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            body = urllib.parse.urlencode(body)
            headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        self.headers = answer.headers
        connection.close()
        return answer.status, text

    def log_in(self):
        status, _ = self.request("POST", "/login", {"token": self.token})
        equal((status, self.headers["Set-Cookie"]), (303, None))
        self.inside = self.headers["Location"]
        assert re.fullmatch(r"/[0-9a-f]{32}/", self.inside) and self.token not in self.inside, self.inside

    @property
    def home(self):
        """The address of what the token opens."""
        return self.origin + self.inside

    def ask(self, method, path, *more, **headers):
        """request() by the person who is inside."""
        return self.request(method, self.inside + path.removeprefix("/"), *more, **headers)


@contextlib.contextmanager
def site(store, *options, env=None):
    s = Site(store, *options, env=env)
    try:
        yield s
        s.process.send_signal(signal.SIGTERM)
        equal((s.process.wait(PATIENCE), s.process.stderr.read()), (0, b""))
    finally:
        end_session(s.process)


def filled():
    store = Idem()

    def begin(key, *options):
        done = store("begin", "-k", key, *options)
        equal(done.status, 0)
        return done.stdout

    begin("order-42", "-s", "eu", "--expect", "1ms", "--lease", "2s", "--owner", "web-1/77")
    begin(EVIL, "--expect", "1ms", "--lease", "1h", "--owner", EVIL_OWNER)
    begin("order-45", "--lease", "1h")
    equal(store("fail", "--token", "-", "--reason", "<b>refused</b>", input=begin("order-43", "--lease", "1h")).status, 0)
    equal(store("unknown", "--token", "-", "--reason", "no answer", input=begin("order-44", "--lease", "1h")).status, 0)
    time.sleep(2.2)
    return store


def place():
    """How a page names its store and host."""
    return f"sqlite:{os.path.realpath('idem.db')} on {socket.gethostname()}"


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


in_browser = functools.partial(test, given=chromium.browser)


def log_in(page, s):
    page.open(s.url)
    page.type("input[name=token]", s.token)
    page.enter()
    equal((page.text("h1"), page.eval("location.pathname")), ("All that is open", s.inside))


def quiet(page, s):
    """Nothing came from elsewhere, and nothing was refused."""
    away = [url for url in page.requests if not url.startswith((s.url, "data:", "about:"))]
    equal(away, [])


# ---- The session of an operator ----


@in_browser
def a_stuck_operation_is_found_and_put_right(page):
    """Without JavaScript: log in, find what is late, read its history, decide, and see
    it gone; the audit log has who and why."""
    store = filled()
    with site(store) as s:
        page.call("Emulation.setScriptExecutionDisabled", value=True)
        page.open(s.url)
        keep(page, "1-login")
        assert "order-42" not in page.text()
        log_in(page, s)
        keep(page, "2-open")
        equal(page.texts(".card b"), ["2", "1", "1", "0", "5", "0"])

        page.click("a[href='./?show=overdue']")
        equal(sorted(page.texts("tbody th a")), sorted([EVIL, "order-42"]))
        page.click("a[href*='6f726465722d3432']")  # order-42
        equal(page.text("h1"), "order-42")
        history = page.texts("ol.history li")
        assert history[0].startswith("First asked for") and "web-1/77" in history[1], history
        assert history[-1] == "It has not ended.", history
        keep(page, "3-record")

        page.click("input[value=complete]", load=False)
        page.type("textarea", "receipt 1001")
        page.type("input[name=reason]", "it is on the statement <b>")
        keep(page, "4-decide")
        page.click("button")
        equal(page.text(".said"), "On record: it happened; later callers get this result.")
        assert page.texts("ol.history li")[-1].startswith("On record as: completed")
        keep(page, "5-decided")
        page.click("header a")
        equal(page.texts(".card b"), ["1", "1", "1", "0", "4", "0"])
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
        equal(sorted(page.texts("tbody th a")), ["order-42", "order-43", "order-44", "order-45"])
        page.open(s.home)
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
        told = [each.partition("\n")[0].partition(":")[0] for each in page.texts("ol.history li")]
        equal(told, ["First asked for", "Started", "On record until then as", "It said", "A person decided",
                     "On record until then as", "It said", "A person decided", "Started",
                     "Its lease ends", "It is at work."])
        times = page.eval("[...document.querySelectorAll('ol.history time')].map(e => e.dateTime)")
        equal(times, sorted(times))
        keep(page, "7-too-late")
        page.open(s.home + "record?s=&k=" + b"none".hex())
        equal(page.text("h1"), "Record not found")
        quiet(page, s)


# ---- What a person reads ----


def many(store):
    """One record of each kind, besides filled()."""
    equal(store("run", "-k", "backup", "--", "sh", "-c", "echo full; exit 3").status, 3)
    equal(store("run", "-k", "deploy", "--outcome", "jobs", "--", "sh", "-c", "exit 1").status, 1)
    equal(store("run", "-k", "done", "--", "true").status, 0)
    equal(store("begin", "-k", "live", "--lease", "1h", "--owner", "ann@web-1", "-s", "eu").status, 0)
    return store


def link(s, key, scope=""):
    return f"{s.home}record?s={scope.encode().hex()}&k={key.encode().hex()}"


@in_browser
def everybody_can_read_and_use_it(page):
    """axe finds nothing on any page, light and wide, or dark on a telephone, where
    nothing has to be scrolled sideways; it would find grey on grey."""
    store = many(filled())
    rules = 0
    with site(store) as s:
        page.open(s.url)
        equal(axe.look(page)[0], [])
        log_in(page, s)
        pages = [s.home, s.home + "?show=unknown", s.home + "?show=outcomes", s.home + "search?k=order&s=",
                 s.home + "search?k=no-such", s.home + "none", link(s, "live", "eu"), link(s, "order-44"),
                 link(s, "order-43"), link(s, "backup"), link(s, "deploy"), link(s, "done"), link(s, EVIL)]
        for url in pages:
            for scheme, width in (("light", 1100), ("dark", 400)):
                page.look(scheme, width)
                page.open(url)
                wrong, held = axe.look(page)
                equal((url, scheme, width, wrong), (url, scheme, width, []))
                equal((url, page.eval("document.documentElement.scrollWidth") <= width), (url, True))
                rules = max(rules, held)
        page.eval("document.querySelector('h1').style.cssText = 'color: #777; background: #999'")
        wrong, _ = axe.look(page)
        assert len(wrong) == 1 and wrong[0].startswith("color-contrast: <h1"), wrong
        quiet(page, s)
    note(f"{len(pages)} pages twice, {rules} rules")


@in_browser
def an_outage_can_be_read(page):
    """axe finds nothing on the page of an outage either, which is there after the way
    in and has the endpoint."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with site(Idem(f"dynamodb://idem-test?endpoint={endpoint}"), env=dynamo.environment()) as s:
            page.open(s.url)
            page.type("input[name=token]", s.token)
            page.enter()
            equal(page.text("h1"), "The store does not answer")
            assert endpoint in page.text("[role=alert]"), page.text()
            for scheme, width in (("light", 1100), ("dark", 400)):
                page.look(scheme, width)
                equal((scheme, axe.look(page)[0]), (scheme, []))
            equal(page.texts("a.button"), ["Try again"])


@in_browser
def it_is_used_without_a_mouse(page):
    """Tab goes through a page in the order in which it is read, and what has the
    focus can be seen; the first stop leads past the head."""
    store = many(filled())
    with site(store) as s:
        log_in(page, s)
        page.open(link(s, "live", "eu"))
        stops = []
        for _ in range(7):
            page.key("Tab")
            stops.append(page.eval("(e => e.name || e.className || e.innerText)(document.activeElement)"))
            equal((stops[-1], page.eval("getComputedStyle(document.activeElement).outlineStyle")), (stops[-1], "solid"))
        equal(stops, ["skip", "idem", "decision", "result", "reason", "force", "main"])
        unnamed = page.eval("""[...document.querySelectorAll('input:not([type=hidden]), textarea')]
            .filter(e => !e.labels.length).length""")
        equal(unnamed, 0)


@in_browser
def times_read(page):
    """A time is how long ago it was; the moment is in it for machines, and for the
    mouse that rests on it."""
    store = filled()
    with site(store) as s:
        log_in(page, s)
        times = page.eval("[...document.querySelectorAll('td time')].map(e => [e.innerText, e.title, e.dateTime])")
        assert times, "there are times"
        for text, title, machine in times:
            assert re.fullmatch(r"(\d+ (second|minute)s?|less than a second) ago", text), text
            moment = re.fullmatch(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC", title)
            assert moment and machine.startswith(f"{moment[1]}T{moment[2]}."), (title, machine)
        page.open(link(s, "order-44"))
        assert re.search(r"ago \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", page.text("ol.history li")), page.text("ol.history li")


@in_browser
def failed_outcomes_are_listed(page):
    """What was completed with a failure is a list with the exit status, and what is to
    be run again is a status of its own."""
    store = many(filled())
    equal(store("run", "-k", "late-backup", "--", "sh", "-c", "exit 4").status, 4)
    with site(store) as s:
        log_in(page, s)
        page.click("a[href='./?show=outcomes']")
        equal(page.text("h1"), "Failed outcomes")
        equal(page.texts("tbody th a"), ["late-backup", "backup"])  # The newest first.
        equal(" ".join(page.texts("tbody td[data-label=Status]")[0].split()), "completed exit 4")
        equal(page.texts("nav [aria-current=page]"), ["2\nfailed outcomes\nin 24 hours"])
        page.click("tbody th a")
        equal(page.eval("[...document.querySelectorAll('ol.history li')].pop().className"), "warn")
        page.open(s.home)
        page.click("a[href='./?show=retry']")
        equal((page.texts("tbody th a"), page.texts("tbody td[data-label=Status]")), (["deploy"], ["retry exit 1"]))
        page.click("tbody th a")
        told = [each.partition("\n")[0].partition(":")[0] for each in page.texts("ol.history li")]
        equal(told, ["First asked for", "Started", "Ended, to be run again", "The next caller runs it."])


@in_browser
def keys_are_shown_as_typed(page):
    """UTF-8 is shown as it was typed, what cannot be seen is escaped, and the escaped
    form is found by the search."""
    typed, odd = "schl\u00fcssel-\u6ce8\u6587", "a\\b-\x1b[2J-\u202e"
    shown = "escaped:a\\x5cb-\\x1b[2J-\\xe2\\x80\\xae"
    store = Idem()
    for key in (typed, odd):
        equal(store("begin", "-k", key, "--lease", "1h", "--owner", "web\u00e9").status, 0)
    with site(store) as s:
        log_in(page, s)
        equal(sorted(page.texts("tbody th a")), sorted([typed, shown]))
        equal(page.text("td[data-label=Owner]"), "web\u00e9")
        for key, as_shown in ((typed, typed), (odd, shown)):
            page.open(s.home)
            page.type("input[name=k]", as_shown)
            page.enter()
            equal((page.text("h1"), page.eval("document.title")), (as_shown, f"{as_shown} - {place()} - idem"))
            equal(page.eval("location.search.startsWith('?k=')"), True)
        page.open(s.home + "search?s=&k=" + urllib.parse.quote("no\\such \u00fc"))
        equal(page.eval("document.querySelector('#k').value"), "no\\such \u00fc")
        equal(s.ask("GET", "/search?k=escaped:%5Cxzz")[0], 400)


# ---- What a person decides ----


@in_browser
def a_live_lease_is_overridden_knowingly(page):
    """Work whose lease runs is shown as such; a decision about it is refused, unless
    the box that says whose lease it is is ticked."""
    store = many(filled())
    with site(store) as s:
        log_in(page, s)
        page.open(link(s, "live", "eu"))
        assert re.search(r"At work: its lease was renewed .* ago, 59 minutes left, owner ann@web-1", page.text(".live"))
        page.click("input[value=release]", load=False)
        page.type("#why", "the host is gone")
        page.click("button.main", load=False)
        equal(page.eval("document.activeElement.name"), "force")  # The browser asks for it.
        equal(audit(), [])
        fields = {"s": b"eu".hex(), "k": b"live".hex(), "fence": record(store, "live", "eu")["fence"],
                  "decision": "release", "reason": "the host is gone"}
        status, text = s.ask("POST", "/resolve", fields)
        equal((status, record(store, "live", "eu")["status"]), (409, "in_progress"))
        assert "Nothing was decided: the owner is at work (renewed" in text and "owner ann@web-1)" in text, text
        assert 'value="the host is gone"' in text, "it is not to be typed again"
        page.click("input[name=force]", load=False)
        keep(page, "9-live")
        page.click("button.main")
        equal(page.text(".said"), "On record: it did not happen; the next caller runs it.")
        equal([(e["answer"], e["after"]) for e in audit()], [("INVALID", "released"), ("OK", "released")])


@in_browser
def finished_work_is_reopened(page):
    """Work that ended badly is reopened with a reason: it is to be run again, and the
    audit log has the old result. Where it was reopened meanwhile nothing is done."""
    store = many(filled())
    with site(store) as s:
        log_in(page, s)
        page.open(link(s, "backup"))
        fields = {"s": "", "k": b"backup".hex(), "fence": record(store, "backup")["fence"],
                  "reason": "there is room"}
        page.type("#why-again", "there is room")
        page.click("button:not(.main)")
        assert page.text(".said").startswith("On record: it may have happened; the next caller runs it again"), page.text()
        equal(page.text("dl.facts dd .badge"), "retry")
        events = [each.partition("\n")[0] for each in page.texts("ol.history li")]
        assert "On record until then as: completed" in events, events
        assert any(each.startswith("A person reopened it: ada@ops") for each in events), events
        (event,) = audit()
        equal((event["event"], event["who"], event["why"], event["before"], event["after"], event["answer"]),
              ("reopen", "ada@ops", "there is room", "completed", "retry", "OK"))
        equal(event["record"]["exit_status"], 3)
        equal(store("run", "-k", "backup", "--", "true").status, 0)
        for wrong, want in (({}, 409), ({"reason": " "}, 409), ({"fence": ""}, 400)):
            equal((wrong, s.ask("POST", "/reopen", {**fields, **wrong})[0]), (wrong, want))
        equal(s.ask("POST", "/reopen", fields, Origin="http://evil.example")[0], 403)
        equal([s.request("POST", path, fields)[0] for path in ("/reopen", "/" + "0" * 32 + "/reopen")], [403, 403])
        equal(record(store, "backup")["status"], "completed")
        status, _ = s.ask("GET", "/record?s=" + b"eu".hex() + "&k=" + b"live".hex())
        page.open(link(s, "live", "eu"))
        equal((status, page.texts("#why-again")), (200, []))  # At work: there is nothing to reopen.


@test
def an_answer_of_http_is_decided_with_its_status():
    """The form of a record that nginx left has fields for the status and content type of an
    answer; a status that is none decides nothing. Other records have no such fields."""
    store = Idem()
    for key, owner in ("charge", "web-1/nginx"), ("job", "web-1/77"):
        token = store("begin", "-k", key, "--owner", owner).stdout
        equal(store("unknown", "--token", "-", input=token).status, 0)
    with site(store) as s:
        s.log_in()
        for key, has in ("charge", True), ("job", False):
            _, text = s.ask("GET", f"/record?s=&k={key.encode().hex()}")
            equal((key, 'name="http"' in text, 'name="type"' in text), (key, has, has))
        fields = {"s": "", "k": b"charge".hex(), "fence": record(store, "charge")["fence"],
                  "decision": "complete", "result": '{"id":7}', "reason": "it is at the bank",
                  "type": "application/json"}
        for wrong in "199", "600", "abc", "4294967497", "20 1":
            status, text = s.ask("POST", "/resolve", {**fields, "http": wrong})
            equal((wrong, status, "from 200 to 599" in text, f'value="{wrong}"' in text),
                  (wrong, 409, True, True))
        equal(record(store, "charge")["status"], "unknown")
        equal(s.ask("POST", "/resolve", {**fields, "http": "201"})[0], 200)
    shown = record(store, "charge")
    equal((shown["status"], shown["meta"], shown["content_type"]),
          ("completed", "HTTP 201\n", "application/json"))


@test
def a_result_that_is_lost_is_said_to_be():
    """The form that reopens work says where its result is kept: in the audit log, or
    nowhere, where there is none or where it is not to name keys."""
    kept, lost = "The result on record is dropped; the audit log keeps it.", "the audit log does not keep it either."
    said = "On record: it may have happened; the next caller runs it again"
    for env, keeps in (({}, True), ({"IDEM_AUDIT_LOG": "off"}, False), ({"IDEM_LOG_KEYS": "hashed"}, False)):
        store = Idem()
        equal(store("run", "-k", "backup", "--", "sh", "-c", "echo full; exit 3").status, 3)
        with contextlib.suppress(FileNotFoundError):
            os.unlink("audit.log")
        with site(store, env=env) as s:
            _, text = s.ask("GET", "/record?s=&k=" + b"backup".hex())
            equal((env, kept in text, lost in text), (env, keeps, not keeps))
            fields = {"s": "", "k": b"backup".hex(), "fence": record(store, "backup")["fence"], "reason": "there is room"}
            status, text = s.ask("POST", "/reopen", fields)
            equal((env, status, said in text, "audit log" in text), (env, 200, True, False))
        equal((env, ["record" in e for e in audit()]), (env, [] if env.get("IDEM_AUDIT_LOG") else [keeps]))


@test
def an_outage_is_explained():
    """Where the store takes requests and answers nothing, each page gives up after three
    seconds, names the endpoint and says what to do; of a decision, whether it is on
    record."""
    with dynamo.server("dynoxide") as url:
        line = Line(url)
        store = Idem(f"dynamodb://idem-test?endpoint={line.url}")
        env = dynamo.environment()
        for made in (("store", "create"), ("begin", "-k", "order-44", "--lease", "1h")):
            equal(store(*made, env=env).status, 0)
        with site(store, env=env) as s:
            fields = {"s": "", "k": b"order-44".hex(), "fence": 1, "decision": "release", "reason": "x",
                      "force": "yes"}
            line.dead = True
            asked = [("GET", path, None) for path in
                     ("/", "/?show=outcomes", "/search?k=a&s=", "/record?s=&k=61")]
            asked += [("POST", "/resolve", fields), ("POST", "/reopen", fields)]
            for method, path, body in asked:
                status, text = s.ask(method, path, body)
                # After a while most are refused at once.
                told = re.search(r"(timed out after 3\.\d s waiting for DynamoDB|DynamoDB) \((.*?)/\)", text)
                equal((path, status, told and told[2]), (path, 503, line.url))
                for each in ("The store does not answer", "idem doctor", "idem reconcile", "Try again"):
                    assert each in text, (path, each, text)
                equal((path, "Nothing was decided" in text), (path, method == "POST"))
            assert "\nidem_up 0\n" in s.request("GET", "/metrics", Authorization=f"Bearer {s.token}")[1]
            line.dead = False
            until(lambda: s.ask("GET", "/")[0] == 200, "the store is asked again")


# ---- What must do nothing ----


@in_browser
def a_script_in_a_key_is_text(page):
    """With JavaScript on, markup in a key, an owner and an error is shown as text."""
    store = filled()
    with site(store) as s:
        log_in(page, s)
        equal(page.eval("document.scripts.length"), 0)
        page.click("a[href*='" + EVIL.encode().hex() + "']")
        equal((page.text("h1"), page.eval("document.title")), (EVIL, f"{EVIL} - {place()} - idem"))
        assert EVIL_OWNER in page.text()
        equal(page.eval("document.scripts.length + document.images.length"), 0)
        keep(page, "8-script")
        page.open(s.home + "search?k=" + urllib.parse.quote(EVIL_OWNER + EVIL) + "&s=" + urllib.parse.quote(EVIL))
        equal(page.eval("document.scripts.length + document.images.length"), 0)
        equal(page.eval("document.querySelector('input[name=k]').value"), EVIL_OWNER + EVIL)
        page.open(s.home + "record?s=&k=" + b"order-43".hex())
        assert "<b>refused</b>" in page.text()
        quiet(page, s)
        # The control: the policy would stop a script that had come through.
        page.call("Runtime.evaluate", expression="""(() => { const e = document.createElement('script');
            e.textContent = 'document.title = "taken"'; document.body.append(e); })()""")
        assert page.eval("document.title") != "taken"
        assert any("Content Security Policy" in c for c in page.complaints), page.complaints


@contextlib.contextmanager
def other_site(s, host, action, fields):
    """A page of somebody else's that posts a decision as soon as it is seen."""
    inputs = "".join(f'<input name="{n}" value="{v}">' for n, v in fields.items())
    body = (f'<body onload="document.forms[0].submit()"><form method="post" '
            f'action="{s.origin}{action}">{inputs}</form>').encode()

    class Handler(web.Handler):
        def do_GET(self):
            self.say(200, body, [("Content-Type", "text/html")])

    with web.Server(Handler) as server:
        yield f"http://{host}:{server.server_port}/"


def decision(store, key, **more):
    fence = record(store, key)["fence"]
    return {"s": "", "k": key.encode().hex(), "fence": fence, "decision": "release", "reason": "evil", **more}


@in_browser
def another_site_can_do_nothing(page):
    """A form of another site, and of one that is the same site to a cookie, sent to a
    path that was guessed and to the one that was found out, and a frame around the
    page: nothing is decided."""
    store = filled()
    with site(store) as s:
        log_in(page, s)
        before = record(store, "order-44")
        for host in ("localhost", "127.0.0.1"):
            for action in ("/resolve", s.inside + "resolve"):
                with other_site(s, host, action, decision(store, "order-44")) as url:
                    page.open(url)
                    if page.eval("location.pathname") != action:
                        page.await_load()
                    there = "document.readyState == 'complete' && location.pathname"
                    until(lambda: page.eval(there) == action, "the form is sent")
                    equal((host, action, page.text("h1")), (host, action, "Nothing was done"))
                    equal((host, record(store, "order-44")), (host, before))
        equal(audit(), [])
        page.open("about:blank")
        page.call("Runtime.evaluate", expression=f"""document.body.innerHTML = '<iframe src="{s.home}"></iframe>'""")

        def refused():
            (frame,) = page.call("Page.getFrameTree")["frameTree"].get("childFrames", [{"frame": {}}])
            return frame["frame"] if "unreachableUrl" in frame["frame"] else None

        frame = until(refused, "the frame is refused")
        equal((frame["url"], frame["unreachableUrl"]), ("chrome-error://chromewebdata/", s.home))

        # The control: the same fields, sent from our own page, are obeyed.
        status, _ = s.ask("POST", "/resolve", decision(store, "order-44"), Origin=s.origin, Sec_Fetch_Site="same-origin")
        equal((status, record(store, "order-44")["status"], len(audit())), (200, "released", 1))


@contextlib.contextmanager
def eavesdropper(seen):
    """The page of another user of this host, at another port: keeps what it is sent, and
    plants a cookie."""

    class Handler(web.Handler):
        def do_GET(self):
            seen.append((self.path, self.headers))
            page = b"<h1>Another</h1><img src='/again'>" if self.path == "/" else b""
            self.say(200, page, [("Set-Cookie", "planted=1; Path=/"), ("Content-Type", "text/html")])

    with web.Server(Handler) as server:
        yield server.server_port


@in_browser
def another_port_gets_nothing(page):
    """Another user of the host, whose page at another port is visited by the person who
    is logged in, from our page and by its address, is sent nothing that is secret or
    that opens the page; what it plants there changes nothing."""
    store = filled()
    seen = []
    with site(store) as s, eavesdropper(seen) as port, eavesdropper(seen) as third:
        def follow(url):
            """Click on a link to @url in the page that is there."""
            page.call("Runtime.evaluate", expression=f"""document.body.innerHTML = '<a href="{url}">on</a>'""")
            page.click("a")

        log_in(page, s)
        page.open(link(s, "order-44"))
        names = [f"{host}:{p}" for p in (port, third) for host in ("127.0.0.1", "localhost")]
        for name in names:
            follow(f"http://{name}/")
            equal(page.text("h1"), "Another")
            page.open(f"http://{name}/")  # Typed, as from a bookmark.
            page.open(link(s, "order-44"))
            equal(page.text("h1"), "order-44")
        equal(sorted({h["Host"] for _, h in seen}), sorted(names))
        # The control: cookies and referrers do go to the other ports of a host.
        page.open(f"http://127.0.0.1:{port}/")
        follow(f"http://127.0.0.1:{third}/last")
        (last,) = [h for path, h in seen if path == "/last"]
        equal(("planted=1" in last["Cookie"], last["Referer"]), (True, f"http://127.0.0.1:{port}/"))
        for path, headers in seen:
            text = path + str(headers)
            assert s.token not in text and s.inside.strip("/") not in text, text
            again = {name.replace("-", "_"): value for name, value in headers.items() if name in ("Cookie", "Referer")}
            for at in ("/", path, "/record?s=&k=" + b"order-44".hex()):
                status, told = s.request("GET", at, **again)
                assert status == 403 and "order-4" not in told, (at, again, told)
        equal((record(store, "order-44")["status"], audit()), ("unknown", []))
    note(f"{len(seen)} requests to two other ports")


@test
def a_wrong_token_is_told_nothing():
    """Without the secret of a session, or with a wrong one, no path tells or changes
    anything; the token opens one, which is another after a restart."""
    store = filled()
    with site(store) as s:
        first, secret = s.inside, s.inside.strip("/")
        for inside in ("", "/", "//", "/" + "0" * 32, "/" + secret[:-1], "/" + secret + "0", "/" + secret[1:], "/" + s.token,
                       "/x/" + secret, "/" + secret + "%00"):
            for cookie in ("", f"idem_{s.port}={s.token}", f"idem_{s.port}={secret}"):
                for path in ("/", "/?show=open", "/record?s=&k=" + b"order-44".hex(), "/search?k=order-44"):
                    status, text = s.request("GET", inside + path, Cookie=cookie)
                    assert status == 403 and "order-4" not in text and secret not in text, (inside, path, text)
                status, text = s.request("POST", inside + "/resolve", decision(store, "order-44"), Cookie=cookie)
                assert status == 403 and record(store, "order-44")["status"] == "unknown"
        for token in ("wrong", "", s.token[:-1], s.token + "0", secret):
            status, text = s.request("POST", "/login", {"token": token})
            equal((status, s.headers["Location"], secret in text), (403, None, False))
        equal(audit(), [])
    with site(store) as s:
        assert s.inside != first
        equal(s.request("GET", first)[0], 403)


@test
def pages_say_where_they_are_and_what_follows():
    """A list and a record name store and host, a record has its input, each choice says what
    the next caller is told, a list comes again each minute if that is asked for, and what
    is wrong with a form is named; a stranger is told no store."""
    store = filled()
    run = store("run", "-qk", "paid", "--input", '{"sum": 7}\n<b>', "--outcome", "0=complete *=fail", "--", "false")
    equal(run.status, 1)
    with site(store) as s:
        for path in ("/", "/record?s=&k=" + b"paid".hex()):
            _, text = s.ask("GET", path)
            assert f"{place()} - idem</title>" in text and text.count(place()) == 2, text
        assert '<summary>Input, 14 bytes</summary><pre>{&quot;sum&quot;: 7}\n&lt;b&gt;</pre>' in text, text
        for follows in ("later callers get the result", "the next caller runs it", "later callers get the failure"):
            assert follows in text, follows
        assert "idem.db" not in s.request("GET", "/")[1]
        equal((s.ask("GET", "/")[0], s.headers["Refresh"]), (200, None))
        equal((s.ask("GET", "/?show=failed&again=")[0], s.headers["Refresh"]), (200, "60"))
        assert './?show=failed&amp;again=' in s.ask("GET", "/?show=failed")[1]
        good = decision(store, "order-44")
        for wrong, said in (({"decision": "explode"}, "No decision was chosen"), ({"reason": "x" * 5000}, "reason is too long"),
                            ({"result": "x" * 5000}, "result is too long"), ({"fence": "x"}, "names no attempt"),
                            ({"k": ""}, "names no attempt")):
            status, text = s.ask("POST", "/resolve", {**good, **wrong})
            equal((wrong, status, said in text), (wrong, 400, True))


@test
def metrics_are_for_a_program_with_the_token():
    """/metrics answers as idem stats --format prometheus does, to whoever sends the token."""
    store = filled()
    with site(store, "--missing", "order-*") as s:
        for given in ({}, {"Authorization": "Bearer " + "0" * 32}, {"Authorization": f"Basic {s.token}"}):
            status, text = s.request("GET", "/metrics", **given)
            equal((given, status, s.headers["WWW-Authenticate"], "idem_" in text), (given, 401, "Bearer", False))
        equal(s.request("GET", "/metrics", Authorization=f"Bearer {s.token}", Host="evil.example")[0], 403)
        status, text = s.request("GET", "/metrics", Authorization=f"Bearer {s.token}")
        equal((status, s.headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        moving = re.compile(r"^(idem_(?:look|oldest).* )[0-9.]+$", re.M)
        equal(moving.sub(r"\1", text),
              moving.sub(r"\1", store("stats", "--format", "prometheus", "--missing", "order-*").stdout.decode()))
        assert "\nidem_last_success_seconds{" in text and "\nidem_up" in text, text


@test
def odd_requests_are_refused():
    """Names that are not ours, forms that are not whole, too long or of another kind,
    and other methods change nothing, and the server goes on."""
    store = filled()
    with site(store) as s:
        for host in ("evil.example", f"evil.example:{s.port}", f"127.0.0.1.evil:{s.port}", f"[::1]:{s.port}", "", "127.0.0.1",
                     "x" * 500):
            status, text = s.ask("GET", "/", Host=host)
            assert status in (400, 403) and "order-4" not in text, (host, text)
        status, text = s.ask("GET", "/", Host=f"localhost:{s.port}")  # Which may be [::1], and somebody else.
        assert status == 403 and f"This page is at {s.url} only." in text, text
        good = decision(store, "order-44")
        for wrong, status in (
            ({"fence": ""}, 400), ({"fence": "x"}, 400),
            ({"fence": "1"}, 409), ({"decision": "explode"}, 400), ({"k": "zz"}, 400), ({"k": ""}, 400),
            ({"k": "00" * 300}, 400), ({"s": "0"}, 400), ({"reason": ""}, 409), ({"reason": "x" * 5000}, 400),
            ({"result": "x" * 5000, "decision": "complete"}, 400), ({"reason": "x" * 100_000}, 413),
        ):
            got, _ = s.ask("POST", "/resolve", {**good, **wrong})
            equal((wrong, got, record(store, "order-44")["status"]), (wrong, status, "unknown"))
        got, _ = s.ask("POST", "/resolve", good, Content_Type="application/json")
        equal(got, 415)
        for origin in ("null", "http://evil.example", f"https://127.0.0.1:{s.port}", f"http://127.0.0.1:{s.port + 1}"):
            equal((origin, s.ask("POST", "/resolve", good, Origin=origin)[0]), (origin, 403))
        for where in ("cross-site", "same-site", "none"):
            equal(s.ask("POST", "/resolve", good, Sec_Fetch_Site=where)[0], 403)
        for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
            equal((method, s.ask(method, "/")[0]), (method, 405))
        equal(s.ask("GET", "/none")[0], 404)
        for path in ("/record", "/record?s=&k=0", "/record?k=%00", "/record?s=&k=" + "ff" * 256, "/%2e%2e/x"):
            assert s.ask("GET", path)[0] in (400, 404), path
        refused = [e for e in audit() if e["answer"] == "OK"]
        equal((refused, record(store, "order-44")["status"]), ([], "unknown"))
        status, _ = s.ask("GET", "/")
        equal(status, 200)
        for name in ("Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "X-Frame-Options"):
            assert s.headers[name], name
        assert "script" not in s.headers["Content-Security-Policy"], "no script from anywhere"


FORM = "application/x-www-form-urlencoded"


def answer_to(s, *pieces):
    """The bytes of all answers to what is sent by hand, until the server ends the
    connection. The client would send on."""
    told = b""
    with socket.create_connection(("127.0.0.1", s.port), timeout=PATIENCE) as c:
        try:
            for piece in pieces:
                c.sendall(piece)
        except OSError as e:  # The server has answered and closed.
            assert e.errno in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN), e
        with contextlib.suppress(ConnectionResetError):
            while read := c.recv(1 << 16):
                told += read
    return told


def head(line, *more):
    return "\r\n".join([line + " HTTP/1.1", *more, "", ""]).encode()


@test
def a_body_is_not_waited_for():
    """A request that is refused by its head is answered while none of its body was
    sent, and the connection ends there; a form in another encoding than ours, too."""
    store = filled()
    with site(store) as s:
        us, decide = f"Host: 127.0.0.1:{s.port}", f"{s.inside}resolve"
        form, long = "Content-Type: " + FORM, "Content-Length: 50000"
        multipart = "Content-Type: multipart/form-data; boundary=XYZ"
        evil = "Origin: http://evil.example"
        for line, status, *more in (
            ("POST /login", 403, "Host: evil.example", form), ("POST /login", 403, us, form, evil),
            ("POST /login", 403, us, form, "Sec-Fetch-Site: same-site"), ("POST /login", 415, us, multipart),
            ("POST /login", 415, us), ("POST /login", 415, us, form + "-not"), ("POST /x", 403, us, multipart),
            ("POST /resolve", 403, us, form), ("POST /reopen", 403, us, form), ("PUT /", 403, us, form),
            ("GET /", 403, us, form), ("POST " + decide, 403, us, form, evil),
            ("POST " + decide, 415, us, multipart), ("PUT " + decide, 405, us, form),
        ):
            for body in ((long,), (long, "Expect: 100-continue"), ("Transfer-Encoding: chunked",)):
                told = answer_to(s, head(line, *more, *body))
                equal((line, more, body, told.split(b"\r\n")[0][:12]), (line, more, body, f"HTTP/1.1 {status}".encode()))
        # The control: a form of ours is waited for.
        told = answer_to(s, head("POST /login", us, form, "Content-Length: 38", "Connection: close"),
                         b"token=", s.token.encode())
        assert told.startswith(b"HTTP/1.1 303"), told
        equal(audit(), [])


@test
def it_is_for_this_host_alone():
    """Other addresses are refused; a token may come from a file, and is not printed."""
    store = filled()
    for where in ("0.0.0.0:0", "192.0.2.1:80", "[::]:80", "example.com:80", "127.0.0.1", "127.0.0.1:x", ":80",
                  "127.0.0.1:99999", "/tmp/x"):
        equal((where, store("ui", "--listen", where).status), (where, 64))
    for token in ("short", "has spaces in it, many", "x" * 300):
        write("token", token)
        assert store("ui", "--token-file", "token").status == 64 or len(token) > 200
    write("token", "a-token_of-my-own-42\n")
    with site(store, "--token-file", "token", "--listen", "127.0.0.2:0") as s:
        assert s.url.startswith("http://127.0.0.2:"), s.url
        taken = store("ui", "--listen", f"127.0.0.2:{s.port}")
        equal((taken.status, taken.stdout), (69, b""))
        assert b"127.0.0.2" in taken.stderr and b"in use" in taken.stderr, taken
    with site(store, "--token-file", "token") as s:
        s.token = "a-token_of-my-own-42"
        s.log_in()
        equal(s.ask("GET", "/")[0], 200)


if __name__ == "__main__":
    main()
