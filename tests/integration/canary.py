"""No result, input, error text, token or credential reaches a log, a list of
processes, a message, a metric, an audit log or a core file; keys do so only where
nobody asked for hashes."""

import glob
import json
import os
import resource
import signal
import subprocess
import time

from files import read, read_bytes, write
from patience import PATIENCE, until
from tap import PROGRAM, SANITIZED, Idem, environment, equal, end_session, main, note, skip, test

RESULT = "canary-result-7f3a"
INPUT = "canary-input-91cc"
ERROR = "canary-error-5b2e"
NOTE = "canary-note-c0de"
KEY = "canary-key-44aa"
SCOPE = "canary-scope-88ff"
CREDENTIAL = "canary/secret/access/key/0123456789abcdef"
SESSION = "canary-session-token-d00d"
HIDDEN = {"result": RESULT, "input": INPUT, "error": ERROR, "note": NOTE,
          "credential": CREDENTIAL, "session": SESSION}


class Artefacts:
    """What was told, and where."""

    def __init__(self):
        self.seen = []

    def add(self, where, data):
        self.seen.append((where, data))

    def done(self, done):
        self.add(done[0], done[1].stdout + done[1].stderr)
        return done[1]

    def bytes(self):
        return sum(len(data) for _, data in self.seen)

    def holding(self, word):
        return [where for where, data in self.seen if word.encode() in data]


def work(store):
    """Records of every kind with canaries in all that is secret; their tokens."""
    write("input", INPUT)
    write("work.sh", f"cat >/dev/null; echo {RESULT}; sleep 0.2")
    done = store("run", "-k", "done", "--input", "@input", "--", "sh", "work.sh")
    equal(done.stdout, RESULT.encode() + b"\n")
    tokens = []
    for key, verb, option, text in (
        (KEY, None, None, None),
        ("failed", "fail", "--reason", ERROR),
        ("unknown", "unknown", "--reason", NOTE),
    ):
        begun = store("begin", "-k", key, "-s", SCOPE, "--expect", "1ms", "--lease", "1h",
                      "--input", "@input", "--owner", "worker/7")
        token = begun.stdout.decode().strip()
        tokens.append(token)
        if verb:
            equal(store(verb, "--token", "-", option, text, input=token.encode()).status, 0)
    time.sleep(0.05)
    return tokens


def tell_all(store, env, told):
    """Every command that tells somebody else's program something."""
    for args in (
        ("watch", "--once", "--hook", "cat >>hook"),
        ("watch", "--once", "--json"),
        ("stats",),
        ("stats", "--json"),
        ("stats", "--format", "prometheus", "--output", "metrics.prom"),
        ("stats", "--format", "emf"),
        ("list",),
        ("doctor",),
        ("store", "check"),
        ("store", "info"),
        ("reconcile", "--list"),
        ("purge"),
        ("run", "-k", "done", "--fingerprint", "other", "--", "echo", "x"),
        ("begin", "-k", KEY, "-s", SCOPE),
        ("begin", "-k", "failed", "-s", SCOPE, "--fingerprint", "none"),
        ("resolve", "--overdue", "--release", "--reason", "died"),
        ("resolve", "--overdue", "--release", "--reason", "died", "--yes"),
        ("complete", "--token", "idem1.AAAA"),
        ("complete", "--token", "-", "--result", "@input"),
    ):
        told.done((" ".join(args), store(*args, env=env, input=b"idem1.no-token")))
    for name in ("hook", "metrics.prom", "audit.log", "meter"):
        told.add(name, read_bytes(name))


@test
def nothing_secret_is_told():
    """Canaries in results, inputs, error texts, notes, tokens and credentials are in
    nothing that is told; the ones that may be read are found where they are read."""
    store = Idem()
    env = {"IDEM_METER": "meter", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
           "AWS_SECRET_ACCESS_KEY": CREDENTIAL, "AWS_SESSION_TOKEN": SESSION}
    tokens = work(store)
    told = Artefacts()
    tell_all(store, env, told)
    told.done(("away", store("stats", "--store", "dynamodb://none?region=eu-west-1&endpoint="
                             "http://127.0.0.1:1", env=env, timeout=60)))
    allowed = {"error": ["begin -k failed -s " + SCOPE + " --fingerprint none"]}
    for name, word in [*HIDDEN.items(), *((f"token {i}", t) for i, t in enumerate(tokens))]:
        assert set(told.holding(word)) <= set(allowed.get(name, [])), (name, told.holding(word))
    assert told.holding(KEY) and told.holding("worker/7")
    note(f"{len(told.seen)} artefacts, {told.bytes()} bytes, {len(HIDDEN) + len(tokens)} canaries: none told")

    # The control: the search finds what is read on purpose.
    told.done(("show", store("show", "done", "--output")))
    equal(told.holding(RESULT), ["show"])


@test
def hashed_keys_are_not_told():
    """With IDEM_LOG_KEYS=hashed neither key nor scope is in a log, hook or audit."""
    store = Idem()
    work(store)
    env = {"IDEM_LOG_KEYS": "hashed"}
    told = Artefacts()
    for args in (
        ("watch", "--once", "--json", "--hook", 'cat >>hook; echo "$1" >>hook'),
        ("stats", "--format", "prometheus", "--output", "metrics.prom"),
        ("resolve", KEY, "-s", SCOPE, "--force", "--release", "--reason", "died"),
    ):
        done = store(*args, env=env)
        told.add(args[0], done.stdout if args[0] == "watch" else done.stderr)
    for name in ("hook", "metrics.prom", "audit.log"):
        told.add(name, read_bytes(name))
    equal((told.holding(KEY), told.holding(SCOPE)), ([], []))
    identity = json.loads(store("show", "--json", KEY, "-s", SCOPE).stdout)["id"]
    assert {"watch", "hook", "audit.log"} <= set(told.holding(identity)), told.holding(identity)
    # The control: other places name the key. A form that does not exist is refused.
    assert KEY.encode() in store("list").stdout
    equal(store("watch", "--once", env={"IDEM_LOG_KEYS": "rot13"}).status, 64)


def command_lines(session):
    """The command lines of all processes of @session."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            if os.getsid(int(path.split("/")[2])) == session:
                found[path] = read_bytes(path)
        except (OSError, ValueError):
            pass
    return found


@test
def nothing_secret_is_in_a_list_of_processes():
    """While a command runs, no command line of its session has a canary or a token."""
    store = Idem()
    write("input", INPUT)
    write("work.sh", 'cat >/dev/null; printf %s "$IDEM_TOKEN" >token; sleep 1000')
    process = store.start("run", "-k", "a", "--input", "@input", "--", "sh", "work.sh")
    try:
        until(lambda: os.path.exists("token") and os.path.getsize("token"))
        lines = command_lines(process.pid)
        assert any(b"work.sh" in line for line in lines.values()) and len(lines) >= 2, lines
        everything = b"\n".join(lines.values())
        for word in (INPUT.encode(), read_bytes("token")):
            assert len(word) > 5 and word not in everything, everything
        note(f"{len(lines)} processes")
    finally:
        end_session(process)


def allow_cores():
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


@test
def a_crash_leaves_no_core():
    """A runner that is aborted leaves no core file; the control, and a command that
    it runs, may leave one: its own limit is as it was."""
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        return note("no process here may leave a core file")
    if SANITIZED:
        skip("a sanitizer sees to it that there is no core, in what is run too")
    store = Idem()
    os.mkdir("idem")
    os.mkdir("plain")
    env = environment({"IDEM_STORE": store.store})
    limit = subprocess.run([PROGRAM, "run", "-k", "limit", "--", "sh", "-c", "ulimit -c"],
                           env=env, capture_output=True, preexec_fn=allow_cores).stdout
    plain = subprocess.run(["sh", "-c", "ulimit -c"], capture_output=True, preexec_fn=allow_cores).stdout
    equal(limit, plain)
    process = subprocess.Popen(
        [PROGRAM, "run", "-k", "abort", "--", "sh", "-c", f"echo {RESULT}; echo up >up; sleep 1000"],
        env=env, cwd="idem", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, preexec_fn=allow_cores)
    try:
        until(lambda: os.path.exists("idem/up"))
        os.kill(process.pid, signal.SIGABRT)
        equal(process.wait(PATIENCE), -signal.SIGABRT)
    finally:
        end_session(process)
    equal([n for n in os.listdir("idem") if "core" in n], [])
    subprocess.run(["sh", "-c", "kill -ABRT $$"], cwd="plain", preexec_fn=allow_cores)
    pattern = read("/proc/sys/kernel/core_pattern").strip()
    cores = [n for n in os.listdir("plain") if "core" in n]
    if not pattern.startswith(("|", "/")):
        equal(len(cores), 1)
    note(f"aborted runner: no core; the control: {len(cores)}")


if __name__ == "__main__":
    main()
