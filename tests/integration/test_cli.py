"""The commands of idem, beside `idem run`: what they print and how they exit.

Whole sessions are compared with the files in golden/.
"""

import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import stat
import time

from files import write
import golden
from patience import PATIENCE
from procfs import until_it_waits
from tap import PROGRAM, Idem, Result, add, each, environment, equal, main, run, skip, test
from terminals import at_terminal

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
COMMANDS = [
    "run", "begin", "complete", "fail", "release", "retry", "unknown", "renew",
    "show", "list", "resolve", "reopen", "stats", "watch", "doctor", "ui", "reconcile", "store",
    "export", "import", "purge", "limit", "key", "gateway", "lambda",
    "consume", "serve",
]  # fmt: skip

# What differs from one run to the next, and what is put in its place.
SPAN = rb"[\d.]+(?:ms|s|m|h|d|y)(?:\d+[smhd])?"  # 2.1s, 3h20m
MASKS = [
    (rb"idem1\.[A-Za-z0-9_+/=-]+", b"TOKEN"),
    (rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", b"TIME"),
    (rb"TIME, in " + SPAN, b"TIME, in DURATION"),
    (rb"TIME, " + SPAN + rb" ago", b"TIME, DURATION ago"),
    (rb"TIME  -?" + SPAN + rb" *", b"TIME  LEFT     "),
    (rb"runs \d+ s more", b"runs DURATION more"),
    (rb"runs " + SPAN + rb" more", b"runs DURATION more"),
    (rb"renewed " + SPAN + rb" ago, " + SPAN + rb" left", b"renewed AGO, LEFT"),
    (rb'"lease_left_ms":\d+', b'"lease_left_ms":MS'),
    (rb"\b1[0-9]{12}\b", b"NUMBER"),
]


def masked(data):
    for pattern, name in MASKS:
        data = re.sub(pattern, name, data)
    return data


class Session:
    """Commands that follow each other, as they look in a terminal."""

    def __init__(self, name):
        self.idem = Idem()
        self.path = os.path.join(GOLDEN, name + ".txt")
        self.seen = b""

    def __call__(self, *args, env=None, input=None):
        env = {"IDEM_OWNER": "host/1", **(env or {})}
        result = self.idem(*args, env=env, input=input)
        shown = " ".join(shlex.quote(arg) for arg in args)
        self.seen += b"$ idem " + os.fsencode(shown) + b"\n"
        self.seen += result.stdout
        if result.stdout and not result.stdout.endswith(b"\n"):
            self.seen += b"(no newline)\n"
        for line in result.stderr.splitlines():
            self.seen += b"! " + line + b"\n"
        self.seen += b"= %d\n\n" % result.status
        return result

    def start(self, *args):
        """Begin, and answer with the token."""
        return self("begin", *args).stdout.decode().strip()

    def check(self):
        golden.check(self.path, masked(self.seen).decode())


def begin(idem, *args, env=None):
    """Begin, which must start, and answer with the token."""
    result = idem("begin", *args, env=env)
    equal((result.status, result.stderr), (0, b""))
    return result.stdout.decode().strip()


def record(idem, *args):
    """What `idem show --json` says."""
    result = idem("show", "--json", *args)
    equal(result.status, 0)
    return json.loads(result.stdout)


# ---- Goldens ---------------------------------------------------------------


@test
def complete():
    """What is completed is replayed byte for byte."""
    s = Session("complete")
    token = s.start("-k", "order-42", "--scope", "acme")
    s("begin", "-k", "order-42", "--scope", "acme")
    s("complete", "--token", token, "--result", "paid", "--exit", "3")
    s("complete", "--token", token, "--result", "paid", "--exit", "3")
    s("begin", "-k", "order-42", "--scope", "acme")
    s("show", "order-42", "--scope", "acme")
    s("show", "order-42", "--scope", "acme", "--output")
    s("complete", "--token", token, "--result", "other")
    s("show", "order-42")
    s.check()


@test
def fail():
    """What failed is refused until a person decides."""
    s = Session("fail")
    token = s.start("-k", "order-42")
    s("fail", "--token", token, "--reason", "card refused")
    s("begin", "-k", "order-42")
    s("show", "order-42")
    s("resolve", "order-42", "--release", "--reason", "new card", "--dry-run")
    s("resolve", "order-42", "--release", "--reason", "new card")
    s("show", "order-42")
    s("resolve", "order-42", "--release", "--reason", "again")
    s.start("-k", "order-42")
    s("show", "order-42")
    s("resolve", "order-42", "--fail", "--reason", "too early")
    s("resolve", "order-42", "--fail", "--reason", "too early", "--dry-run")
    s.check()


@test
def release():
    """What is released may be started again."""
    s = Session("release")
    token = s.start("-k", "order-42")
    s("release", "--token", "-", input=token.encode() + b"\0")
    s("release", "--token", "-", "--reason", "bank closed", input=token.encode() + b"\n")
    s("show", "order-42")
    again = s.start("-k", "order-42")
    s("release", "--token", token)
    s("release", "--self", env={"IDEM_TOKEN": again})
    s.check()


@test
def unknown():
    """What may have happened is held, and the way out is said."""
    s = Session("unknown")
    token = s.start("-k", "order 42", "--scope", "it's")
    s("unknown", "--token", token, "--reason", "no answer")
    s("begin", "-k", "order 42", "--scope", "it's")
    s("show", "order 42", "--scope", "it's")
    s("resolve", "order 42", "--scope", "it's", "--complete", "yes", "--exit", "0",
      "--content-type", "text/plain", "--reason", "the bank has it", "--fence", "1")
    s("resolve", "order 42", "--scope", "it's", "--complete", "yes", "--exit", "0",
      "--content-type", "text/plain", "--reason", "the bank has it")
    s("begin", "-k", "order 42", "--scope", "it's")
    s("show", "order 42", "--scope", "it's")
    s.check()


@test
def renew():
    """A lease is extended by its owner only."""
    s = Session("renew")
    token = s.start("-k", "order-42", "--lease", "5s")
    s("renew", "--token", token)
    s("renew", "--token", token, "--lease", "10m")
    s("show", "order-42")
    s("complete", "--token", token)
    s("renew", "--token", token)
    s.check()


@test
def mismatch():
    """A key that was used for another request is refused."""
    s = Session("mismatch")
    s.start("-k", "order-42", "--fingerprint", "one")
    s("begin", "-k", "order-42", "--fingerprint", "two")
    s("begin", "-k", "order-42", "--fingerprint", "two", "--json")
    s.start("-k", "order-43", "--input", "one")
    s("begin", "-k", "order-43", "--input", "two")
    s("show", "order-43")
    s.check()


@test
def listing():
    """A list has one record on a line."""
    s = Session("list")
    s.start("-k", "open")
    s("complete", "--token", s.start("-k", "done"), "--result", "x")
    s("fail", "--token", s.start("-k", "bad", "--scope", "a b"))
    s("unknown", "--token", s.start("-k", "who knows"))
    s("release", "--token", s.start("-k", "free"))
    s.start("-k", "slow", "--expect", "1ms", "--lease", "never")
    for args in [[], ["--json"], ["--scope", "a b"], ["--scope="],
                 ["--status", "failed,unknown"], ["--overdue"]]:  # fmt: skip
        result = s.idem("list", *args, env={"IDEM_OWNER": "host/1"})
        # The order of records is the store's own.
        lines = sorted(masked(result.stdout).splitlines(keepends=True))
        s.seen += f"$ idem list {' '.join(map(shlex.quote, args))} | sort\n".encode()
        s.seen += b"".join(lines) + b"\n"
    equal(len(s.idem("list", "--max", "2").stdout.splitlines()), 2)
    s.check()


@test
def purge():
    """What is past its retention is deleted, and counted."""
    s = Session("purge")
    for n in range(3):
        s.idem("complete", "--token",
               begin(s.idem, "-k", f"old-{n}", "--retention", "1s", "--lease", "never"))
    s.idem("complete", "--token", begin(s.idem, "-k", "new"))
    time.sleep(1.1)
    s("purge", "--rate", "20")
    s("purge", "--max", "1")
    s("purge", "--json")
    s("purge")
    equal(len(s.idem("list").stdout.splitlines()), 1)
    s.check()


@test
def key():
    """The identity of a key can be seen without a store."""
    s = Session("key")
    s("key", "-k", "order-42")
    s("key", "-k", "order-42", "--scope", "acme", "--json")
    s("key", "-k", "order-42", "--", "charge", "42")
    s("key", "-k", "order-42", "--fingerprint", "none", "--", "charge", "42")
    s("key", "-k", "order-42", "--fingerprint", "charge 42")
    s("key", "--key-from-args", "--fingerprint", "none", "--", "charge", "42")
    s("key", "--key-from-args", "--fingerprint", "none", "--", "charge 42")
    equal(os.listdir(), [])
    s.check()


def assert_laid_out(name, summaries, lines):
    """Its line of `idem help`, usage, examples, and options whose words are in a column."""
    head, _, usage = lines[:3]
    equal(head, f"idem {name}: {summaries[name]}")
    assert usage.startswith(f"Usage: idem {name} "), usage
    titles = [line for line in lines if re.fullmatch(r"[A-Z][^.]*:", line)]
    equal(titles[0], "Examples:")
    column = None
    for line in lines[lines.index(titles[1]) + 1 :] if titles[1:] else ():
        option = re.match(r"(?:  -\w, |      )--[\w-]+(?: \S+)?  +(?=\S)", line)
        column = option.end() if option and column is None else column
        if option or line.startswith("       "):
            equal((line, len(line) - len(line[column:].lstrip())), (line, column))


@test
def help_pages():
    """Every page of help stands in 80 columns and on one screen, and is laid out as that of
    begin, which is kept as it looks."""
    s = Session("help")
    overview = s("help").stdout.decode()
    summaries = dict(re.findall(r"^  ([\w-]+) {2,}(.*)$", overview, re.M))
    for name in COMMANDS:
        page = s.idem("help", name)
        equal(page, s.idem(name, "--help"))
        equal((page.status, page.stderr), (0, b""))
        lines = page.stdout.decode().splitlines()
        wide = [line for line in lines if len(line) > 80 or line != line.rstrip()]
        equal(wide, [])
        assert len(lines) <= 50, f"{name}: {len(lines)} lines"
        assert_laid_out(name, summaries, lines)
    equal(set(COMMANDS), set(summaries) - {"help"})
    s("help", "begin")
    s("--version")
    s("help", "no-such")
    s("bgin")
    s("xyzzy")
    s()
    equal(os.listdir(), [])
    s.check()


# ---- Usage -----------------------------------------------------------------

LONG = "x" * 256
KEY = ["begin", "-k", "a"]
RUN = ["run", "-k", "a"]
TOUCH = ["--", "touch", "ran"]
WHY = ["--release", "--reason", "r"]
TOKEN = ["--token", "idem1.x"]

# A command line, and what the sentence must hold. "{}" is a directory.
BAD_USAGE = [
    (["help", "a", "b"], "one command"),
    (["begin"], "--key KEY"),
    (["begin", "-k", LONG], "at most 255 bytes, not 256"),
    (["begin", "-k", "a", "--key-file", "f"], "once"),
    (["begin", "--key-file", "/no/such"], "No such file"),
    (["begin", "--key-file", "/dev/null"], "no key"),
    (["begin", "--key-file", "/dev/zero"], "1 to 255 bytes"),
    (["begin", "--key-file", "/"], "directory"),
    (KEY + ["--scope", LONG], "at most 255 bytes"),
    (KEY + ["--owner", LONG], "at most 255 bytes"),
    (KEY + ["--owner", ""], "must not be empty"),
    (["list", "--fields", "-"], '"-" is not a field; expected status'),
    (["show", "escaped:"], "a key of 1 to 255 bytes follows"),
    (KEY + ["--max-attempts", "4294967296"], "from 0 to 4294967295"),
    (KEY + ["--lease", "5s", "--retention", "4s"], "from 5s on"),
    (KEY + ["--wait-then-run"], "--wait"),
    (KEY + ["--input", "@/no/such"], "No such file"),
    (KEY + ["--input", "@/"], "directory"),
    (KEY + ["--input", "-", "--fingerprint", "-"], "standard input"),
    (KEY + ["--fingerprint", ""], "must not be empty"),
    (KEY + ["--fingerprint", "@"], "cannot open"),
    (KEY + ["--store", ""], "must not be empty"),
    (["complete", "--self"], "IDEM_TOKEN is not set"),
    (["complete", "--self"] + TOKEN, "--token or --self"),
    (["complete", "--token", ""], "must not be empty"),
    (["complete", "operand"] + TOKEN, "--token TOKEN"),
    (["complete", "--exit", "256"] + TOKEN, "from 0 to 255"),
    (["complete", "--content-type", LONG] + TOKEN, "at most 255 bytes"),
    (["complete", "--result", "@/no/such"] + TOKEN, "No such file"),
    (["complete", "--result", "-", "--token", "-"], "standard input"),
    (["fail"], "no attempt given"),
    (["fail", "--reason", "x" * 4097] + TOKEN, "at most 4096 bytes"),
    (["release"], "no attempt given"),
    (["release", "--reason", "x" * 4097] + TOKEN, "at most 4096 bytes"),
    (["unknown"], "no attempt given"),
    (["unknown", "operand"] + TOKEN, "--token TOKEN"),
    (["renew"], "no attempt given"),
    (["renew", "--lease", "1s"] + TOKEN, "from 2s"),
    (["show", ""], "1 to 255 bytes"),
    (["show", LONG], "1 to 255 bytes"),
    (["show", "a", "b"], "one key"),
    (["show", "a", "--key-file", "f"], "once"),
    (["show", "a", "--json", "--output"], "choose one"),
    (["list", "--status", "failed,"], "not one of"),
    (["list", "--status", ""], "must not be empty"),
    (["list", "--max", "0"], "from 1 to"),
    (["resolve", "a", "--fail", "--release", "--reason", "r"], "exactly one"),
    (["resolve", "a", "--complete", "", "--fail", "--reason", "r"], "exactly one"),
    (["resolve", "a", "--fail", "--reason", ""], "must not be empty"),
    (["resolve", "a", "--fail", "--reason", "r", "--exit", "1"], "--complete"),
    (["resolve", "a", "--fail", "--reason", "r", "--fence", "0"], "from 1 to"),
    (["resolve", "--fail", "--reason", "r"], "no key given"),
    (["resolve", "a", "--overdue"] + WHY, "leave out the key"),
    (["resolve", "--status", "completed"] + WHY, "only what is failed or unknown"),
    (["resolve", "--status", "in_progress"] + WHY, "only what is failed or unknown"),
    (["resolve", "--overdue", "--fence", "7"] + WHY, "leave out the key and --fence"),
    (["resolve", "--overdue", "--yes", "-n"] + WHY, "choose one: --yes or --dry-run"),
    (["resolve", "a", "--yes"] + WHY, "--yes and --count belong to"),
    (["resolve", "a", "--count", "1"] + WHY, "--yes and --count belong to"),
    (["resolve", "--overdue", "--force"] + WHY, "--force takes one key"),
    (["purge", "--max", "0"], "from 1 to"),
    (RUN + ["--every", "7m"] + TOUCH, "must divide a day"),
    (RUN + ["--every", "2d"] + TOUCH, "from 1m to 12h"),
    (RUN + ["--every", "fortnight"] + TOUCH, "from 1m to 12h"),
    (RUN + ["--every", "day", "--zone", "Mars/Olympus"] + TOUCH, "no such time zone"),
    (RUN + ["--every", "day", "--zone", "../etc/passwd"] + TOUCH, "not the name of a time zone"),
    (RUN + ["--every", "day", "--zone", "zone.tab"] + TOUCH, "not the name of a time zone"),
    (RUN + ["--zone", "UTC"] + TOUCH, "--zone needs --every"),
    (RUN + ["--overlap"] + TOUCH, "--overlap needs --every"),
    (["run", "-k", "k" * 250, "--every", "day"] + TOUCH, "longer than 255 bytes"),
    (RUN + ["--lock", "--outcome", "0=complete *=retry"] + TOUCH, "--lock keeps no outcome: leave out --outcome"),
    (RUN + ["--lock", "--every", "day"] + TOUCH, "--lock keeps no outcome: leave out --every"),
    (RUN + ["--lock", "--on-expired-lease", "hold"] + TOUCH, "--lock keeps no outcome: leave out --on-expired-lease"),
    (["run", "-k", "k" * 250, "--lock"] + TOUCH, "at most 249 bytes"),
    (["reconcile", "a", "--drop", "e"], "name no others"),
    (["reconcile", "--list", "--drop", "e"], "choose one"),
    (["reconcile", "--output", "e", "--drop", "e"], "choose one"),
    (["reconcile", "--list", "-n"], "--dry-run"),
    (["reconcile", "--drop", "e", "--store", "memory:"], "--store"),
    (["reconcile", "--output", ""], "must not be empty"),
    (["reconcile", "f", "--drop", "d"], "name no others"),
    (["complete", "--journal", "x"] + TOKEN, "on-failure"),
    (["release", "--journal", ""] + TOKEN, "on-failure"),
    (["key"], "--key KEY"),
    (["key", "--key-from-args"], "needs a command line"),
    (["key", "-k", "a", "--key-from-args", "--", "b"], "once"),
    (["lambda"], "AWS_LAMBDA_RUNTIME_API"),
    (["lambda", "invoke"], "EVENT.json"),
    (["lambda", "invoke", "-", "--max-time", "0"], "from 1ms to"),
    (["lambda", "invoke", "/no/such"], "No such file"),
    (["lambda", "telex"], "sources"),
]  # fmt: skip

# A whole command line, and all that is said about it, after which the help is named ...
WITH_HELP = [
    ("run --leese 5s -k a -- true", "unknown option --leese; did you mean --lease?"),
    ("run -k a ls", "put -- before the command: -- ls"),
    ("run ls", "put -- before the command: -- ls"),
    ("run", "no command given: idem run [OPTION...] -k KEY -- COMMAND [ARG...]"),
    ("run -k x --", "no command given: idem run [OPTION...] -k KEY -- COMMAND [ARG...]"),
    ("run -k ''", "--key: KEY must not be empty"),
    ("run -k a -k b", "--key is given twice"),
    ("run -k", "--key: KEY is missing"),
    ("run -k K4096 -- true", "--key: KEY has at most 255 bytes, not 4096"),
    ("run --retention 1 -k a -- true", '--retention: "1" is not a time from 1ms to 36525d, or never (500ms, 30s, 5m, 2h, 7d)'),
    ("run --retention 1w -k a -- true", '--retention: "1w" is not a time from 1ms to 36525d, or never (500ms, 30s, 5m, 2h, 7d)'),
    ("run --retention 1y -k a -- true", '--retention: "1y" is not a time from 1ms to 36525d, or never (500ms, 30s, 5m, 2h, 7d)'),
    ("run --lease 1s -k a -- true", '--lease: "1s" is not a time from 2s to 36525d, or never (500ms, 30s, 5m, 2h, 7d)'),
    ("run --lease 2d -k a -- true", "--lease 2d is longer than --retention 1d; a retention from 2d on is allowed, or never"),
    ("run --wait -5s -k a -- true", '--wait: "-5s" is not a time from 0ms to 36525d (500ms, 30s, 5m, 2h, 7d)'),
    ("run --on-expired-lease again -k a -- true", '--on-expired-lease: "again" is not one of rerun, hold'),
    ("run --max-output 100M -k a -- true", '--max-output: "100M" is not a number of bytes from 0 to 67108864 (512, 64k, 8M, 1G)'),
    ("run --outcome x -k a -- true", '--outcome: "x": expected STATUS=OUTCOME, as in 42=fail, or jobs'),
    ("run --outcome '0=complete *=retry 75=release' -k a -- true", '--outcome: "75=release": can never match: earlier entries match everything that it matches'),
    ("run --outcome '*=retry' -k a -- true", "--outcome: exit status 0 must complete: put 0=complete first"),
    ("run --outcome none=complete -k a -- true", '--outcome: "none=complete": without a status, the outcome must be unknown, retry or fail'),
    ("run --retries 3 -k a -- true", "unknown option --retries; did you mean --max-failures?"),
    ("run --timeout 3s -k a -- true", "unknown option --timeout; did you mean --max-time?"),
    ("begin --ttl 1d -k a", "unknown option --ttl; did you mean --retention?"),
    ("show --timeout 3s a", "unknown option --timeout"),
    ("run --status-fd 99 -k a -- true", "--status-fd: descriptor 99 is not open"),
    ("run --ma 1 -k a -- true", "ambiguous option --ma (--max-attempts, --max-failures, --max-time, --max-output)"),
    ("run --scope Y300 -k a -- true", "--scope: SCOPE has at most 255 bytes, not 300"),
    ("begin KEY", 'unexpected argument "KEY"; name the key with --key KEY; a command is run by: idem run -k KEY -- COMMAND'),
    ("release KEY",
     'unexpected argument "KEY"; an attempt is named by the token that idem begin printed: --token TOKEN; inside idem run: --self; a person decides about a key with: idem resolve KEY'),
    ("complete -k KEY",
     "unknown option -k; an attempt is named by the token that idem begin printed: --token TOKEN; inside idem run: --self; a person decides about a key with: idem resolve KEY"),
    ("renew KEY",
     'unexpected argument "KEY"; an attempt is named by the token that idem begin printed: --token TOKEN; inside idem run: --self; a person decides about a key with: idem resolve KEY'),
    ("complete", "no attempt given: --token TOKEN, or --self inside idem run"),
    ("resolve a --release", "no reason given: --reason TEXT, which is kept for those who ask later"),
    ("resolve a --reason x", "give exactly one of --complete, --fail and --release"),
    ("show", "no key given; see: idem list"),
    ("resolve a --complete x --reason x --exit 0 --http-status 200", "choose one: --exit or --http-status"),
    ("resolve a --complete x --reason x --http-status 99", '--http-status: "99" is not a number from 200 to 599'),
    ("resolve a --release --reason x --http-status 200", "--exit, --http-status and --content-type belong to --complete"),
    ("show 'escaped:\\n'", "escaped:: a key of 1 to 255 bytes follows, with every backslash as \\x5c and other bytes as \\xHH"),
    ("list foo", "list takes no key; see idem show"),
    ("list --status bogus", '--status: "bogus" is not one of in_progress, completed, failed, unknown, released, retry'),
    ("list --fields bogus",
     '--fields: "bogus" is not a field; expected status, exit, started, age, took, lease, attempts, owner, scope, key, created, ended, expires, fence, error'),
    ("list --since 5", '--since: "5" is not a time from 1ms to 36525d (500ms, 30s, 5m, 2h, 7d)'),
    ("purge a", "purge takes no key; see idem resolve"),
    ("limit -n a", "missing --name, --subject or --request: the limit, its subject, the request"),
    ("gateway", "no service given: --upstream URL"),
    ("gateway --upstream ftp://x --global-scope", '--upstream: "ftp://x": it must begin with http:// or https://'),
    ("gateway --upstream http://localhost:1/path --global-scope",
     '--upstream: "http://localhost:1/path": it must end after host and port: the gateway adds the path of each request'),
]  # fmt: skip

# ... or is not.
WITHOUT_HELP = [
    ("no-such", 'unknown command "no-such"; see: idem help'),
    ("list --store none.db", '--store: "none.db" is not the URL of a store; did you mean sqlite:none.db'),
    ("list --store none/x.db", '--store: "none/x.db" is not the URL of a store; did you mean sqlite:none/x.db'),
    ("list --store postgrs://u:pw@h/db", 'unknown kind of store "postgrs://u:***@h/db": use sqlite:PATH, dynamodb://TABLE, postgres://HOST/DATABASE or memory:'),
    ("list --store redis://h", 'unknown kind of store "redis://h": use sqlite:PATH, dynamodb://TABLE, postgres://HOST/DATABASE or memory:'),
    ("list --store mysql:x", 'unknown kind of store "mysql:x": use sqlite:PATH, dynamodb://TABLE, postgres://HOST/DATABASE or memory:'),
    ("list --store dynamodb:idem", "store: write dynamodb://TABLE or dynamodb://TABLE?region=REGION"),
    ("list --store dynamodb://", 'invalid table name "": use 3 to 255 of a-z A-Z 0-9 _ - .'),
    ("list --store 'sqlite:i.db?foo=1'", 'unknown option "foo=1" in the store\'s URL; a SQLite store takes group=NAME, network=yes and create=no, joined by "&"'),
    ("list --store 'dynamodb://idem?region=eu-central-1&foo=1'",
     'unknown option "foo" in the store URL; a DynamoDB store takes region, endpoint, layout, index, clock, writer, insecure and cache, and with a layout the names of its attributes: see idem-dynamodb(7)'),
    ("list --store 'dynamodb://idem?layout=powertools'",
     'unknown layout "powertools" in the store URL; the layouts are powertools-python, powertools-typescript, lock-token, idempotency-store and http-idempotency'),
    ("list --store 'dynamodb://idem?key-attr=pk'",
     "store: key-attr names an attribute of another library's table, and no layout is given: add layout=NAME to the store URL"),
    ("list --store 'dynamodb://idem?layout=lock-token&key-attr=a%20b'", 'store: key-attr="a b" is not a valid attribute name: use 1 to 64 of a-z A-Z 0-9 _ - . : #'),
    ("list --store 'dynamodb://idem?layout=powertools-python&sort-key-attr=sk'",
     "store: sort-key-attr and static-pk-value go together: the records of one function are the items with that text in the partition key"),
    ("gateway --upstream http://localhost:1 --global-scope --key-from '.['",
     '--key-from .[: not a selector, at byte 3: [ ] takes a name, as in .["a"], an index, as in .[0], or nothing, as in .[]'),
]  # fmt: skip


def usage_test(args, holds):
    def bad_usage():
        result = Idem()(*(arg.replace("{}", os.getcwd()) for arg in args), env={})
        said = result.stderr.decode()
        equal(result.status, 64)
        equal(result.stdout, b"")
        holds(said)
        equal(os.listdir(), [])

    shown = [arg if len(arg) < 40 else f"{arg[:3]}...*{len(arg)}" for arg in args]
    add(f"bad_usage: idem {' '.join(map(shlex.quote, shown))}", bad_usage)


def is_all(wanted):
    return lambda said: equal(said, wanted)


def has(wanted):
    def holds(said):
        assert wanted.replace("{}", os.getcwd()) in said, said

    return holds


for _args, _wanted in BAD_USAGE:
    usage_test(_args, has(_wanted))
for _line, _wanted in WITH_HELP + WITHOUT_HELP:
    _args = shlex.split(_line.replace("K4096", "k" * 4096).replace("Y300", "y" * 300))
    _see = f"See: idem {_args[0]} --help\n" if (_line, _wanted) in WITH_HELP else ""
    usage_test(_args, is_all(f"idem: {_wanted}\n{_see}"))


# ---- Keys and scopes -------------------------------------------------------


@test
def a_key_may_come_from_a_file():
    """Of a key file one newline is cut, and everything else is the key."""
    idem = Idem()
    for content, wanted in [
        (b"abc", b"abc"), (b"abc\n", b"abc"), (b"abc\r\n", b"abc\r"),
        (b"abc\n\n", b"abc\n"), (b" abc ", b" abc "), (b"\n\n", b"\n"),
        (b"x" * 255 + b"\n", b"x" * 255), (b"a\0b", b"a\0b"),
    ]:  # fmt: skip
        write("key", content)
        shown = json.loads(idem("key", "--key-file", "key", "--json").stdout)
        equal(shown["key"].encode(), wanted)
        token = begin(idem, "--key-file", "key")
        equal(record(idem, "--key-file", "key")["key"].encode(), wanted)
        equal(idem("release", "--token", token).status, 0)
    for content in [b"", b"\n", b"x" * 256, b"x" * 257 + b"\n"]:
        write("key", content)
        equal(idem("begin", "--key-file", "key").status, 64)


# ---- Exit statuses ---------------------------------------------------------


@test(rows=[6])
def a_waiter_that_is_told_to_end_starts_nothing():
    """SIGTERM ends a waiting begin, and its key is not claimed by it."""
    idem = Idem()
    token = begin(idem, "-k", "a")
    args = ["begin", "-k", "a", "--wait", "20s", "--wait-then-run"]
    with idem.start(*args) as waiter:
        until_it_waits(waiter.pid, "idem.db")
        waiter.send_signal(signal.SIGTERM)
        equal(waiter.wait(PATIENCE), -signal.SIGTERM)
    equal(idem("release", "--token", token).status, 0)
    equal(record(idem, "a")["status"], "released")


# ---- Stores ----------------------------------------------------------------


@test
def readers_make_no_store():
    """Where there is no store, only begin makes one."""
    for args in [
        ["show", "a"], ["list"], ["purge"],
        ["resolve", "a", "--fail", "--reason", "r"],
        ["complete", "--token", "idem1.x"], ["renew", "--token", "idem1.x"],
    ]:  # fmt: skip
        result = Idem()(*args)
        equal((args, result.status, result.stdout), (args, 78, b""))
        assert b"idem store create makes one" in result.stderr
        equal(os.listdir(), [])


@test
def a_store_is_private():
    """A store is made with mode 0600 whatever the umask."""
    old = os.umask(0)
    try:
        begin(Idem(), "-k", "a")
    finally:
        os.umask(old)
    for name in os.listdir():
        equal((name, stat.S_IMODE(os.stat(name).st_mode)), (name, 0o600))


@test
def the_default_store():
    """Without --store and IDEM_STORE, the records are in the state directory."""

    def idem(*args, **env):
        return run([PROGRAM, *args], env=env)

    home = os.getcwd()
    equal(idem("list", XDG_STATE_HOME=home + "/s").status, 78)
    equal(os.listdir(), [])
    equal(idem("begin", "-k", "a", XDG_STATE_HOME=home + "/s").status, 0)
    equal(idem("begin", "-k", "a", XDG_STATE_HOME=home + "/s").status, 75)
    assert os.path.exists("s/idem/idem.db")
    equal(stat.S_IMODE(os.stat("s/idem").st_mode), 0o700)
    if os.geteuid() != 0:
        equal(idem("begin", "-k", "a", XDG_STATE_HOME="s").status, 0)
        assert os.path.exists(".local/state/idem/idem.db")
        equal(idem("begin", "-k", "a", HOME=None).status, 78)


# ---- Output ----------------------------------------------------------------


@test
def a_token_that_reaches_nobody_is_given_up():
    """begin that cannot write its token releases the claim and says 2."""
    idem = Idem()
    for args in [[], ["--json"]]:
        with open("/dev/full", "wb") as full:
            with idem.start("begin", "-k", "a", *args, stdout=full) as process:
                equal(process.wait(PATIENCE), 2)
                assert b"released" in process.stderr.read()
        equal(record(idem, "a")["status"], "released")
    reader, writer = os.pipe()
    os.close(reader)
    with idem.start("begin", "-k", "b", stdout=writer) as process:
        equal(process.wait(PATIENCE), 2)
    os.close(writer)
    equal(record(idem, "b")["status"], "released")


@test
def an_answer_that_is_not_written_is_no_success():
    """Every command that answers on stdout notices that it is full or closed."""
    idem = Idem()
    token = begin(idem, "-k", "a")
    equal(idem("complete", "--token", token, "--result", "x" * 100000).status, 0)
    for args in [
        ["show", "a"], ["show", "a", "--json"], ["show", "a", "--output"], ["list"],
        ["list", "--json"], ["begin", "-k", "a"], ["begin", "-k", "a", "--json"],
        ["purge"], ["key", "-k", "a"],
        ["help"], ["list", "--help"], ["--version"],
    ]:  # fmt: skip
        with open("/dev/full", "wb") as full:
            with idem.start(*args, stdout=full) as process:
                equal((args, process.wait(PATIENCE)), (args, 2))
                assert b"cannot write" in process.stderr.read()
        command = "exec " + shlex.join([PROGRAM, *args]) + " >&-"
        equal(run(["sh", "-c", command], env={"IDEM_STORE": idem.store}).status, 2)


@test
def closed_descriptors_do_not_become_the_store():
    """With stdin, stdout and stderr closed, nothing is written into the store."""
    idem = Idem()
    command = "exec " + shlex.join([PROGRAM, "begin", "-k", "a"]) + " <&- >&- 2>&-"
    equal(run(["sh", "-c", command], env={"IDEM_STORE": idem.store}).status, 2)
    equal(record(idem, "a")["status"], "released")


@test
def json_is_valid():
    """Whatever the bytes, --json is JSON on one line, and nothing is lost."""
    idem = Idem()
    for number, evil in enumerate([
        b'"', b"\\", b"\x01\x1f", b"\xff\xfe", b"a\xc3", "\u2028".encode(),
        b"</script>", b"\x7f", b"\xf4\x90\x80\x80", b"",
    ]):  # fmt: skip
        name = b"k%d" % number + evil
        token = begin(idem, "-k", name, "--scope", evil, "--owner", evil or "o",
                      "--input", evil or "i")  # fmt: skip
        equal(idem("complete", "--token", token, "--result", evil,
                   "--content-type", evil or "c").status, 0)  # fmt: skip
        for args in [["begin", "-k", name], ["show", name], ["key", "-k", name]]:
            result = idem(*args, "--scope", evil, "--json")
            equal(result.stdout.count(b"\n"), 1)
            answer = json.loads(result.stdout.decode("utf-8", "strict"))
            for member, wanted in [("key", name), ("scope", evil)]:
                got = answer[member]
                equal(bytes.fromhex(answer[member + "_hex"]) if got is None
                      else got.encode(), wanted)  # fmt: skip
        answer = json.loads(idem("begin", "-k", name, "--scope", evil, "--json").stdout)
        got = answer["result"]
        got = bytes.fromhex(answer["result_hex"]) if got is None else got.encode()
        equal(got, evil)
    for line in idem("list", "--json").stdout.splitlines():
        json.loads(line)


@test
def no_answer_holds_the_token():
    """Only begin shows a token, and only to the owner."""
    idem = Idem()
    token = begin(idem, "-k", "a")
    secret = token.split(".")[1]
    for args in [
        ["begin", "-k", "a"], ["begin", "-k", "a", "--json"], ["show", "a"],
        ["show", "a", "--json"], ["list"], ["list", "--json"],
    ]:  # fmt: skip
        result = idem(*args)
        assert secret not in (result.stdout + result.stderr).decode()
        assert "nonce" not in result.stdout.decode()


@test
def a_result_is_for_its_own_request_only():
    """A caller with another fingerprint sees nothing of the result."""
    idem = Idem()
    token = begin(idem, "-k", "a", "--fingerprint", "one")
    equal(idem("complete", "--token", token, "--result", "secret").status, 0)
    for args in [[], ["--json"]]:
        result = idem("begin", "-k", "a", "--fingerprint", "two", *args)
        equal(result.status, 65)
        assert b"secret" not in result.stdout + result.stderr


@test
def the_owner_is_who_called():
    """Without --owner, the owner of begin is the process that ran it."""
    idem = Idem()
    begin(idem, "-k", "a")
    equal(record(idem, "a")["owner"].split("/")[-1], str(os.getpid()))
    begin(idem, "-k", "b", env={"IDEM_OWNER": "env"})
    equal(record(idem, "b")["owner"], "env")
    begin(idem, "-k", "c", "--owner", "given", env={"IDEM_OWNER": "env"})
    equal(record(idem, "c")["owner"], "given")


@test
def recorded_output_is_replayed_to_both_streams():
    """begin replays what `idem run` recorded as the command printed it."""
    idem = Idem()
    first = idem("run", "-k", "a", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    equal(first.status, 3)
    equal(idem("begin", "-k", "a"), Result(10, b"out\n", b"err\n"))
    equal(idem("show", "a", "--output"), Result(0, b"out\n", b"err\n"))
    answer = json.loads(idem("begin", "-k", "a", "--json").stdout)
    equal((answer["stdout"], answer["stderr"]), ("out\n", "err\n"))
    equal(answer["meta"], "exit 3\n")


@test
def the_same_fingerprint_as_run():
    """`idem key` shows the fingerprint that `idem run` records."""
    idem = Idem()
    equal(idem("run", "-k", "a", "--", "true", "1 2", "").status, 0)
    shown = json.loads(idem("key", "-k", "a", "--json", "--", "true", "1 2", "").stdout)
    equal(record(idem, "a")["fingerprint"], shown["fingerprint"])
    for other in ["true/1/2/", "true/1 2", "true/1 2//", "true1 2"]:
        other = other.split("/")
        got = json.loads(idem("key", "-k", "a", "--json", "--", *other).stdout)
        assert got["fingerprint"] != shown["fingerprint"], other


@test
def help_examples_parse():
    """Every option that an example of the help uses is an option."""
    idem = Idem()
    for name in COMMANDS:
        page = idem(name, "--help").stdout.decode()
        options = set(re.findall(r"(?:^|\s)(--[a-z-]+)", page.split("Options:")[-1]))
        for line in page.split("Examples:")[-1].split("Options:")[0].splitlines():
            for part in re.findall(rf"idem {name} ([^#|&;]*)", line):
                used = set(re.findall(r"(?:^|\s)(--[a-z-]+)", part.split(" -- ")[0]))
                assert used <= options, (name, used - options)


def on_terminal(idem, *args, env=None):
    """What the program shows on a terminal of its own."""
    env = {"IDEM_STORE": idem.store, "TERM": "xterm", **(env or {})}
    return at_terminal([PROGRAM, *args], env)[1].replace("\r\n", "\n")


@test
def a_terminal_gets_more():
    """A header and colours are for terminals only."""
    idem = Idem()
    equal(idem("fail", "--token", begin(idem, "-k", "a")).status, 0)
    seen = on_terminal(idem, "list")
    assert seen.startswith("STATUS "), seen
    assert "\x1b[31mfailed     \x1b[0m" in seen, seen
    assert "\x1b[31mfailed\x1b[0m" in on_terminal(idem, "show", "a")
    for plain in [{"NO_COLOR": "1"}, {"TERM": "dumb"}]:
        seen = on_terminal(idem, "list", env=plain)
        assert "failed" in seen and "\x1b" not in seen, seen
    piped = idem("list").stdout
    assert piped.startswith(b"failed") and b"\x1b" not in piped, piped
    token = begin(idem, "-k", "b", "--retention", "1s", "--lease", "never")
    equal(idem("complete", "--token", token).status, 0)
    time.sleep(1.1)
    seen = on_terminal(idem, "purge")
    equal(seen, "purged 1 record\n")


@test
def colour_is_forced_or_forbidden():
    """NO_COLOR goes before CLICOLOR_FORCE, that before CLICOLOR."""
    idem = Idem()
    equal(idem("fail", "--token", begin(idem, "-k", "a")).status, 0)
    for env, painted in [
        ({}, False),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"CLICOLOR_FORCE": "0"}, False),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False),
    ]:
        equal(b"\x1b[31m" in idem("list", env=env).stdout, painted)
    for env, painted in [({}, True), ({"CLICOLOR": "0"}, False), ({"NO_COLOR": "1"}, False)]:
        equal("\x1b[31m" in on_terminal(idem, "list", env=env), painted)


@test
def a_terminal_gets_local_time_and_ages():
    """On a terminal times are local and columns fit; in a pipe they are UTC."""
    idem = Idem()
    begin(idem, "-k", "schlüssel")
    env = {"TZ": "XYZ-5"}
    seen = on_terminal(idem, "show", "schlüssel", env=env)
    assert re.search(r"started +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d XYZ, [\d.]+m?s ago", seen), seen
    piped = idem("show", "schlüssel", env=env).stdout.decode()
    assert re.search(r"started +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z, ", piped), piped
    head, row = on_terminal(idem, "list").splitlines()
    assert "AGE" in head and "STARTED" not in head and row.endswith("schlüssel"), head
    equal(head.index("KEY"), row.index("schlüssel"))
    assert len(head) <= 80, head


def listed(idem, *args):
    """The keys that a list has, in its order."""
    return idem("list", "--fields", "key", *args).stdout.decode().splitlines()


@test
def a_list_is_chosen_and_sorted():
    """Filters, fields, order and the newest of a list."""
    idem = Idem()
    for n, code in enumerate([3, 0, 1, 0]):
        idem("run", "-k", f"order-{n}", "--", "sh", "-c", f"exit {code}")
    equal(idem("fail", "--token", begin(idem, "-k", "bad")).status, 0)
    begin(idem, "-k", "open")

    equal(sorted(listed(idem, "--failed")), ["bad", "order-0", "order-2"])
    equal(sorted(listed(idem, "--match", "order-[01]")), ["order-0", "order-1"])
    equal(listed(idem), ["open", "bad", "order-3", "order-2", "order-1", "order-0"])
    equal(listed(idem, "--failed"), ["bad", "order-2", "order-0"])
    equal(listed(idem, "--max", "2"), ["open", "bad"])
    equal(len(listed(idem, "--since", "1h")), 6)
    time.sleep(0.05)
    equal(listed(idem, "--since", "1ms"), [])

    rows = idem("list", "--match", "order-0", "--fields", "key,status,exit").stdout
    equal(rows, b"order-0\tcompleted\t3\n")
    rows = idem("list", "--match", "order-0", "--json", "-f", "exit,key").stdout
    equal(json.loads(rows), {"key": "order-0", "exit_status": 3})


def next_page(result):
    """The option that leads to the next page; empty: there is no other page."""
    found = re.search(rb"^idem: there (?:are|may be) more; repeat the command with (--after) (.*)$",
                      result.stderr, re.M)
    return [word.decode() for word in found.groups()] if found else []


@test
def a_list_goes_on_page_by_page():
    """A page ends with the place of the next one, which holds while records come."""
    idem = Idem()
    for n in range(9):
        idem("run", "-k", f"order-{n}", "-s", f"it's {n % 2}", "--", "sh", "-c", f"exit {n % 3}")
    for n in range(3):
        equal(idem("fail", "--token", begin(idem, "-k", f"bad-{n}", "-s", "it's 1")).status, 0)
    new = 0
    for options in [
        [], ["-s", "it's 1"], ["--failed"],
        ["--status", "failed"], ["--status", "completed,failed"], ["--match", "*-[12]"],
        ["--since", "1h", "--match", "order-*", "-s", "it's 0"], ["--json"],
    ]:  # fmt: skip
        for limit in [2, 5]:
            whole = idem("list", *options).stdout
            command = ["list", *options, "--max", str(limit)]
            seen, pages, after = b"", 0, None
            while after != []:
                page = idem(*command, *(after or []))
                equal(page.status, 0)
                assert len(page.stdout.splitlines()) <= limit, page.stdout
                seen, pages, after = seen + page.stdout, pages + 1, next_page(page)
                # It comes before the first page.
                begin(idem, "-k", f"new-{new}", "-s", "new", "--lease", "never")
                new += 1
            equal(seen.splitlines(), whole.splitlines())
            equal(pages, max(1, -(-len(whole.splitlines()) // limit)))
    seen = on_terminal(idem, "list", "-s", "it's 1", "--max", "2").replace("\r", "")
    last = seen.splitlines()[-1]
    assert last.startswith("there are more; repeat the command with --after p"), seen


@test
def the_version_is_where_people_look_for_it():
    """-V, --version and version say the same, and so does every command."""
    idem = Idem()
    wanted = idem("--version").stdout
    assert wanted.startswith(b"idem 0."), wanted
    for args in [["-V"], ["version"], ["run", "--version"], ["list", "-V"]]:
        equal(idem(*args), (0, wanted, b""))


# ---- Changes in JSON, and before they are made -------------------------------


@test
def what_is_changed_is_told_in_json():
    """Each command that ends, extends or decides answers with --json."""
    idem = Idem()
    for n, (args, status) in enumerate(
        [
            (["complete", "--result", "secret"], "completed"),
            (["fail", "--reason", "no"], "failed"),
            (["release"], "released"),
            (["unknown"], "unknown"),
            (["retry"], "retry"),
            (["renew", "--lease", "5m"], "in_progress"),
        ]
    ):
        token = begin(idem, "-k", f"k{n}")
        got = idem(*args, "--token", token, "--json")
        told = json.loads(got.stdout)
        equal((got.status, told["key"], told["status"]), (0, f"k{n}", status))
        assert b"secret" not in got.stdout
    assert 290000 < told["lease_left_ms"] <= 300000, told
    decide = ["resolve", "--release", "--reason", "x", "--json"]
    told = json.loads(idem(*decide, "k1", "--dry-run").stdout)
    equal((told["before"], told["after"], told["changed"]), ("failed", "released", False))
    equal(json.loads(idem(*decide, "k1").stdout)["changed"], True)
    rows = idem(*decide, "--status", "unknown").stdout.splitlines()
    equal([json.loads(row)["changed"] for row in rows], [False])
    rows = idem(*decide, "--status", "unknown", "--yes").stdout.splitlines()
    equal([json.loads(row)["key"] for row in rows], ["k3"])


@test
def a_failure_may_have_a_result():
    """What fail is given is replayed by run, with its exit status."""
    idem = Idem()
    token = begin(idem, "-k", "a")
    done = idem("fail", "--token", token, "--reason", "x", "-r", "no funds\n", "--exit", "7")
    equal(done, (0, b"", b""))
    equal(idem("run", "-k", "a", "--fingerprint", "none", "--", "true")[:2], (7, b"no funds\n"))
    equal(record(idem, "a")["status"], "failed")


# ---- Completion ------------------------------------------------------------

COMPLETIONS = os.path.join(os.path.dirname(PROGRAM), "packaging", "completion")


def fill_for_completion(idem):
    """Keys of all kinds; one that a shell would run if it were not quoted."""
    for key in ["order-1", "order-2", "$(touch no)"]:
        begin(idem, "-k", key)
    begin(idem, "-k", "x", "--scope", "shop")


def where_idem_is(idem):
    path = os.path.dirname(PROGRAM) + ":" + os.environ["PATH"]
    return environment({"IDEM_STORE": idem.store, "PATH": path})


# What is offered after a line; with the last column only bash is asked.
COMPLETED = [
    ("idem ru", ["run"], ""),
    ("idem re", ["reconcile", "release", "renew", "reopen", "resolve", "retry"], "bash"),
    ("idem help sh", ["show"], "bash"),
    ("idem begin --on-e", ["--on-expired-lease"], ""),
    ("idem begin --on-expired-lease ", ["hold", "rerun"], ""),
    ("idem begin --on-expired-lease = r", ["rerun"], "bash"),
    ("idem begin -k none", [], "bash"),
    ("idem begin -k x --js", ["--json"], "bash"),
    ("idem store se", ["set-clock"], ""),
    ("idem show or", ["order-1", "order-2"], ""),
    ("idem show $", ["\\$\\(touch\\", "no\\)"], "bash"),
    ("idem begin -k order-1", ["order-1"], "bash"),
    ("idem list --scope ", ["shop"], ""),
    ("idem list --fields st", ["started", "status"], ""),
    ("idem list --status un", ["unknown"], "bash"),
    ("idem run -k x -- basenam", ["basename"], ""),
    ("idem complete --res", ["--result"], "bash"),
]


def ask_bash(line):
    words = line.split(" ")
    program = (
        f"set -eu; source {COMPLETIONS}/idem; COMP_WORDS=({' '.join(map(shlex.quote, words))}); "
        f"COMP_CWORD={len(words) - 1}; "
        'COMPREPLY=(); _idem; printf "%s\\n" ${COMPREPLY[@]+"${COMPREPLY[@]}"}'
    )
    return ["bash", "-c", program], str.split


def ask_fish(line):
    program = f"source {COMPLETIONS}/idem.fish; complete -C {shlex.quote(line)}"
    return ["fish", "--no-config", "-c", program], lambda text: [
        row.split("\t")[0] for row in text.splitlines()
    ]


@each(("bash", "fish"))
def completes(shell):
    """Commands, options, choices, keys, scopes and command lines are completed."""
    if shutil.which(shell) is None:
        skip(f"{shell} is not here")
    idem = Idem()
    fill_for_completion(idem)
    for line, wanted, only in COMPLETED:
        if only in ("", shell):
            command, words_of = (ask_bash if shell == "bash" else ask_fish)(line)
            got = run(command, env=where_idem_is(idem))
            offered = sorted(set(words_of(got.stdout.decode())))
            equal((line, got.stderr, offered), (line, b"", wanted))


def type_in_zsh(keys, awaited):
    """What an interactive zsh shows after @keys, until @awaited is seen."""
    pid, fd = pty.fork()
    if pid == 0:
        env = environment({"TERM": "dumb", "PS1": "> "})
        os.execvpe("zsh", ["zsh", "-f", "-i"], env)
    seen = b""
    deadline = time.monotonic() + PATIENCE
    try:
        for part in keys:
            os.write(fd, part)
            time.sleep(0.3)
        while awaited not in seen and time.monotonic() < deadline:
            if select.select([fd], [], [], 0.2)[0]:
                seen += os.read(fd, 65536)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)
    return seen


@test
def zsh_completes():
    """In zsh, commands, options and choices are completed."""
    if shutil.which("zsh") is None:
        skip("zsh is not here")
    equal(run(["zsh", "-fn", COMPLETIONS + "/_idem"]), Result(0, b"", b""))
    setup = (
        f"autoload -Uz compinit; compinit -u; source {COMPLETIONS}/_idem; "
        "idem() { print GOT $*. }\n"
    ).encode()
    for typed, wanted in [
        (b"idem ru\t\n", b"GOT run."),
        (b"idem begin --on-e\t re\t\n", b"GOT begin --on-expired-lease rerun."),
        (b"idem store se\t\n", b"GOT store set-clock."),
        (b"idem run -k x -- basenam\t\n", b"GOT run -k x -- basename."),
        (b"idem help sh\t\n", b"GOT help show."),
    ]:
        seen = type_in_zsh([setup, typed], wanted)
        assert wanted in seen, seen


if __name__ == "__main__":
    main()
