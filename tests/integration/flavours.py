"""idem key --flavour: the keys that other libraries make of the same events.

Python's are made here as Powertools for Python makes them: by json.dumps() with
sorted keys, and MD5. TypeScript's are made by the real package.
"""

import hashlib
import json
import random
import struct

import powertools
from tap import LONG, Idem, equal, main, note, test

# What a function may receive, as text: what is written twice, as bytes and as an
# escape, are two events with one meaning.
EVENTS = [
    # Words and texts.
    "true",
    "false",
    '"abc"',
    '"order-42 \\" \\\\ \\/ \\b\\f\\n\\r\\t"',
    '"\\u0000\\u0001\\u001f\\u007f\\u0080\\u009f"',
    '"\u00e9\u20ac\U0001f600"',
    '"\\u00e9\\u20ac\\ud83d\\ude00"',
    '"\\ud800 \\udc00 \\ud83d"',
    '"\\ud83d\\ud83d\\ude00\\ude00"',
    '"\u2028\u2029\ufeff\ufffd\uffff"',
    '"</script>&\'"',
    '" leading and trailing "',
    # Numbers.
    "0",
    "-0",
    "-0.0",
    "1.0",
    "10.5",
    "1e21",
    "1e20",
    "123456789012345680000",
    "1e16",
    "1e15",
    "9007199254740993",
    "12345678901234567890123456789",
    "-98765432109876543210",
    "1e-6",
    "1e-7",
    "0.0001",
    "0.00001",
    "1.7976931348623157e308",
    "5e-324",
    "1e400",
    "-1E+400",
    "1e-400",
    "0.1",
    "100000000000000000000000",
    "2.5E0",
    # Arrays.
    "[0]",
    '[1,[2,[3,["four"]]]]',
    "[null,1,true,false,[],{}]",
    "[1.10, 1.1, 11e-1]",
    # Objects, and the order of their members.
    '{"user_id":"u1","product_id":"p1"}',
    '{"product_id":"p1","user_id":"u1"}',
    '{ "b" : 1 , "a" : { "d" : null , "c" : [ ] } }',
    '{"a":"\u00e9","n":10.5,"z":[1,2]}',
    '{"":1,"a":2," ":3}',
    '{"B":1,"a":2,"C":3,"b":4,"A":5,"c":6}',
    '{"a1":1,"a10":2,"a2":3,"A1":4}',
    '{"10":"ten","9":"nine","x":0,"1":"one","01":"not"}',
    '{"4294967294":1,"4294967295":2,"4294967296":3,"0":4,"-1":5,"1.5":6}',
    '{"_":1,"^":2,"Z":3,"z":4,"[":5,"`":6}',
    '{"\u00e9":1,"\u00c9":2,"e":3,"z":4}',
    '{"\U00010400":1,"\uff21":2,"\ue000":3,"\U0001f600":4,"\uffff":5}',
    '{"\\ud800":1,"\\udfff":2,"\uffff":3,"\U0010ffff":4,"a":5}',
    '{"\u0130":1,"i\u0307":2,"i":3,"\u0131":4,"I":5,"\u1e9e":6,"\u00df":7}',
    '{"__proto__":1,"a":2}',
    '{"a":{"__proto__":{"x":1}},"constructor":1,"toString":2,"toJSON":3}',
    '{"a":{"z":1,"y":{"x":[{"w":1,"v":2}]}},"A":null}',
    '{"status":"paid","items":[{"sku":"X-1","n":2,"price":19.99},'
    '{"price":5e0,"sku":"Y\\u2028","n":1}],"total":44.98,"at":1700000000123}',
    '{"Records":[{"messageId":"19dd0b57-b21e-4ac1-bd88-01bbb068cb78",'
    '"body":"{\\"id\\":7}","attributes":{"ApproximateReceiveCount":"1"}}]}',
]


def python_key(event, prefix="pay"):
    text = json.dumps(json.loads(event), sort_keys=True)
    return f"{prefix}#{hashlib.md5(text.encode()).hexdigest()}"


def our_key(flavour, event, *options):
    done = Idem()(
        *("key", "--flavour", flavour, *options, "--prefix", "pay", "-"),
        input=event.encode("utf-8", "surrogatepass"),
    )
    equal((done.status, done.stderr), (0, b""))
    return done.stdout.decode().rstrip("\n")


def typescript_keys(events):
    with powertools.process() as do:
        return do("keys", prefix="pay", events=events)


def compare(flavour, events, wanted):
    different = [
        f"{event}: {got}, and not {want}"
        for event, want in zip(events, wanted, strict=True)
        if (got := our_key(flavour, event)) != want
    ]
    assert not different, "\n".join(different)


@test
def python_has_our_keys():
    """Python's json and hashlib make the keys that we make, of every event."""
    compare("python", EVENTS, [python_key(e) for e in EVENTS])
    note(f"{len(EVENTS)} events")


@test
def typescript_has_our_keys():
    """The real Powertools for TypeScript makes the keys that we make."""
    wanted = typescript_keys(EVENTS)
    equal(len(set(wanted)) > len(EVENTS) * 2 // 3, True)
    compare("typescript", EVENTS, wanted)
    note(f"{len(EVENTS)} events")


def doubles(seed, count):
    """Powers of two, which are the hard ones, and any bits."""
    some = random.Random(seed)
    found = [2.0**n for n in range(-1074, 1024)]
    while len(found) < count:
        (x,) = struct.unpack("<d", some.randbytes(8))
        if x - x == 0:
            found.append(x)
        found.append(some.randrange(10**17) / 10 ** some.randrange(17))
    return found


@test
def numbers_are_written_alike():
    """Doubles come out as Python and JavaScript write them, powers of two too."""
    numbers = doubles(1, 40000 if LONG else 6000)
    events = [
        json.dumps(numbers[at : at + 500]) for at in range(0, len(numbers), 500)
    ]
    compare("python", events, [python_key(e) for e in events])
    compare("typescript", events, typescript_keys(events))
    note(f"{len(numbers)} doubles")


@test
def names_are_ordered_alike():
    """Names with every letter that has a lower case are in JavaScript's order."""
    blocks = [(0x41, 0x1C89), (0x1C90, 0xA7C0), (0xFF21, 0xFF3B), (0x10400, 0x10D00)]
    letters = [
        chr(c)
        for first, last in blocks
        for c in range(first, last)
        if chr(c).lower() != chr(c) and c != 0x3A3
    ]
    random.Random(1).shuffle(letters)
    names = letters + [c.lower() + "1" for c in letters]
    event = json.dumps({name: n for n, name in enumerate(names)})
    compare("typescript", [event], typescript_keys([event]))
    compare("python", [event], [python_key(event)])
    note(f"{len(letters)} letters")


@test
def a_selection_has_its_key():
    """With --key-from the key is that of the selection, digits and all."""
    event = '{"body":{"id":12345678901234567890,"n":1.0,"t":"x"},"time":7}'
    equal(
        our_key("python", event, "--key-from", "[.body.id, .body.n]"),
        python_key("[12345678901234567890,1.0]"),
    )
    equal(our_key("python", event, "--key-from", ".body.t"), python_key('"x"'))


@test
def what_has_no_key_of_its_own_is_refused():
    """No key is printed that other events, or other readers, have too."""
    refused = [
        ("python", '{"a":1,"b":2,"a":3}', "two members with the name"),
        ("typescript", '{"a":{"x":1,"\\u0078":1}}', "two members with the name"),
        ("typescript", "null", "every event without it"),
        ("python", "[null,null]", "every event without it"),
        ("python", "{}", "every event without it"),
        ("typescript", '""', "every event without it"),
        ("typescript", '{"\u03a3":1,"a":2}', "capital sigma"),
        ("python", "1" * 4301, "4300 digits"),
        ("python", "[1,]", "line 1, column 4"),
        ("python", "{'a':1}", "line 1, column 2"),
        ("python", "NaN", "not a JSON number"),
        ("python", "", "a value is missing"),
    ]
    for flavour, event, word in refused:
        done = Idem()(
            *("key", "--flavour", flavour, "--prefix", "pay", "-"), input=event.encode()
        )
        equal((done.status, done.stdout), (64, b""))
        assert word in done.stderr.decode(), (event, done.stderr)
    note(f"{len(refused)} refused")


if __name__ == "__main__":
    main()
