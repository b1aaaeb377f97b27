"""idem store check and real servers, for tests of the commands about tables."""

import contextlib
import json
import shlex

import dynamo
import postgres
from patience import until
from tap import PROGRAM, Idem, Skip, equal, run

TABLE = "orders"
REGION = "eu-west-1"


def check(url, env=None, verb=("store", "check")):
    """Return the exit status, and the findings as {about: [(grade, text, mend)]}. Look again
    where a machine that stands still kept the server from answering one of the two forms."""

    def look():
        forms = [run([PROGRAM, *verb, *form, "--store", url], env) for form in (["--json"], [])]
        alike = forms[0].status == forms[1].status
        late = any(b"timed out" in form.stdout + form.stderr for form in forms)
        return forms if alike or not late else None

    done, plain = until(look, "the server answers in time")
    equal(plain.status, done.status)
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    equal(answer["store"], url)
    equal(answer["usable"], done.status == 0)
    findings = {}
    for each in answer["findings"]:
        finding = (each["grade"], each["text"], each.get("mend", ""))
        assert finding[0] in ("ok", "warn", "bad", "skip"), finding
        findings.setdefault(each["about"], []).append(finding)
    skipped = [each for each in answer["findings"] if each["grade"] == "skip"]
    equal(answer["whole"], not skipped)
    equal(len(plain.stdout.splitlines()), len(answer["findings"]))
    return done.status, findings


def grades(findings):
    """Return {about: its grades, without ok}."""
    found = {about: [e[0] for e in each if e[0] != "ok"] for about, each in findings.items()}
    return {about: each for about, each in found.items() if each}


def mend_of(findings, about):
    bad = [each for each in findings[about] if each[0] != "ok"]
    equal(len(bad), 1)
    return bad[0][2]


@contextlib.contextmanager
def server(kind):
    why = dynamo.missing(kind)
    if why is not None:
        raise Skip(why)
    with dynamo.server(kind) as url:
        yield url, f"dynamodb://{TABLE}?endpoint={url}"


@contextlib.contextmanager
def store_of(kind, made=Idem):
    """Return made(URL) of a store in a new table or a new database of a service."""
    with postgres.server() if kind == "postgresql" else server(kind) as it:
        store = made(it.url if kind == "postgresql" else it[1])
        equal(store("store", "create").status, 0)
        yield store


def aws_line(line, operation, region=REGION):
    """Return the options of a line for the AWS command line: {option: words}."""
    words = shlex.split(line)
    equal(words[:3], ["aws", "dynamodb", operation])
    options = {}
    for word in words[3:]:
        if word.startswith("--"):
            option = options.setdefault(word[2:], [])
        else:
            option.append(word)
    equal(options["table-name"], [TABLE])
    equal(options.get("region"), region and [region])
    return options


def pairs(words):
    return [dict(pair.split("=") for pair in word.split(",")) for word in words]
