"""What remains when a package, its process or its child is killed: one driver for the
scripts of each language."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

from box import case, contains, is_gone
from files import read
from patience import until
from procfs import children, stop
from procfs import status as status_of
from tap import LONG, PROGRAM, TOP, at_once, equal

# Before the server: it notes what it is sent, and does @do with its first verdict.
PROXY = """#!{python}
import json, os, subprocess, sys, threading
real = subprocess.Popen([{program!r}, *sys.argv[1:]], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, bufsize=0)
def there():
    for line in iter(sys.stdin.buffer.readline, b""):
        with open({flag!r} + ".sent", "ab") as f:
            f.write(line)
        real.stdin.write(line)
    real.kill()
    os._exit(0)
threading.Thread(target=there, daemon=True).start()
for line in iter(real.stdout.readline, b""):
    message = json.loads(line)
    if "verdict" in message.get("result", {{}}) and not os.path.exists({flag!r}):
        open({flag!r}, "w").close()
        {do}
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
"""

# A server that refuses the greeting, and goes on until its end of file.
REFUSER = """#!{python}
import json, os, sys
with open({pids!r}, "a") as f:
    print(os.getpid(), file=f)
for line in sys.stdin:
    error = {{"code": -32602, "message": "protocol must be 2"}}
    print(json.dumps({{"jsonrpc": "2.0", "id": json.loads(line)["id"], "error": error}}), flush=True)
"""


# What several processes do at the same time, and the window of a limit that has no end
# meanwhile.
CALLS = 17000 if LONG else 100
YEAR = 366 * 86400


def add_cases(started, scripts, before_it=()):
    """Register the cases of a package: @started(b, script, **env) is a Worker, @scripts are
    its own by name, and after those of @before_it its child ends before the process does."""

    def hangs(b, key, then, policy="hold", death="lease"):
        script = scripts["hang"]
        for word, text in ("KEY", key), ("POLICY", policy), ("DEATH", death), ("THEN", then):
            script = script.replace(word, text)
        worker = started(b, script)
        return worker, int(worker.reads())

    @case
    def two_processes_race(b):
        """Both want the same key at the same time: one effect, one result for both; the
        control without idem has two."""
        for name, effects in (("race", 1), ("control", 3)):
            workers = [started(b, scripts[name]) for _ in range(2)]
            for worker in workers:
                equal(worker.reads(), "ready")
            for worker in workers:
                worker.go()
            equal([w.ends() for w in workers], ["charged\n", "charged\n"])
            equal(b.effects(), effects)

    @case
    def a_worker_is_killed(b):
        """Under hold the next caller is told at once that it is unknown, with a lease of 60
        seconds; under rerun the lease decides, unless the work died with its process."""
        for policy, death in (("hold", "lease"), ("rerun", "lease"), ("rerun", "now")):
            key = f"{policy}-{death}"
            worker, child = hangs(b, key, "", policy, death)
            equal(b.record(key)["status"], "in_progress")
            worker.kill()
            if key == "rerun-lease":
                waits = child  # Until the lease is over.
            else:
                until(lambda child=child: is_gone(child), "the child has gone")
        started(b, scripts["after"]).ends()
        with contextlib.suppress(ProcessLookupError):  # It may have seen the death.
            os.kill(waits, signal.SIGKILL)

    @case
    def a_child_is_killed_at_work(b):
        """The next child takes the attempt over: it renews it, ends it, and sees the worker
        die as the first would have. A request over HTTP is taken over as well."""
        for key, status in ("ends", "completed"), ("dies", "unknown"):
            worker, first = hangs(b, key, scripts["kills its child"])
            worker.go()
            second = int(worker.reads())
            assert first != second
            if key == "ends":
                worker.go()
                worker.ends()
            else:
                worker.kill()
                until(lambda second=second: is_gone(second), "the child has gone")
            equal(b.record(key)["status"], status)
        equal(b.effects(), 2)
        worker = started(b, scripts["request"].replace("THEN", scripts["kills its child"]))
        int(worker.reads())
        worker.ends()
        record = b.record("request")
        equal([record[name] for name in ("status", "attempts")], ["completed", 1])

    @case
    def a_child_is_killed_in_a_begin(b):
        """It had made the claim and its answer never came, or was for somebody else: the
        next child finds it by the nonce, and the work runs once."""
        for name, do in (
            ("killed", "real.kill(); os.kill(os.getpid(), 9)"),
            ("other", "line = line.replace(message['id'].encode(), b'1' * 16)"),
        ):
            path = b.file(name)
            text = PROXY.format(python=sys.executable, flag=path + ".done", program=PROGRAM, do=do)
            b.write(name, text)
            os.chmod(path, 0o755)
            started(b, scripts["once"].replace("KEY", name), IDEM_PROGRAM=path).ends()
            sent = map(json.loads, b.read(name + ".done.sent").splitlines())
            first, second, *_ = (line["params"] for line in sent if line["method"] == "begin")
            equal(second, {**first, "again": True})

    @case
    def a_child_that_refuses_us(b):
        """Each call starts one, and none is left while the process lives."""
        path, pids = b.file("refuser"), b.file("pids")
        b.write("refuser", REFUSER.format(python=sys.executable, pids=pids))
        os.chmod(path, 0o755)
        worker = started(b, scripts["refused"], IDEM_PROGRAM=path)
        equal(worker.reads(), "refused")
        begun = [int(pid) for pid in read(pids).split()]
        equal(len(begun), 2)
        until(lambda: all(map(is_gone, begun)), "its children have gone")
        worker.go()
        worker.ends()

    @case
    def an_exit_leaves_no_process(b):
        """A script ends by itself while its store is open and idle, also with an attempt
        that is open: that is unknown then, as with an exit in the middle."""
        for key in "done", "open", "exit":
            worker = started(b, scripts["says its child"] + scripts[key])
            child = int(worker.reads())
            worker.ends()
            if key in before_it:
                assert is_gone(child), "it went on after the process"
            until(lambda child=child: is_gone(child), "the child has gone")
        equal([b.record(k)["status"] for k in ("done", "open", "exit")],
              ["completed", "unknown", "unknown"])

    @case
    def a_worker_that_does_not_read(b):
        """It stands still while long answers fill its pipe: others are served meanwhile, and
        when it goes on all of the answers are there."""
        worker = started(b, scripts["unread"])
        child = int(worker.reads())
        stop(child)
        worker.go()
        equal(worker.reads(), "asked")
        stop(worker.process.pid)
        slept, last = sleeps(child), None
        os.kill(child, signal.SIGCONT)

        def rests():
            nonlocal last
            before, last = last, sleeps(child)
            time.sleep(0.1)
            return slept != last == before

        until(rests, "the pipe is full")
        equal(b("begin", "-k", "other").status, 0)
        worker.process.send_signal(signal.SIGCONT)
        worker.ends()

    @case(slow=True)
    def heartbeats_and_a_frozen_worker(b):
        """Heartbeats renew the lease of work that takes longer. One that was stopped past
        its lease, or whose child was, or both, is told so before it has another effect, in
        each way that there is."""

        workers = {}
        for who in "worker", "child", "both":
            workers[who] = started(b, scripts["frozen"].replace("KEY", who))
            equal(workers[who].reads(), "begun")

        def frozen(who):
            worker = workers[who]
            first = b.record(who)["lease_end_ms"]
            until(lambda: b.record(who)["lease_end_ms"] > first + 2000, "it is renewed")
            worker.go()
            equal(worker.reads(), "ours")
            both = [worker.process.pid, *children(worker.process.pid)]
            still = {"worker": both[:1], "child": both[1:], "both": both}[who]
            for pid in still:
                stop(pid)
            taken = ("begin", "-k", who, "--on-expired-lease", "rerun")
            until(lambda: b(*taken).status == 0, "it is over")
            worker.go()  # To look once more, before the child goes on.
            for pid in still:
                os.kill(pid, signal.SIGCONT)
            equal(worker.ends(), scripts["told of it"])

        at_once(frozen, workers)
        equal(b.effects(), 0)


def sleeps(pid):
    return status_of(pid)["voluntary_ctxt_switches"]


def play_pages(b, language, package, play, *words):
    """Each block of @language of the package's README and docs/languages.md runs, in order;
    @play(script) is the command. The second prints @words."""
    for page in (f"clients/{package}/README.md", "docs/languages.md"):
        text = read(TOP, page)
        blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
        assert blocks, page
        argv, env = play("\n".join(blocks).replace("/var/lib/app", b.path))
        done = subprocess.run(argv, cwd=b.path, env=env, capture_output=True)
        equal((page, done.returncode, done.stderr.decode()), (page, 0, ""))
    contains(done.stdout.decode(), *words)
