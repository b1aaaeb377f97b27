"""Run the examples and check what they print.

Usage: check.py ONCE QUEUE MINIMAL
"""

import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "lib"))

import tap  # noqa: E402

ONCE, QUEUE, MINIMAL = (str(Path(name).resolve()) for name in sys.argv[1:4])
del sys.argv[1:4]


@tap.test
def once_charges_once():
    """Run twice, once.c charges once; the second run replays the same receipt."""
    first = tap.run([ONCE, "sqlite:shop.db", "order-42"])
    second = tap.run([ONCE, "sqlite:shop.db", "order-42"])
    other = tap.run([ONCE, "sqlite:shop.db", "order-43"])
    tap.equal((first.status, second.status, other.status), (0, 0, 0))
    charging, started = first.stdout.decode().splitlines()
    tap.equal(charging, "charging order-42")
    assert started.startswith("STARTED: receipt "), started
    tap.equal(second.stdout.decode(), started.replace("STARTED", "REPLAY") + "\n")
    assert other.stdout.startswith(b"charging order-43\n"), other.stdout


@tap.test
def minimal_charges_once():
    """Run twice, the fifty lines of minimal.c charge once."""
    first = tap.run([MINIMAL, "sqlite:shop.db", "order-42"])
    again = tap.run([MINIMAL, "sqlite:shop.db", "order-42"])
    tap.equal(first.stdout, b"charging order-42\nSTARTED receipt 7\n")
    tap.equal(again.stdout, b"REPLAY receipt 7\n")
    tap.equal((first.status, again.status), (0, 0))


@tap.test
def no_verdict_is_taken_for_another():
    """A key that is in progress, or on record as failed or unknown, gets no receipt and
    is not taken for a success: of minimal.c, once.c and queue.c."""
    idem = tap.Idem("sqlite:" + os.path.abspath("shop.db"))
    for key, end, verdict in [("order-7", None, "BUSY"), ("order-8", "fail", "FAILED"),
                              ("order-9", "unknown", "UNKNOWN")]:
        begun = idem("begin", "-k", key, "--lease", "10m", "--on-expired-lease", "hold")
        tap.equal(begun.status, 0)
        if end is not None:
            tap.equal(idem(end, "--token", begun.stdout.decode().split()[0]).status, 0)
        minimal = tap.run([MINIMAL, idem.store, key])
        tap.equal((minimal.status, minimal.stdout), (1, b""))
        assert verdict.encode() in minimal.stderr, minimal
        once = tap.run([ONCE, idem.store, key])
        assert once.status in (75, 76) and b"charging" not in once.stdout, once
        assert once.stdout.startswith(verdict.encode()), once
    lines = tap.run([QUEUE, idem.store]).stdout.decode().splitlines()
    tap.equal(sorted(lines[1:-1]), ["order-7: BUSY", "order-8: FAILED", "order-9: UNKNOWN"])
    tap.equal(lines[-1], "997 charged, 0 replayed, 3 failed")


@tap.test
def once_is_raced():
    """Of ten that are started together one charges, and none fails."""
    racers = [tap.start([ONCE, "sqlite:shop.db", "order-42"]) for _ in range(10)]
    said = [(r.communicate()[0].decode(), r.returncode) for r in racers]
    tap.equal(sum("charging" in out for out, _ in said), 1)
    assert {code for _, code in said} <= {0, 75}, said
    receipts = {out.split(": ")[1] for out, code in said if code == 0}
    tap.equal(len(receipts), 1)


@tap.test
def once_says_what_is_wrong():
    """Without a store, or with a wrong one, once.c charges nothing and says why."""
    tap.equal(tap.run([ONCE]).status, 64)
    for store in ("nothing:", "sqlite:no/such/directory/shop.db"):
        result = tap.run([ONCE, store, "order-42"])
        tap.equal((result.status, result.stdout), (69, b""))
        assert result.stderr.startswith(b"once: "), result.stderr


@tap.test
def queue_charges_a_thousand():
    """queue.c has a thousand orders in flight, and replays them all when run again."""
    first = tap.run([QUEUE, "sqlite:shop.db"])
    second = tap.run([QUEUE, "sqlite:shop.db"])
    tap.equal(
        first,
        (0, b"1000 in flight\n1000 charged, 0 replayed, 0 failed\n", b""),
    )
    tap.equal(
        second,
        (0, b"1000 in flight\n0 charged, 1000 replayed, 0 failed\n", b""),
    )


@tap.test
def examples_share_a_store():
    """What queue.c charged, once.c replays."""
    tap.run([QUEUE, "sqlite:shop.db"])
    result = tap.run([ONCE, "sqlite:shop.db", "order-7"])
    tap.equal(result.status, 0)
    assert result.stdout.startswith(b"REPLAY: receipt "), result.stdout


if __name__ == "__main__":
    tap.main()
