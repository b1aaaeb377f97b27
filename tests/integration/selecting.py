"""Selectors: their values are those of the program jq, but for what docs/selectors.md
lists; and every selector of the pages, templates and examples is one."""

import glob
import json
import os
import random
import re
import shutil
import subprocess

from files import read
from tap import LONG, TOP, equal, main, note, skip, test

CLIENT = os.environ["IDEM_SELECTOR_CLIENT"]
PAIRS = 100_000 if LONG else 5_000
PAGE = os.path.join(os.path.dirname(__file__), "../../docs/selectors.md")
BATCH = 250  # Pairs of one process of jq.


def select(pairs):
    """[(letter and values or sentence, letter and key or sentence)] of each pair."""
    told = b"".join(b"%s\0%s\0" % (p.encode(), t.encode()) for p, t in pairs)
    done = subprocess.run([CLIENT], input=told, capture_output=True, check=True)
    lines = done.stdout.decode().split("\n")[:-1]
    equal(len(lines), 2 * len(pairs))
    split = [(line[0], line[2:]) for line in lines]
    return list(zip(split[::2], split[1::2]))


def by_jq(pairs):
    """The lists of values that jq gives, None where it fails. One process has all of
    the selectors as one program, and an array of the texts."""
    each = [f"(.[{i}] | try [{p}\n] catch {{failed: 1}})" for i, (p, _) in enumerate(pairs)]
    text = "[" + ",".join(t for _, t in pairs) + "]"
    done = subprocess.run(["jq", "-c", ",".join(each)], input=text.encode(), capture_output=True)
    equal((done.returncode, done.stderr), (0, b""))
    found = [json.loads(line) for line in done.stdout.splitlines()]
    equal(len(found), len(pairs))
    return [None if isinstance(v, dict) else v for v in found]


# ---- The page ----------------------------------------------------------------


def rows_of(title, columns):
    """The rows of the tables below a title of the page, each a list of its cells."""
    parts = read(PAGE).split("\n## ")
    (part,) = [p for p in parts if p.startswith(title)]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in part.splitlines() if line[:1] == "|"]
    return [
        [cell.replace("\\|", "|").strip() for cell in row]
        for row in rows
        if len(row) == columns and "`" in row[0]
    ]


def plain(cell):
    return cell.strip("`").strip()


@test
def the_page_has_what_is_selected():
    """Each row of its first table."""
    rows = rows_of("# Selectors", 3)
    of = re.search(r"\nOf `(.*?)`:\n", read(PAGE))[1]
    assert len(rows) > 12, rows
    pairs = [(plain(selector), of) for selector, _, _ in rows]
    for (selector, _), (_, cell, _), ((letter, told), _) in zip(pairs, rows, select(pairs)):
        wanted = [json.loads(text) for text in re.findall("`(.*?)`", cell)]
        if letter == "n":
            assert wanted in ([], [None]) and (wanted == []) == ("nothing" in told), (selector, told)
        else:
            assert letter == "v" and same(wanted, json.loads(told)), (selector, wanted, told)


@test
def the_page_has_what_is_refused():
    """Each message, of selectors and of runs."""
    rows = [("", *row) for row in rows_of("What is refused", 2)] + rows_of("What is refused", 3)
    assert len(rows) > 25, rows
    pairs = [(plain(selector), plain(of) or "1") for of, selector, _ in rows]
    for (of, selector, message), (values, _) in zip(rows, select(pairs)):
        want = message if of else "not a selector, " + message
        equal((selector, *values), (selector, "r" if of else "c", want))


# ---- The corpus --------------------------------------------------------------

QUOTED = r"""('[^'\n]*'|"(?:\\.|[^"\n])*"|"""
PLACES = [
    r"--(?:key-from|fingerprint-from|select) +" + QUOTED + r"[^\s`;,)\\|]+)",
    r"idempotency_(?:key|fingerprint)_from +" + QUOTED + r"[^\s;`]+)",
    r"IDEM_LAMBDA_(?:KEY|SCOPE|FINGERPRINT)=" + QUOTED + r"[^\s`]+)",
    r"IDEM_LAMBDA_(?:KEY|SCOPE|FINGERPRINT): " + QUOTED + r"\S[^\n]*)",
]
# Not a word of a page, nor a variable of a shell.
SELECTOR = re.compile(r"[^$]*[.\"\[].*")

ORDER = {"id": 7, "order_id": 108, "orderId": "o-7", "order": "o", "sum": "1", "currency": "EUR", "amount": 5,
         "user": "u", "request": "r", "timestamp": 9, "tenant": "t", "eventId": "e", "sent_at": 1}  # fmt: skip
EVENT = {**ORDER, "Records": [{"eventID": "x"}], "headers": {"idempotency-key": "k"},
         "requestContext": {"authorizer": {"jwt": {"claims": {"sub": "s"}}, "principalId": "p",
                                           "iam": {"userArn": "a"}}, "identity": {"apiKeyId": "i"}}}  # fmt: skip


def in_use():
    """{selector: file} of all that pages, examples, templates and helps name."""
    found = {}
    for pattern in ("README.md", "docs/*.md", "man/*", "examples/**/*", "packaging/**/*", "cli/**/*.c"):
        for path in glob.glob(os.path.join(TOP, pattern), recursive=True):
            if os.path.isfile(path) and not path.endswith("selectors.md"):
                with open(path, encoding="utf-8", errors="replace") as f:
                    text = f.read().replace('\\"', '"') if path.endswith(".c") else f.read()
                for match in (m for place in PLACES for m in re.finditer(place, text)):
                    selector = match[1]
                    if selector[:1] == selector[-1:] and selector[:1] in ("'", '"'):
                        selector = selector[1:-1]
                    if SELECTOR.fullmatch(selector):
                        found[selector] = os.path.relpath(path, TOP)
    return found


@test
def each_selector_in_use_is_what_it_is_to_jq():
    """Those of the pages, manuals, helps, examples and templates, of an event whose body
    is a text and of one whose body is an object."""
    found = in_use()
    assert len(found) >= 15, found
    events = [json.dumps({**EVENT, "body": body}) for body in (json.dumps(ORDER), ORDER)]
    pairs = [(selector, event) for selector in found for event in events]
    for (selector, _), (values, _), theirs in zip(pairs, select(pairs), by_jq(pairs)):
        if theirs is None or values[0] == "n":
            assert values[0] in "rn", (selector, found[selector], values, theirs)
        else:
            assert values[0] == "v", (selector, found[selector], values, theirs)
            assert same(json.loads(values[1]), theirs), (selector, values, theirs)
    note(" ".join(f"[{selector}]" for selector in sorted(found)))


# ---- Pairs -------------------------------------------------------------------

NAMES = ["a", "b", "id", "a b", "é", "", "A"]
TEXTS = ["", "x", "Order-7", "ÄÖ", "\U0001f600", "a\"b\\c", "1", "null", "{\"a\":1}", "[1,\"b\"]",
         "{\"id\":{\"a\":[3]}}", "eyJhIjoxfQ==", "SGVsbG8=", "w6k=", "%%", "\n\t"]  # fmt: skip
NUMBERS = ["0", "1", "-1", "42", "1.5", "-0.25", "1e3", "100", "2147483648", "0.001"]


def value(dice, depth):
    kind = dice.randrange(9 if depth > 0 else 6)
    if kind < 2:
        return json.dumps(dice.choice(TEXTS), ensure_ascii=dice.random() < 0.5)
    if kind < 4:
        return dice.choice(NUMBERS)
    if kind == 4:
        return dice.choice(["null", "true", "false"])
    if kind == 5:
        return dice.choice(["[]", "{}", '"x"'])
    if kind == 6:
        return "[" + ",".join(value(dice, depth - 1) for _ in range(dice.randrange(4))) + "]"
    names = dice.sample(NAMES, dice.randrange(1, 5))
    return "{" + ", ".join(json.dumps(n) + ": " + value(dice, depth - 1) for n in names) + "}"


def thing(dice):
    """Mostly an object, as events are."""
    if dice.random() < 0.2:
        return value(dice, 3)
    return "{" + ",".join(f"{json.dumps(n)}: {value(dice, 2)}" for n in NAMES) + "}"


def step(dice):
    name = dice.choice(NAMES)
    kind = dice.randrange(8)
    if kind < 4 and re.fullmatch("[A-Za-z_]+", name):
        made = "." + name
    elif kind < 5:
        made = "." + json.dumps(name)
    elif kind < 6:
        made = "." + json.dumps(name) if dice.random() < 0.3 else "[" + json.dumps(name) + "]"
    elif kind < 7:
        made = f"[{dice.randrange(-2, 3)}]"
    else:
        made = "[]"
    return made + ("?" if dice.random() < 0.5 else "")


def path(dice):
    made = "".join(step(dice) for _ in range(dice.randrange(1, 4)))
    return made if made.startswith(".") else "." + made


def text(dice, depth):
    made = json.dumps(dice.choice(TEXTS))[1:-1]
    for _ in range(dice.randrange(3)):
        made += "\\(" + selector(dice, depth - 1) + ")" + dice.choice(["", "/", "-x"])
    return '"' + made + '"'


def selector(dice, depth):
    """Each form of the language, one in another."""
    kind = dice.randrange(20 if depth > 0 else 7)
    inner = lambda: selector(dice, depth - 1)
    if kind < 4:
        return path(dice)
    if kind == 4:
        return dice.choice([".", "null", "true", "false", "1", "-2.5", '"x"', "[]"])
    if kind == 5:
        return dice.choice(["fromjson", "tostring", "ascii_downcase", "@base64d"])
    if kind == 6:
        # jq 1.6 passes over what fails after such a ?, too: here nothing comes after it.
        return "[" + dice.choice(["fromjson", "@base64d", "tostring", f"{path(dice)} | fromjson"]) + "?]"
    if kind < 10:
        return inner() + dice.choice([" | ", "|", " |\n"]) + inner()
    if kind < 12:
        return inner() + ", " + inner()
    if kind < 14:
        return inner() + " // " + inner()
    if kind == 14:
        return dice.choice(["({})", "({}).a", "({})[0]", "[({})?]"]).format(inner())
    if kind == 15:
        return f"[{inner()}]"
    if kind == 16:
        return "del(" + ", ".join(path(dice) for _ in range(dice.randrange(1, 4))) + ")"
    if kind == 17:
        return inner() + " + " + inner()
    return text(dice, depth)


# What a selector refuses and jq does not, as docs/selectors.md lists: the words of the
# refusal.
STRICTER = re.compile(
    "null cannot be part|cannot be part of a text|have no order|takes a text|the text is not base64"
    "|is not UTF-8|half a surrogate|two members|JSON text, line|takes more steps"
)


def same(a, b):
    """As JSON values, numbers as jq's doubles."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, bool) or isinstance(b, bool) or not isinstance(a, (int, float)):
        return a is b if isinstance(a, bool) else type(a) is type(b) and a == b
    return isinstance(b, (int, float)) and float(a) == float(b)


@test
def jq_selects_the_same():
    """Random selectors over random texts: the values are jq's, and what jq refuses is
    refused. What is refused although jq has values is of the listed kinds."""
    if shutil.which("jq") is None:
        skip("jq is not installed")
    seed = int(os.environ.get("IDEM_TEST_SEED", random.SystemRandom().randrange(2**32)))
    dice = random.Random(seed)
    count = {"same": 0, "both refuse": 0, "stricter": 0}
    for _ in range(PAIRS // BATCH):
        pairs = [(selector(dice, dice.randrange(4)), thing(dice)) for _ in range(BATCH)]
        for (program, t), ((letter, ours), _), theirs in zip(pairs, select(pairs), by_jq(pairs)):
            shown = (seed, program, t, letter, ours, theirs)
            assert letter in "vnr", shown
            if theirs is None:
                assert letter == "r", shown
                count["both refuse"] += 1
            elif letter == "r":
                assert STRICTER.search(ours), shown
                count["stricter"] += 1
            elif letter == "n":
                assert re.fullmatch(r"[\[\],null]*", json.dumps(theirs, separators=(",", ":"))), shown
                count["same"] += 1
            else:
                assert same(json.loads(ours), theirs), shown
                count["same"] += 1
    note(f"seed {seed}: {count}")
    assert count["same"] > PAIRS / 4, count


if __name__ == "__main__":
    main()
