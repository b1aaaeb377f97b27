"""idem consume --lines: a command that is kept running, and given a line for each
message."""

import json
import os
import signal
import sqlite3
import time
from pathlib import Path

from kept import kept
from rig import Between, Place, dynamo, ledger, outcomes
from procfs import children, stop
from tap import equal, main, skip, test
from patience import until

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "lines" / "handle.py"

# Does what the first word of a body says, and notes in files what it saw: each start
# in "starts", each message in "ledger".
WORK = r'''
import json, os, signal, sys, time
def note(name, text):
    with open(name, "a") as f:
        f.write(text + "\n")
def say(id, outcome="done", **more):
    print(json.dumps({"id": id, "outcome": outcome, **more}), flush=True)
note("starts", str(os.getpid()))
print("ready", flush=True)
last = None
for line in sys.stdin:
    m = json.loads(line)
    note("lines", line.strip())
    word, _, rest = m["body"].partition(" ")
    note("ledger", "%s %d %d" % (m["body"], m["attempt"], m["takeover"]))
    once = not m["takeover"]  # An attempt of which nothing was read is one, too.
    if word == "kill" or word == "killonce" and once:
        os.kill(os.getpid(), signal.SIGKILL)
    elif word == "exit":
        os._exit(int(rest))
    elif word == "hang" or word == "hangonce" and once:
        note("hung", str(os.getpid()))
        time.sleep(600)
    elif word == "tree":
        if os.fork() == 0:
            note("child", str(os.getpid()))
            time.sleep(600)
        while not os.path.exists("go"):
            time.sleep(0.02)
        say(m["id"])
    elif word == "mute":
        os.close(1)
        time.sleep(600)
    elif word == "long":
        os.write(1, b"x" * (1 << 21) + b"\n")
        time.sleep(600)
    elif word == "garbage":
        for text in ("garbage", "{", "[1]", '{"id":1}', '{"outcome":"done"}', "\0\xff"):
            print(text, flush=True)
        say(m["id"])
    elif word == "wrong" and once:
        say("not-this")
    elif word == "nonsense" and once:
        say(m["id"], "dnoe")
    elif word == "twice":
        os.write(1, ((json.dumps({"id": m["id"], "outcome": "done", "result": 1}) + "\n")
            + json.dumps({"id": m["id"], "outcome": "fail"}) + "\n").encode())
    elif word == "late":  # Twice for the first delivery, the second time late.
        first = json.dumps({"id": m["id"], "outcome": "retry" if once else "fail"}) + "\n"
        again = json.dumps({"id": m["id"], "fence": m["fence"], "outcome": "done"}) + "\n"
        os.write(1, first.encode())
        if once:
            time.sleep(4)
            os.write(1, again.encode())
    elif word == "quit":
        say(m["id"])
        sys.exit(3)
    elif word == "slow":
        for _ in range(int(rest) * 5):
            time.sleep(0.2)
            say(m["id"], "working")
        say(m["id"])
    elif word == "wait":
        note("waits", str(os.getpid()))
        while not os.path.exists("go"):
            time.sleep(0.02)
        say(m["id"])
    elif word in ("fail", "retry", "unknown", "release"):
        say(m["id"], word, error="because of it", result={"why": 1.50})
    elif word == "number":
        print('{"id":"%s", "result" : 123456789012345678901234567890 ,"outcome":"done"}' % m["id"], flush=True)
    else:
        say(m["id"], result={"did": m["body"][:20]})
note("ends", str(os.getpid()))
'''

QUICK = ("--lease", "2s", "--retry-after", "1s")
SLOW = ("--lease", "4s", "--retry-after", "1s")  # Where each message counts.


class Lines(Place):
    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        Path("work.py").write_text(WORK, encoding="utf-8")

    def lines(self, *options, **named):
        return self.consume("--lines", *options, work=["python3", "work.py"], **named)

    def begin(self, *options):
        return self.start("--lines", *options, work=["python3", "work.py"])

    def effects(self):
        """Bodies, with how often the command saw each."""
        seen = {}
        for line in ledger():
            body = line.rsplit(" ", 2)[0]
            seen[body] = seen.get(body, 0) + 1
        return seen

    def takeovers(self, body):
        """Of each time that the command saw @body."""
        return [line[-1] for line in ledger() if line.rsplit(" ", 2)[0] == body]

    def send_later(self, bodies):
        """Once the server has ended the last receive of a consumer that is gone: that
        would take them."""
        time.sleep(1.2)
        self.queue.send(bodies)

    def status(self, body):
        done = self.idem("show", "--json", self.key_of(body))
        return json.loads(done.stdout)

    def key_of(self, body):
        for line in ledger("lines"):
            m = json.loads(line)
            if m["body"] == body:
                return m["key"]
        raise AssertionError(f"{body} was not given")


def alive(pid):
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def named(pid, name):
    """The descendants of @pid that are called @name."""
    found = []
    for child in children(pid):
        try:
            comm = Path(f"/proc/{child}/comm").read_text(encoding="utf-8").strip()
        except OSError:
            continue
        found += [child] if comm == name else []
        found += named(child, name)
    return found


# ---- One outcome for each message ----


@test
def one_command_works_on_many_messages():
    """Each message is one line, each is deleted with its outcome on record, by one
    process for each worker; the control starts one for each message."""
    p = Lines()
    bodies = [f"m{i}" for i in range(40)]
    p.queue.send(bodies)
    status, lines, said = p.lines("-w", "2", "--keep-input")
    equal(status, 0)
    equal(outcomes(lines), ["done"] * 40)
    equal(p.effects(), dict.fromkeys(bodies, 1))
    assert 1 <= len(ledger("starts")) <= 2, ledger("starts")
    equal(sorted(ledger("ends")), sorted(ledger("starts")))
    equal(p.queue.count(), (0, 0))
    equal({r["status"] for r in p.records()}, {"completed"})
    assert "40 received: 40 done" in said and "ready" in said, said
    first = json.loads(ledger("lines")[0])
    equal(p.status(first["body"])["input_len"], len(first["body"]))
    equal(set(first), {"id", "key", "scope", "fence", "attempt", "takeover", "token",
                       "attributes", "body"})
    equal((first["id"], first["scope"], first["attempt"]), (first["key"], "", 1))
    equal(first["attributes"], {"receives": 1})

    p.send_later(bodies[:5])  # The control: without --lines.
    p.consume(work="cat >/dev/null; echo x >>control")
    equal(len(ledger("control")), 5)


@test
def a_duplicate_is_replayed_and_not_seen():
    """A message with the key of one that is done, in the same batch or later, is
    deleted without the command seeing it, whichever way its record came about; the
    control without keys sees all."""
    p = Lines()
    bodies = [json.dumps({"order": i % 3}) for i in range(9)]
    p.queue.send(bodies)
    status, lines, _ = p.lines("-w", "3", "--key-from", ".order", "--lease", "3s")
    equal(status, 0)
    got = [word for word in outcomes(lines) if word != "busy"]
    equal(got, ["done"] * 3 + ["replayed"] * 6)
    equal(p.effects(), dict.fromkeys(bodies, 1))
    p.send_later(bodies)
    args = p.args("--key-from", ".order", "--until-empty", work="echo x >>plain")
    done = p.idem(*args, env=p.env)  # It prints what is on record.
    equal((done.status, ledger("plain"), p.queue.count()), (0, [], (0, 0)))
    equal(done.stdout.count(b'{"did":'), 9)
    p.send_later(['{"order":9}'])
    p.consume("--key-from", ".order", work="cat >/dev/null")
    p.send_later(['{"order":9}', '{"order":0,"other":1}'])
    _, lines, _ = p.lines("--key-from", ".order", *QUICK)
    equal(set(outcomes(lines)), {"replayed", "mismatch"})
    equal(len(p.effects()), 3)

    p.send_later(bodies)
    p.lines()  # The control: each message is its own operation.
    equal(sum(p.effects().values()), 3 + 9)


@test
def what_a_command_answers_is_the_outcome():
    """done, fail, retry, unknown and release are recorded as such, with the result as it
    was written and the error; at the last receive retry is a failure."""
    p = Lines(receives=2)
    words = ("plain", "number", "fail", "retry", "unknown", "release")
    p.queue.send(list(words))
    status, lines, _ = p.lines("--lease", "20s", "--retry-after", "1s")
    equal(status in (76, 79), True)
    equal(p.effects(), {"plain": 1, "number": 1, "fail": 1, "retry": 2, "unknown": 1,
                        "release": 2})
    kinds = {w: p.status(w)["status"] for w in words if w != "release"}
    equal(kinds, {"plain": "completed", "number": "completed", "fail": "failed",
                  "retry": "failed", "unknown": "unknown"})
    equal(p.takeovers("retry"), ["0", "1"])
    equal(p.takeovers("release"), ["0", "0"])
    equal(p.status("fail")["error"], "because of it")
    equal(p.queue.dead(), sorted(["fail", "retry", "unknown", "release"]))
    shown = p.idem("run", "-k", p.key_of("number"), "--fingerprint", "none", "--", "false")
    equal((shown.status, shown.stdout), (0, b"123456789012345678901234567890"))
    shown = p.idem("run", "-k", p.key_of("plain"), "--fingerprint", "none", "--", "false")
    equal(json.loads(shown.stdout), {"did": "plain"})


@test
def lines_that_are_no_answers_are_passed_on():
    """What is no answer goes to standard error, and the answer counts; the second one to
    the same message does not."""
    p = Lines()
    p.queue.send(["garbage", "twice", "next"])
    status, lines, said = p.lines()
    equal((status, outcomes(lines)), (0, ["done"] * 3))
    for text in ("garbage\n", "{\n", "[1]\n", '{"id":1}\n', '{"outcome":"done"}\n'):
        assert text in said, said
    assert "its first answer counts" in said, said
    equal(len(ledger("starts")), 1)
    equal(p.status("twice")["status"], "completed")


@test
def an_answer_to_an_earlier_delivery_does_not_count():
    """A message that is delivered again while the command still writes its second answer
    to the first delivery has the outcome that follows its own line."""
    p = Lines(receives=3)
    p.queue.send(["late"])
    _, lines, said = p.lines("--lease", "20s", "--visibility", "30s", "--retry-after", "1s")
    equal(set(outcomes(lines)), {"failed"})
    equal(p.status("late")["status"], "failed")
    equal(p.takeovers("late"), ["0", "1"])
    assert "an earlier delivery of its message again" in said, said


# ---- Commands that go wrong ----


@test
def poison_costs_its_own_message_only():
    """A command that kills itself, exits, hangs, falls mute, writes a line without end,
    answers another message or with a word that is none: its message is never taken for
    done, and the others flow on."""
    p = Lines(receives=2)
    poison = ["kill", "exit 0", "exit 75", "hang", "mute", "long"]
    healed = ["wrong", "nonsense", "killonce", "hangonce"]
    good = [f"good{i}" for i in range(6)]
    mixed = [*good[:3], *poison, *healed, *good[3:]]
    p.queue.send(mixed)
    status, lines, said = p.lines("-w", "4", *SLOW)
    equal(status, 79)
    equal(outcomes(lines).count("done"), len(good) + len(healed))
    equal(p.queue.dead(), sorted(poison))
    for body in good:
        equal((body, p.effects()[body]), (body, 1))
    for body in healed:
        equal((body, p.status(body)["status"]), (body, "completed"))
        equal((body, p.takeovers(body)), (body, ["0", "1"]))
    for body in poison:
        equal((body, p.status(body)["status"]), (body, "in_progress"))
    assert "a line of more than 1048576 bytes" in said, said
    assert "answered message not-this, which is not at work" in said, said
    assert "closed its standard output" in said, said
    equal([pid for pid in ledger("starts") if alive(pid)], [])


@test
def under_hold_a_crash_is_unknown():
    """Under hold no message whose command died is given again: a person looks."""
    p = Lines(receives=3)
    p.queue.send(["kill", "hang", "wrong", "good"])
    status, lines, _ = p.lines("-w", "2", *SLOW, "--on-expired-lease", "hold")
    equal(status, 76)
    equal(p.effects(), {"kill": 1, "hang": 1, "wrong": 1, "good": 1})
    equal(outcomes(lines).count("done"), 1)
    equal({p.status(b)["status"] for b in ("kill", "hang", "wrong")}, {"unknown"})


@test
def a_command_that_ends_between_messages_is_started_again():
    """A command that ends after an answer is no fault of the next message, which is
    given to another one, and none is given twice."""
    p = Lines(receives=1)
    bodies = [f"quit {i}" for i in range(6)]
    p.queue.send(bodies)
    status, lines, _ = p.lines()
    equal((status, outcomes(lines)), (0, ["done"] * 6))
    equal(p.effects(), dict.fromkeys(bodies, 1))
    equal(len(ledger("starts")), 6)


@test
def a_command_that_does_not_stay_is_not_started_in_haste():
    """A command that ends at once makes no message fail: it is started less and less
    often, and once it stays the messages are done."""
    p = Lines(receives=1)
    p.queue.send(["a", "b"])
    work = "echo x >>tries; test -e mended && exec python3 work.py; exit 1"
    with p.start("--lines", "--until-empty", work=work) as process:
        until(lambda: len(ledger("tries")) >= 4)
        equal(p.effects(), {})
        Path("mended").touch()
        equal(process.wait(60), 0)
    equal(p.effects(), {"a": 1, "b": 1})
    assert len(ledger("tries")) < 40, len(ledger("tries"))
    equal({r["status"] for r in p.records()}, {"completed"})


@test
def a_command_that_cannot_be_executed_stops_it_too():
    """As without --lines: the message goes back to the queue."""
    p = Lines()
    p.queue.send(["a"])
    status, lines, said = p.consume("--lines", work=["./nowhere"])
    equal((status, outcomes(lines)), (127, ["cannot execute"]))
    assert "cannot execute ./nowhere" in said, said
    equal(p.queue.count()[0], 1)
    for option in ("--on-failure=fail", "--capture=both"):
        got = p.idem("consume", "--queue", "q", "--lines", option, "--", "true")
        equal(got.status, 64)
        assert b"cannot go with --lines" in got.stderr, got.stderr


@test
def a_command_that_says_so_may_take_longer_than_its_lease():
    """The answer "working" renews the lease; without it the lease is how long a command
    may be silent, and --max-time bounds both."""
    p = Lines(visibility=60)
    p.queue.send(["slow 6"])
    _, lines, _ = p.lines("--lease", "4s")
    equal((outcomes(lines), p.effects()), (["done"], {"slow 6": 1}))
    p = Lines(receives=1)
    p.queue.send(["slow 600"])
    _, lines, said = p.lines(*QUICK, "--max-time", "3s")
    equal(set(outcomes(lines)), {"failed"})
    assert "--max-time" in said or p.status("slow 600")["status"] == "in_progress", said


# ---- Deaths and stops ----


def lone(p, body):
    p.queue.send([body])
    return p.begin("--lease", "30s", "-q")


@test
def a_consumer_that_is_killed_leaves_no_command():
    """The worker of a consumer that was killed ends its message, records it, and closes
    its command's input; the message comes back and is replayed."""
    p = Lines(visibility=3)
    with lone(p, "tree") as process:
        until(lambda: ledger("child"))
        process.kill()
        process.wait()
        Path("go").touch()
        until(lambda: not any(alive(pid) for pid in ledger("starts") + ledger("child")))
    until(lambda: p.status("tree")["status"] == "completed")
    until(lambda: "replayed" in outcomes(p.lines("--lease", "2s")[1]))
    equal(p.effects(), {"tree": 1})


@test
def a_worker_that_is_killed_takes_its_command_with_it():
    """Its supervisor ends the command and all that it started, and says so at once: the
    next run takes over long before the lease would have ended. The same for a
    supervisor that is killed."""
    for victim in ("idem-worker", "idem-supervisor"):
        for name in ("child", "starts", "go", "ledger", "lines"):
            Path(name).unlink(missing_ok=True)
        p = Lines(visibility=60, receives=5)
        p.queue.send(["tree"])
        with p.begin("--lease", "600s", "--retention", "3600s", "--retry-after", "1s") as process:
            until(lambda: ledger("child"))
            # The spawner, which is a child of the consumer, is the parent of the workers.
            os.kill(named(process.pid, victim)[0], signal.SIGKILL)
            first = [*ledger("child"), *ledger("starts")[:1]]
            until(lambda: not any(alive(pid) for pid in first))
            Path("go").touch()
            until(lambda: p.queue.count() == (0, 0))
        equal((victim, p.takeovers("tree")), (victim, ["0", "1"]))


@test
def a_worker_that_was_asleep_past_its_lease_has_lost_it():
    """A worker that is frozen with its consumer loses the lease: its supervisor ends the
    command in time, another consumer takes over, and what the sleeper finds when it
    wakes up is the other's record."""
    p = Lines(visibility=3, receives=9)
    p.queue.send(["wait"])
    with p.begin("--lease", "2s", "-q") as process:
        until(lambda: ledger("waits"))
        asleep = [process.pid, *named(process.pid, "idem-worker")]
        stop(*asleep)
        until(lambda: not alive(ledger("waits")[0]))
        Path("go").touch()
        until(lambda: "done" in outcomes(p.lines("--lease", "2s")[1]))
        for pid in asleep:
            os.kill(pid, signal.SIGCONT)
        time.sleep(2)
        process.terminate()
        equal(process.wait(60), 0)
    equal(p.takeovers("wait"), ["0", "1"])
    equal(p.status("wait")["status"], "completed")
    equal(len(p.records()), 1)


@test
def told_to_stop_it_lets_the_message_end():
    """The first SIGTERM, also where every process of the group gets it: the message at
    work is answered, recorded and deleted, the rest stays in the queue, and the command
    sees the end of its input. The second one ends the command."""
    p = Lines()
    with lone(p, "wait") as process:
        until(lambda: ledger("waits"))
        p.queue.send(["other"])
        for pid in [process.pid, *named(process.pid, "idem-worker"),
                    *named(process.pid, "idem-spawner")]:
            os.kill(pid, signal.SIGTERM)
        time.sleep(0.3)
        Path("go").touch()
        equal(process.wait(60), 0)
    equal(p.effects(), {"wait": 1})
    equal(ledger("ends"), ledger("starts"))
    until(lambda: sum(p.queue.count()) == 1)
    with p.begin(*QUICK, "-q") as process:  # The second signal.
        p.queue.send(["hang"])
        until(lambda: ledger("hung"))
        process.terminate()
        time.sleep(0.3)
        process.terminate()
        equal(process.wait(60), 0)
    equal([pid for pid in ledger("starts") if alive(pid)], [])
    equal(p.status("hang")["status"], "in_progress")


@test
def without_its_spawner_it_stops_and_says_so():
    """A consumer whose spawner was killed ends what is at work, and then itself."""
    p = Lines()
    p.queue.send(["quit 1"])
    with p.begin("-q") as process:
        until(lambda: p.queue.count() == (0, 0))
        os.kill(named(process.pid, "idem-spawner")[0], signal.SIGKILL)
        p.queue.send(["a"])
        equal(process.wait(60), 69)
    until(lambda: p.queue.count()[0] == 1 or p.queue.count()[1] == 1)


@test(rows=[24])
def while_the_store_is_away_the_command_sees_nothing():
    """With the store away no line is given and nothing is received; an outcome that it
    did not take is kept, and recorded without another run when it is back."""
    why = dynamo.missing("dynoxide")
    if why is not None:
        skip(why)
    with dynamo.server("dynoxide") as table, Between(table) as between:
        p = Lines(store=f"dynamodb://idem?endpoint={between.url}")
        p.idem("store", "create", env=p.env)
        p.queue.send(["wait", "b"])
        with p.begin("--lease", "30s", "-q", "--until-empty") as process:
            until(lambda: ledger("waits"))
            between.open = False
            Path("go").touch()
            until(lambda: kept("journal"), "the outcome is kept")
            time.sleep(3)  # The store is told for two seconds.
            equal(p.effects().get("wait"), 1)
            between.open = True
            equal(process.wait(90), 0)
        equal(p.effects(), {"wait": 1, "b": 1})
        equal(len(ledger("starts")), 1)


@test
def the_example_books_each_order_once():
    """examples/lines/handle.py, with duplicates and poison."""
    p = Place(receives=3)
    orders = [json.dumps({"orderId": f"o{i % 10}", "sum": i % 10}) for i in range(30)]
    p.queue.send(orders)
    status, lines, _ = p.consume("--lines", "-w", "3", "--key-from", ".orderId", "-q",
                                 "--retry-after", "1s", work=[str(EXAMPLE), "orders.db"])
    equal(status, 79)  # The order of nothing.
    equal(outcomes(lines).count("done"), 9)
    with sqlite3.connect("orders.db") as db:
        equal(db.execute("SELECT count(*), sum(sum) FROM orders").fetchall(), [(9, 45)])
    equal(len(p.queue.dead()), 3)


main()
