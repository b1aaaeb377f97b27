"""Records made by hand, from the layout in "contract/store.h", as lines of an export."""

import base64
import hashlib
import json
import struct
import time

NEVER = 2**63 - 1
NOW = int(time.time() * 1000)


# A completed record, which gives other records the members that they do not set.
PLAIN = {
    "status": 2, "policy": 2, "flags": 0, "fence": 10, "attempts": 1, "lease_end": NOW,
    "expires": NEVER, "nonce": bytes(15) + b"\1", "owner": b"w", "fingerprint": b"",
    "content_type": b"", "meta": b"", "error": b"", "note": b"", "history": [], "later": b"",
    "result": b"", "input": b"",
}  # fmt: skip


def piece(x):
    return len(x).to_bytes(8, "big") + x


def digest(body):
    return hashlib.sha256(body).digest()[:16] if body else bytes(16)


def field(tag, body):
    return struct.pack(">BI", tag, len(body)) + body if body else b""


def head_of(scope, key, r):
    """Return the stored form of the record @r."""
    fields = b"".join(
        field(tag, r[name])
        for tag, name in enumerate(
            ["owner", "fingerprint", "content_type", "meta", "error", "note"], 1
        )
    )
    for owner, fence, end in r["history"]:
        past = struct.pack(">BBQQQBB", end, 0, fence, NOW, NOW + 1, len(owner), 0)
        fields += field(7, past + owner)
    fields += field(100, r["later"])
    head = b"IDR1" + struct.pack(
        ">BBBBQII10Q16s16s16s16sQQ",
        1, r["status"], r["policy"], r["flags"], r["fence"], r["attempts"],
        len(fields), NOW, NOW, 60000, r["lease_end"], 1000, 0,
        0 if r["status"] == 1 else NOW, r["expires"], 86400000, 0,
        r["nonce"], bytes(16), digest(r["result"]), digest(r["input"]),
        len(r["result"]), len(r["input"]),
    )  # fmt: skip
    head += fields
    identity = hashlib.sha256(b"idem1" + piece(scope) + piece(key)).digest()
    return head + hashlib.sha256(identity + head).digest()[:16]


def sample(rng, n):
    """Return scope, key and record of the sample @n, of any kind."""
    status = n % 5 + 1
    key = b"order-%d" % n
    if n % 7 == 0:
        key = rng.randbytes(1 + n % 240) + b"\xff%d" % n  # No UTF-8.
    done = status in (2, 3)
    sizes = [0, 1, 100, 5000] if n % 1000 else [3_000_000]
    return (
        rng.choice([b"", b"shop-7", b"sh\xc3\xb6p", b"\x00\xfe"]),
        key,
        {
            "status": status,
            "policy": n % 2 + 1,
            "flags": 2 if status == 4 else 0,
            "fence": n + 10,
            "attempts": n % 4 + 1,
            "lease_end": NEVER if n % 3 == 0 else NOW + 3600_000,
            "expires": NEVER if n % 2 else NOW + 7200_000,
            "nonce": rng.randbytes(16),
            "owner": b"host/%d" % n,
            "fingerprint": b"\x01" + rng.randbytes(32) if n % 2 else b"",
            "content_type": b"text/plain" if done else b"",
            "meta": b"exit 0\n" if done else b"",
            "error": b"card \xff refused" if status == 3 else b"",
            "note": b"no answer\n" if status == 4 else b"",
            "history": [
                (b"was/%d" % i, n + 1, i % 3 + 1) for i in range(n % 9)
            ],
            "later": b"of a later version" if n % 11 == 0 else b"",
            "result": rng.randbytes(rng.choice(sizes)) if done else b"",
            "input": rng.randbytes(n % 50),
        },
    )


def line_of(scope, key, r, **more):
    """Return a line of an export with no more than an import needs. @r: the members that
    are not PLAIN."""
    r = {**PLAIN, **r}
    line = {
        "scope_hex": scope.hex(),
        "key_hex": key.hex(),
        "head": base64.b64encode(head_of(scope, key, r)).decode(),
    }
    for name in ("result", "input"):
        if r[name]:
            line[name] = base64.b64encode(r[name]).decode()
    return json.dumps({**line, **more})


HEADER = '{"idem_export":1}\n'


def write_export(path, lines):
    with open(path, "w", encoding="ascii") as f:
        f.write(HEADER)
        f.writelines(line + "\n" for line in lines)
