"""Key and fingerprint that a selector selects from the input."""

import gzip
import json
import os

from files import lines, write
import selected
from tap import Idem, equal, main, test

EVENT = {"order": {"id": "o-7"}, "amount": 12.5, "currency": "EUR", "sent": 1}
KEY = ("--key-from", ".order.id")
WORK = ("--", "sh", "-c", "cat >>ledger; echo >>ledger; echo paid")


def event(**changes):
    """Writes the event with @changes, and returns the option that names it."""
    with open("event.json", "w", encoding="utf-8") as f:
        json.dump({**EVENT, **changes}, f)
    return ("--input", "@event.json")


def effects():
    return len(lines("ledger"))


@test
def the_key_is_selected_from_the_input():
    """Two inputs with one order id are one operation, also from standard input; the
    control is --fingerprint auto, which compares all of the input."""
    idem = Idem()
    only = ("--fingerprint-from", ".amount, .currency")
    first = idem("run", *event(), *KEY, *only, *WORK)
    equal((first.status, first.stdout), (0, b"paid\n"))
    again = idem("run", *event(sent=2), *KEY, *only, *WORK)
    equal((again.status, again.stdout, effects()), (0, b"paid\n", 1))
    equal(json.loads(idem("show", "o-7", "--json").stdout)["status"], "completed")

    text = json.dumps({**EVENT, "sent": 3}).encode()
    again = idem("run", "--input", "-", *KEY, *only, *WORK, input=text)
    equal((again.status, effects()), (0, 1))

    equal(idem("run", *event(order={"id": "o-8"}), *KEY, *WORK).status, 0)
    equal(idem("run", *event(order={"id": "o-8"}, sent=2), *KEY, *WORK).status, 65)
    equal(effects(), 2)


@test
def another_selected_value_is_a_mismatch():
    """What --fingerprint-from selects is compared, value by value; also without
    --key-from."""
    idem = Idem()
    for key in (KEY, ("-k", "by-hand")):
        only = (*key, "--fingerprint-from", ".amount, .currency")
        equal(idem("run", *event(), *only, *WORK).status, 0)
        for change in ({"amount": 12}, {"currency": "USD"}, {"currency": None}):
            equal((change, idem("run", *event(**change), *only, *WORK).status), (change, 65))
        equal(idem("run", *event(), *only, "--", "another", "command").status, 0)
    equal(effects(), 2)


@test
def what_is_compared_may_be_spelled_differently():
    """The values, and an input from which something is selected, are compared as JSON;
    another input, which may be anything, by its bytes."""
    idem = Idem()
    one, same, other = '{"id":"k","n":[9007199254740993,1.0],"m":2}', """{
        "m": 20e-1, "n": [9007199254740993, 1], "\\u0069d": "k"}""", \
        '{"id":"k","n":[9007199254740992,1.0],"m":2}'
    for options, twice in (
        (("--key-from", ".id"), 0),
        (("-k", "by-hand", "--fingerprint-from", ".n, .m"), 0),
        (("-k", "bytes"), 65),
    ):
        for input, status in (one, 0), (same, twice), (other, 65):
            got = idem("run", *options, "--input", input, *WORK).status
            equal((options, input, got), (options, input, status))
    equal(effects() > 0, True)


@test
def begin_and_key_take_the_same_options():
    """idem begin claims that key, and idem key shows what both would use."""
    idem = Idem()
    options = (*event(), *KEY, "--fingerprint-from", ".amount")
    begun = json.loads(idem("begin", *options, "--json").stdout)
    equal((begun["verdict"], begun["key"]), ("STARTED", "o-7"))
    shown = json.loads(idem("key", *options, "--json").stdout)
    equal((shown["key"], shown["fingerprint"]), ("o-7", begun["fingerprint"]))
    equal(idem("begin", *event(amount=1), *options[2:]).status, 65)
    auto = json.loads(idem("key", "-k", "a", "--input", "x", "--json", "--", "true").stdout)
    equal(idem("run", "-k", "a", "--input", "x", "--", "true").status, 0)
    equal(json.loads(idem("show", "a", "--json").stdout)["fingerprint"], auto["fingerprint"])


# Options, and words of the message.
REFUSED = [
    (["--key-from", ".a"], "--input @FILE"),
    (["-k", "a", "--fingerprint-from", ".a"], "--input @FILE"),
    (["-k", "a", *KEY, "--input", "{}"], "give the key once"),
    (["--key-file", "f", *KEY, "--input", "{}"], "give the key once"),
    (["-k", "a", "--fingerprint", "x", "--fingerprint-from", ".a", "--input", "{}"], "once"),
    (["--input", "event.json", *KEY], "--input @event.json"),
    (["--input", "text", *KEY], "JSON"),
    (["--input", "{}", *KEY], "--key-from .order.id: it selects null"),
    (["--input", "[]", "--key-from", ".[]"], "selects nothing"),
    (["--input", "[1,2]", "--key-from", ".[]"], "2 values in place of 1"),
    (["--input", '{"a":""}', "--key-from", ".a"], "empty text"),
    (["--input", "{}", "--key-from", "empty"], '"empty" is not part of it'),
    (["--input", "{}", "--key-from", ".["], "--key-from .[: not a selector, at byte 3"),
    (["--input", "{}", "-k", "a", "--fingerprint-from", ".["], "--fingerprint-from .[: not"),
    (["--input", "{}", "-k", "a", "--fingerprint-from", ".a, .b"], "selects null"),
]


@test
def what_gives_no_key_is_refused():
    """Bad selectors, null and empty keys are 64 with the option and the reason, before
    any store is opened; nothing runs."""
    idem = Idem()
    event()
    for options, words in REFUSED:
        for verb in (["run", *options, *WORK], ["begin", *options], ["key", *options]):
            got = idem(*verb)
            assert got.status == 64 and words in got.stderr.decode(), (verb, got)
            equal(got.stdout, b"")
    nul = ["--input", '{"a":"b\\u0000"}', "--key-from", ".a"]
    got = idem("run", *nul, *WORK)
    assert got.status == 64 and b"a NUL" in got.stderr, got
    equal((effects(), os.path.exists("idem.db")), (0, False))


@test
def each_key_is_that_of_all_front_ends():
    """Numbers keep their digits, and what means the same is one key; what is no key is
    refused by the name of the selector."""
    idem = Idem()
    for selector, texts, key in selected.KEYS:
        for text in texts:
            options = ("--input", text, "--key-from", selected.of(selector))
            got = json.loads(idem("key", *options, "--json").stdout)
            equal((selector, text, got["key"]), (selector, text, key))
            equal(idem("run", *options, "--fingerprint", "none", *WORK).status, 0)
    equal(effects(), len({key for _, _, key in selected.KEYS}))
    for selector, texts in selected.REFUSED:
        selector = selected.of(selector)
        for text in texts:
            for verb in (["run", *WORK], ["begin"], ["key"]):
                got = idem(verb[0], "--input", text, "--key-from", selector, *verb[1:])
                equal((selector, text, got.status), (selector, text, 64))
                assert b"--key-from " in got.stderr and b": " in got.stderr, got
    equal(effects(), len({key for _, _, key in selected.KEYS}))


@test
def nothing_outside_decides():
    """Neither ~/.jq nor the environment changes what a selector selects; a text that is
    compressed is refused by that name."""
    write(".jq", 'def ascii_downcase: "mine"; def fromjson: "mine"; def tostring: "mine";')
    env = {"HOME": os.getcwd(), "PATH": "/nonexistent"}
    for selector, key in ((".a | ascii_downcase", "x"), (".b | fromjson | tostring", "7")):
        options = ("--input", '{"a":"X","b":"7"}', "--key-from", selector)
        got = json.loads(Idem()("key", *options, "--json", env=env).stdout)
        equal((selector, got["key"]), (selector, key))
    write("packed", gzip.compress(b'{"a":1}'))
    got = Idem()("key", "--input", "@packed", "--key-from", ".a")
    equal((got.status, b"compressed with gzip" in got.stderr), (64, True))


if __name__ == "__main__":
    main()
