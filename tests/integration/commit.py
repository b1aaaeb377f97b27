"""An order in DynamoDB tables and its record in one transaction, under kill -9 and
lost answers: examples/order.c."""

import collections
import contextlib
import json
import os
import random
import subprocess
import sys
import urllib.error

import dynamo
from kill_storm import Storm
from tap import LONG, PROGRAM, TOP, Result, equal, main, test

sys.path.insert(0, os.path.join(TOP, "tests", "chaos"))

import proxy  # noqa: E402

ORDER = os.path.join(os.path.dirname(PROGRAM), "examples/example-order")
KILLS = 600 if LONG else 30
CLIENTS = 6
COUNT = 3
STOCK = 1_000_000
RATE = 0.2


class Shop:
    """A table with orders and stock, beside the table of the records."""

    def __init__(self, url):
        self.server = url
        self.url = url  # Where orders go: perhaps to a proxy.
        made = self.idem("store", "create")
        equal((made.returncode, made.stderr), (0, ""))
        dynamo.make_table(url, "shop")
        item = {"id": {"S": "stock-lamp"}, "left": {"N": str(STOCK)}}
        self.call("PutItem", TableName="shop", Item=item)

    def call(self, operation, **body):
        return dynamo.call(self.server, operation, body)

    def idem(self, *args):
        env = dict(dynamo.environment(), IDEM_STORE=self.store(self.server), HOME=os.getcwd())
        return subprocess.run([PROGRAM, *args], env=env, capture_output=True, text=True)

    def store(self, url):
        return f"dynamodb://records?endpoint={url}&region=eu-west-1"

    def command(self, key, *options, count=COUNT, item="lamp"):
        return [ORDER, *options, self.store(self.url), "shop", key, item, str(count)]

    def order(self, *args, **how):
        done = subprocess.run(
            self.command(*args, **how), env=dynamo.environment(), capture_output=True
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def items(self):
        found, start = [], {}
        while True:
            page = self.call("Scan", TableName="shop", ConsistentRead=True, **start)
            found += page["Items"]
            if "LastEvaluatedKey" not in page:
                return {item["id"]["S"]: item for item in found}
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def counted(self):
        """How many orders each key has."""
        items = self.items().values()
        return collections.Counter(item["key"]["S"] for item in items if "key" in item)

    def orders(self):
        """The same; and what is gone from the stock is what was ordered."""
        items = self.items()
        left = int(items.pop("stock-lamp")["left"]["N"])
        equal(left, STOCK - sum(int(item["count"]["N"]) for item in items.values()))
        return collections.Counter(item["key"]["S"] for item in items.values())

    def records(self):
        """What each key has on record: status, and receipt."""
        exported = self.idem("export")
        equal((exported.returncode, exported.stderr), (0, ""))
        return [json.loads(line) for line in exported.stdout.splitlines() if '"key"' in line]

    def assert_once(self, keys):
        """Each of @keys has one order and one completed record; nothing else has
        either, and none is in progress or anything else."""
        records = self.records()
        statuses = collections.Counter(r["status"] for r in records)
        equal(set(statuses) - {"completed"}, set())
        equal(collections.Counter(r["key"] for r in records), collections.Counter(set(keys)))
        equal(self.orders(), collections.Counter(set(keys)))


@contextlib.contextmanager
def shop(kind):
    with dynamo.server(kind) as url:
        yield Shop(url)


# ---- An order, and its replay ----


def serves(kind):
    """Order, replay, mismatch, refusal: both forms, on a real server."""
    with shop(kind) as place:
        done = []
        for options in ((), ("--in-two-steps",)):
            key = f"k{len(options)}"
            first = place.order(key, *options)
            equal((first.status, first.stderr), (0, b""))
            assert first.stdout.startswith(b"order-") and b": 3 of lamp\n" in first.stdout
            equal(place.order(key, *options), first)
            equal(place.order(key, *options, count=4).status, 65)
            # Refused: not enough of it. Nothing stays, and a smaller one goes.
            sold = place.order(f"r{key}", *options, count=STOCK + 1)
            equal((sold.status, sold.stdout), (1, b""))
            assert b"not enough in stock" in sold.stderr, sold
            # No such item to take from: refused by its condition as well.
            equal(place.order(f"n{key}", *options, item="chair").status, 1)
            done.append(key)
            live = [r for r in place.records() if r["status"] != "released"]
            equal(sorted(r["key"] for r in live), done)
            equal(place.orders(), collections.Counter(done))
            # The service cannot do it: a table that is not there.
            command = place.command(f"t{key}", *options)
            command[command.index("shop")] = "nothing"
            got = subprocess.run(command, env=dynamo.environment(), capture_output=True)
            equal((got.returncode, got.stdout), (1, b""))
            equal(place.orders(), collections.Counter(done))


@test(rows=[17])
def local_serves():
    """On DynamoDB Local an order and its record are there together, or neither is."""
    serves("local")


# ---- A storm of kills and lost answers ----


def impatient(rng):
    """Mostly the time that an undisturbed order takes."""
    return rng.uniform(0.005, 0.15) if rng.random() < 0.5 else 20


# Those that lose, double or delay a write, and that refuse it for a while.
CLASSES = (
    *("reset before", "reset after", "no answer, not applied", "no answer, applied"),
    *("half closed, applied late", "twice", "a late copy", "500 before", "500 after"),
    *("throttled", "transaction conflict", "transaction in progress", "bad crc32"),
)


def storm_of(*options):
    with shop("dynoxide") as place:
        with proxy.chaos(place.server, 7, RATE, CLASSES) as between:
            place.url = between.url
            storm = Storm(
                lambda key: place.command(key, *options), KILLS, impatient, CLIENTS,
                env=dynamo.environment(), refusal=b"order:",
            ).blow()
            hits = between.hits
        # What was still under way when the last client went has come by now.
        place.assert_once(storm.answered())
        # Each receipt names an order that is there.
        ids = {next(iter(r)).split(b":")[0].decode() for r in storm.receipts.values()}
        equal(ids, set(place.items()) - {"stock-lamp"})
        assert storm.kills >= KILLS and sum(hits.values()) > 10, (storm.kills, hits)
        print(
            f"# {' '.join(options) or 'at once'}: {storm.kills} kills, {sum(hits.values())} "
            f"faults in {between.requests} requests, {len(storm.receipts)} keys, "
            f"{storm.tries} tries"
        )


@test(rows=[11, 13])
def a_storm_doubles_nothing():
    """Under kill -9 and lost answers orders equal completed records, one each:
    claim, order and completion in one transaction."""
    storm_of()


@test(rows=[11, 13])
def a_storm_doubles_nothing_in_two_steps():
    """The same where the key is claimed first; leases run out and are taken over."""
    storm_of("--in-two-steps")


def ordered(url, key, rng):
    """What a client without idem does: the same two writes in one transaction.
    False: no answer came, or not that it was done."""
    row = {"id": {"S": f"order-{rng.getrandbits(128):x}"}, "key": {"S": key}}
    row["count"] = {"N": str(COUNT)}
    take = {
        "TableName": "shop",
        "Key": {"id": {"S": "stock-lamp"}},
        "UpdateExpression": "SET #left = #left - :n",
        "ExpressionAttributeNames": {"#left": "left"},
        "ExpressionAttributeValues": {":n": {"N": str(COUNT)}},
    }
    writes = [{"Put": {"TableName": "shop", "Item": row}}, {"Update": take}]
    try:
        dynamo.call(url, "TransactWriteItems", {"TransactItems": writes}, seconds=1)
    except (OSError, urllib.error.URLError, ValueError):
        return False
    return True


@test
def the_control_doubles():
    """The control: the same transaction without idem, tried again when its answer
    does not come, orders twice."""
    with shop("dynoxide") as place:
        rng = random.Random(1)
        tries = n = 0
        with proxy.chaos(place.server, 7, RATE, CLASSES) as between:
            while n < 20 or (n < 500 and max(place.counted().values()) == 1):
                n += 1
                while not ordered(between.url, f"k{n}", rng):
                    tries += 1
        counts = place.counted()
        left = int(place.items()["stock-lamp"]["left"]["N"])
        doubled = [key for key, times in counts.items() if times > 1]
        assert doubled, f"none of {n} keys, with {tries} tries in vain"
        print(
            f"# without idem: {len(doubled)} of {n} keys were ordered twice, and "
            f"{STOCK - left} lamps are gone for {n * COUNT}"
        )
        assert STOCK - left > n * COUNT


if __name__ == "__main__":
    main()
