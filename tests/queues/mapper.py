"""From a queue into functions: `idem lambda` behind an event-source mapping, with
duplicates, poison and time-outs."""

import collections
import contextlib
import json
import os
import random
import sys

from files import write
import sqs
from rig import Between, Place, error, ledger
from tap import LONG, equal, main, note, test

from lambda_api import Answer, Sandbox
from event_source import Mapping, failures

SEED = int(os.environ.get("IDEM_TEST_SEED", "1"))
BOOTSTRAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bootstrap.py")

# The order is in the body, so that it knows it without idem too. What it writes is
# the effect; an order that stalls does so after that, the first time only.
HANDLER = r"""#!/bin/sh
read -r event
order=${event#*order\\\":\ \\\"}
order=${order%%\\*}
case $order in
refused*) echo "$order" >>"$LEDGER.poison"
    echo '{"errorType": "Refused", "errorMessage": "no such article"}'; exit 1;;
esac
printf '%-63s\n' "$order ${IDEM_FENCE:-0} ${IDEM_TAKEOVER:-0}" >>"$LEDGER"
case $order in
k*) sleep 0.01;;
stall*) test -e "$LEDGER.stalled" || { : >"$LEDGER.stalled"; sleep 60; };;
esac
echo "{\"order\": \"$order\"}"
"""


def message(order):
    return json.dumps({"order": order})


def order_of(body):
    return json.loads(body)["order"]


class Function(contextlib.ExitStack):
    """A queue, and a function in @count sandboxes, which may be without idem."""

    def __init__(self, count=1, name="ledger", idem=True, visibility=2, env=None, receives=3):
        super().__init__()
        write("handler", HANDLER, 0o755)
        store = "sqlite:" + os.path.abspath(f"{name}.db")
        self.place = Place(visibility=visibility, receives=receives, store=store)
        self.queue = self.place.queue
        self.name = name
        environment = {
            "IDEM_STORE": store,
            "IDEM_LAMBDA_KEY": ".body | fromjson | .order",
            "IDEM_LAMBDA_OUTCOME": "Refused=fail",
            "LEDGER": os.path.abspath(name),
            **(env or {}),
        }
        program = None if idem else [sys.executable, BOOTSTRAP]
        self.boxes = [
            self.enter_context(Sandbox("./handler", environment, program))
            for _ in range(count)
        ]

    def mapping(self, **options):
        return Mapping(self.queue, self.boxes, **options)

    def effects(self):
        """The orders that were carried out, and each time whether as a takeover."""
        found = collections.defaultdict(list)
        for line in ledger(self.name):
            order, _, takeover = line.split()
            found[order].append(int(takeover))
        return dict(found)

    def records(self):
        return {r["key"]: r for r in self.place.records()}

    def wait_empty(self, seconds=60):
        self.queue.wait_empty(seconds)


# ---- The mapping itself ----


@test
def answers_are_read_as_lambda_reads_them():
    """Nothing, null and an empty list of failures are a success; what cannot be read, or
    names no message of the batch, leaves all of it to the queue."""
    for body, left in (
        (b"null", ""),
        (b"{}", ""),
        (b'{"batchItemFailures": null}', ""),
        (b'{"batchItemFailures": []}', ""),
        (b'{"batchItemFailures": [{"itemIdentifier": "b"}]}', "b"),
        (b'{"batchItemFailures": [{"itemIdentifier": "z"}]}', "abc"),
        (b'{"batchItemFailures": [{"itemIdentifier": ""}]}', "abc"),
        (b'{"batchItemFailures": [{"itemIdentifier": null}]}', "abc"),
        (b'{"batchItemFailures": [{"id": "b"}]}', "abc"),
        (b'{"batchItemFailures": "b"}', "abc"),
        (b"no JSON", "abc"),
    ):
        got = failures(Answer("response", body, None, None), list("abc"))
        equal((body, got), (body, set(left)))
    for kind in ("error", "timeout", "exit"):
        equal(failures(Answer(kind, b"null", None, None), list("abc")), set("abc"))


# ---- Duplicates and poison ----


class Orders:
    """@count orders: a fifth sent twice, others of which one deletion gets lost."""

    def __init__(self, count, poison, rng):
        self.good = [f"k{i}" for i in range(count)]
        self.poison = [f"refused{i}" for i in range(poison)]
        mixed = rng.sample(self.good, len(self.good))
        self.twice, self.lost = mixed[: count // 5], mixed[count // 5 : 2 * count // 5]
        self.sent = self.good + self.twice + self.poison
        rng.shuffle(self.sent)

    def loses(self, found):
        """The first time."""
        first = found["Attributes"]["ApproximateReceiveCount"] == "1"
        return first and order_of(found["Body"]) in self.lost


class Checked:
    """Every so often asks the store about what is about to be deleted."""

    def __init__(self, place, each):
        self.place, self.each = place, each
        self.seen = self.checked = 0
        self.wrong = []

    def __call__(self, messages):
        for found in messages:
            self.seen += 1
            if self.seen % self.each == 0:
                self.checked += 1
                self.check(order_of(found["Body"]))

    def check(self, order):
        status = self.place.status(order, "-s", "pay")
        if status != "completed":
            self.wrong.append((order, status))


def carry_out(function, orders, check):
    function.queue.send([message(order) for order in orders.sent])
    with function.mapping(loses=orders.loses, before=check) as mapping:
        function.wait_empty(3000 if LONG else 120)
    return mapping


def told(mapping, effects):
    counts = mapping.counts
    ran = sum(map(len, effects.values()))
    return (
        f"{counts['messages']} deliveries in {counts['batches']} batches, {ran} effects "
        f"of {len(effects)} orders; {counts['deleted']} deleted, {counts['reported']} "
        f"reported, {counts['lost']} deletions lost"
    )


@test(rows=[63])
def every_order_is_carried_out_once():
    """Orders of which a fifth are sent twice, and others come again because their
    deletion was lost: each has one effect and one record, completed before its message
    was deleted; only poison is in the dead-letter queue, run once and on record as
    failed."""
    count, poison = (2000, 20) if LONG else (100, 1)
    orders = Orders(count, poison, random.Random(SEED))
    with Function(3, visibility=8) as function:
        check = Checked(function.place, 8)
        mapping = carry_out(function, orders, check)
        records, effects = function.records(), function.effects()
        dead = [order_of(body) for body in function.queue.dead()]
        kills = sum(box.kills for box in function.boxes)
    equal(effects, {order: [0] for order in orders.good})
    equal({k: r["status"] for k, r in records.items()},
          {**dict.fromkeys(orders.good, "completed"),
           **dict.fromkeys(orders.poison, "failed")})  # fmt: skip
    equal({r["attempts"] for r in records.values()}, {1})
    equal(dead, sorted(orders.poison))
    equal(sorted(ledger("ledger.poison")), sorted(orders.poison))
    for order in orders.poison:
        equal(mapping.ends(f'"{order}"'), ["reported"] * 3)
    equal((check.wrong, kills), ([], 0))
    assert check.checked >= count // 10, check.checked
    equal(mapping.counts["lost"], len(orders.lost))
    again = mapping.counts["messages"] - len(orders.good) - 3 * poison
    assert again >= len(orders.twice) + len(orders.lost), again
    good = [d for d in mapping.deliveries if order_of(d.body) in records]
    busy = sum(d.end == "reported" for d in good) - 3 * poison
    note(f"seed {SEED}: {told(mapping, effects)}")
    note(
        f"{again} deliveries of duplicates, {busy} of them while the first was in "
        f"flight; {check.checked} of {check.seen} deletions compared with the store; "
        f"{len(dead)} in the dead-letter queue"
    )


@test
def the_control_carries_orders_out_twice():
    """The control: the same handler on the same messages, without idem, has double
    effects."""
    orders = Orders(30, 0, random.Random(SEED))
    with Function(2, idem=False, visibility=1) as function:
        mapping = carry_out(function, orders, lambda messages: None)
        effects = function.effects()
    double = sorted(order for order, ran in effects.items() if len(ran) > 1)
    equal(set(effects), set(orders.good))
    assert set(double) >= set(orders.twice + orders.lost), double
    note(f"{told(mapping, effects)}; {len(double)} orders carried out more than once")


# ---- In flight ----


def held_elsewhere(name, lease, credentials=True, visibility=2, **env):
    """What becomes of a message that is received while another owner is at work, whose
    lease is longer than three visibilities: its deliveries, who is dead, and the log."""
    own = {k: v for k, v in sqs.environment(sqs.shared()).items() if v is not None}
    env = {**own, **env} if credentials else env
    with Function(name=name, env=env, visibility=visibility) as function:
        # The event that Lambda makes has the ARN of its queue; the rest of the URL may differ.
        begun = ("begin", "-s", "pay", "-k", "held", "--lease", lease, "--on-expired-lease", "rerun")
        equal(function.place.idem(*begun).status, 0)
        with function.mapping() as mapping:
            function.queue.send([message("held"), message("free")])
            function.wait_empty()
        dead = [order_of(body) for body in function.queue.dead()]
        (box,) = function.boxes
        return mapping.deliveries, dead, function.effects(), box.lines()


@test(rows=[64])
def a_duplicate_is_hidden_until_the_other_can_be_over():
    """A message whose key is at work elsewhere is hidden in its queue until that lease
    ends: it is received twice in all, and then done as a takeover. The control: without
    credentials for the queue, it is counted out, and is in the dead-letter queue."""
    found, dead, effects, _ = held_elsewhere("hidden", "20s", visibility=6)
    held = [(d.receives, d.end) for d in found if order_of(d.body) == "held"]
    equal((held, dead), ([(1, "reported"), (2, "deleted")], []))
    equal(effects, {"free": [0], "held": [1]})

    found, dead, effects, _ = held_elsewhere("left", "1h", credentials=False)
    equal([d.end for d in found if order_of(d.body) == "held"], ["reported"] * 3)
    equal((dead, effects), (["held"], {"free": [0]}))


def queue_answers(visibility, change=(200, {"Successful": [], "Failed": []})):
    """A rule for Between: a queue of this visibility, and how it takes a change of it."""
    answers = {
        "GetQueueUrl": (200, {"QueueUrl": "http://127.0.0.1/000000000000/q"}),
        "GetQueueAttributes": (200, {"Attributes": {"VisibilityTimeout": visibility}}),
        "ChangeMessageVisibilityBatch": change,
    }
    return lambda action, _: answers[action]


@test
def a_queue_that_may_not_be_told_is_left_alone():
    """Where the function may not change the visibility, that is said once, nothing is
    asked again, and the queue goes on as without."""
    denied = error("AccessDeniedException", 403)
    with Between(sqs.shared(), queue_answers("2", denied)) as between:
        found, dead, effects, lines = held_elsewhere(
            "denied", "1h", AWS_ENDPOINT_URL_SQS=between.url
        )
        equal(between.count("ChangeMessageVisibilityBatch"), 1)
        (asked,) = [b for a, b in between.seen if a.startswith("Change")]
    equal([3500 < e["VisibilityTimeout"] <= 3602 for e in asked["Entries"]], [True])
    equal([d.end for d in found if order_of(d.body) == "held"], ["reported"] * 3)
    equal((dead, effects), (["held"], {"free": [0]}))
    said = [line for line in lines if "sqs:ChangeMessageVisibility" in line["message"]]
    equal([line["level"] for line in said], ["WARN"])


@test
def a_message_comes_when_its_pause_is_over():
    """A message that is to be run again is hidden for just its pause, when it failed and
    when it comes too early; shorter than the queue would hide it, too."""
    own = {k: v for k, v in sqs.environment(sqs.shared()).items() if v is not None}
    for pause, least, most in (("1h", 3500, 3600), ("1s", 1, 1)):
        with Between(sqs.shared(), queue_answers("30")) as between:
            env = {**own, "AWS_ENDPOINT_URL_SQS": between.url, "IDEM_LAMBDA_RETRY_AFTER": pause,
                   "IDEM_LAMBDA_OUTCOME": ""}  # fmt: skip
            with Function(name=pause, env=env, receives=2) as function:
                with function.mapping():
                    function.queue.send([message("refused")])
                    function.wait_empty()
            asked = [b for a, b in between.seen if a.startswith("Change")]
        found = [e["VisibilityTimeout"] for body in asked for e in body["Entries"]]
        assert found and all(least <= s <= most for s in found), (pause, found)
        equal(len(found), 2)


@test
def a_queue_of_another_region_is_not_asked():
    """An event that names a queue outside the function's region sends no request: that is
    said once. The control: in its own region the queue is asked."""
    for name, region in (("there", "us-gov-west-1"), ("here", sqs.REGION)):
        with Between(sqs.shared(), queue_answers("2")) as between:
            _, _, _, lines = held_elsewhere(
                name, "1h", AWS_ENDPOINT_URL_SQS=between.url, AWS_REGION=region
            )
            asked = {action for action, _ in between.seen}
        said = [line for line in lines if "of another region" in line["message"]]
        if name == "there":
            equal((asked, [line["level"] for line in said]), (set(), ["WARN"]))
        else:
            equal((asked & {"ChangeMessageVisibilityBatch"}, said),
                  ({"ChangeMessageVisibilityBatch"}, []))


if __name__ == "__main__":
    main()
