"""Texts of which a selector makes a key, and texts of which it makes none, for tests of
all front ends."""

import hashlib

LONG = "order-" + "x" * 300

# A selector with % for the place of the text, texts of one operation, and its key.
KEYS = [
    ("%.n", ['{"n":1.0}', '{"n": 1}', '{"n":10e-1}', '{"n":"1"}'], "1"),
    ("%.n", ['{"n":108086391057176360}'], "108086391057176360"),
    ("%.n", ['{"n":108086391057176359}'], "108086391057176359"),
    ("%.t | fromjson | .id", ['{"t":"{\\"id\\":108086391057176360}"}'], "108086391057176360"),
    ("[%.a, %.b]", ['{"a":"ab","b":"c"}', '{"b":"c","a":"ab"}'], '=["ab","c"]'),
    ("%.a, %.b", ['{"a":"a","b":"bc"}'], '=["a","bc"]'),
    ("%.n", ['{"n":"=x"}'], "==x"),
    ("%.n", ['{"n":"%s"}' % LONG],
     "=#" + LONG[:188] + "#" + hashlib.sha256(LONG.encode()).hexdigest()),
]  # fmt: skip

# A selector, and texts of which it makes none.
REFUSED = [
    ("%.n", ['{"n":null}', "{}", '{"n":{"a":1}}', '{"n":[1]}', '{"n":["a","a"]}', '{"n":""}',
             '{"n":"a\\u0000"}', '{"n":1,"n":1}']),
    ("[%.a, %.b]", ['{"a":1}', '{"b":1}', "{}"]),
    ('"order/\\(%.n)"', ["{}", '{"n":null}', '{"n":[1]}']),
]  # fmt: skip


def of(selector, place=""):
    """Return the selector for the text at @place."""
    return selector.replace("%.", place + ".")
