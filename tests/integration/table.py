"""The table in memory of the unit tests answers as real servers do.

Each request goes to that table, to DynamoDB Local and to dynoxide, and the answers
are compared: requests that ops of every kind make, and requests by chance.
"""

import base64
import contextlib
import http.client
import json
import os
import random
import re
import subprocess
import urllib.parse
from collections import Counter

import dynamo
from tap import LONG, PROGRAM, equal, main, test

CLIENT = os.path.join(
    os.path.dirname(PROGRAM), "tests", "integration", "table_client"
)
TABLE = "table"
MADE = 1_500  # A few dozen items, which all pages can hold.
SEEDS = 20 if LONG else 1
RANDOM = 20_000 if LONG else 1_000


class Memory:
    """The table in memory."""

    def __init__(self):
        self.process = subprocess.Popen(
            [CLIENT, "answer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1 << 20,
        )

    def __call__(self, operation, body):
        self.process.stdin.write(f"{operation} {json.dumps(body)}\n")
        self.process.stdin.flush()
        status, _, answer = self.process.stdout.readline().partition(" ")
        return int(status), json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        equal(self.process.wait(), 0)


class Real:
    """A table on a server."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port)

    def __call__(self, operation, body):
        credential = "AKIDEXAMPLE/20260101/eu-west-1/dynamodb/aws4_request"
        self.connection.request(
            "POST",
            "/",
            json.dumps(body),
            {
                "Content-Type": "application/x-amz-json-1.0",
                "X-Amz-Target": "DynamoDB_20120810." + operation,
                "X-Amz-Date": "20260101T000000Z",
                "Authorization": f"AWS4-HMAC-SHA256 Credential={credential}, "
                "SignedHeaders=host, Signature=00",
            },
        )
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def close(self):
        self.connection.close()


def new_table(kind):
    """An empty table on a server that is started if it is not there."""
    url = dynamo.shared(kind)
    table = Real(url)
    table("DeleteTable", {"TableName": TABLE})
    place = f"dynamodb://{TABLE}?endpoint={url}"
    made = subprocess.run(
        [PROGRAM, "store", "create", "--store", place],
        env=dict(dynamo.environment(), HOME=os.getcwd()),
        capture_output=True,
    )
    equal((made.returncode, made.stderr), (0, b""))
    return table


@contextlib.contextmanager
def tables():
    """{name: table}, all of them empty: the one in memory, and one on each server."""
    with contextlib.ExitStack() as stack:
        found = {"memory": Memory()}
        stack.callback(found["memory"].close)
        for kind in dynamo.KINDS:
            found[kind] = new_table(kind)
            stack.callback(found[kind].close)
        yield found


# ---- Comparing ----


def identity(item):
    return json.dumps(item, sort_keys=True)


def without_order(answer):
    """@answer, with lists that have no order in the order of their items."""
    answer.get("Items", []).sort(key=identity)
    for name in ("Responses", "UnprocessedItems"):
        for items in answer.get(name, {}).values():
            items.sort(key=identity)
    return answer


def normal(status, answer):
    """What is compared: all but the words for people."""
    answer = dict(answer)
    answer.pop("message", None)
    answer.pop("Message", None)
    answer.pop("ConsumedCapacity", None)  # The one in memory bills nobody.
    reasons = answer.get("CancellationReasons", [])
    for reason in reasons:
        reason.pop("Message", None)
    return status, without_order(answer)


def where(a, b):
    """The first place where two answers differ: (path, what is in each)."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        parts = a.keys()
    elif isinstance(a, (list, tuple)) and isinstance(b, type(a)) and len(a) == len(b):
        parts = range(len(a))
    else:
        return "", a, b
    part = next(part for part in parts if a[part] != b[part])
    path, *both = where(a[part], b[part])
    return f"[{part!r}]{path}", *both


class Difference(AssertionError):
    """Two tables have answered one request in two ways."""


class Comparison:
    """The same requests to all tables, which must answer alike."""

    def __init__(self, found, change=None):
        self.tables = found
        self.change = change  # Of what memory is asked: a planted difference.
        self.requests = 0
        self.refused = 0

    def ask(self, operation, body):
        answers = {}
        for name, table in self.tables.items():
            asked = body
            if name == "memory" and self.change is not None:
                asked = self.change(operation, json.loads(json.dumps(body)))
            answers[name] = normal(*table(operation, asked))
        self.requests += 1
        self.refused += answers["local"][0] != 200
        for name, answer in answers.items():
            if answer != answers["local"]:
                at, there, here = where(answers["local"], answer)
                raise Difference(
                    f"request {self.requests}, {operation} {json.dumps(body)[:600]}\n"
                    f"local{at}: {str(there)[:300]}\n{name}{at}: {str(here)[:300]}"
                )
        return answers["local"]

    def walk(self, operation, body):
        """All pages of each table by its own cursor: what they hold together."""
        seen = {}
        for name, table in self.tables.items():
            pages, items, after = [], [], {}
            while True:
                status, answer = table(operation, {**body, **after})
                equal(status, 200)
                pages.append(answer["ScannedCount"])
                assert answer["Count"] == len(answer["Items"]), answer
                items += answer["Items"]
                if "LastEvaluatedKey" not in answer:
                    break
                after = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
            if operation == "Query":
                since = [int(item["since"]["N"]) for item in items]
                equal((name, since), (name, sorted(since)))
            seen[name] = (pages, sorted(map(identity, items)))
            self.requests += len(pages)
        for name, found in seen.items():
            if found != seen["local"]:
                raise Difference(f"{operation} {body}\nlocal {seen['local']}\n{name} {found}")


def report(compared):
    print(f"# {compared.requests} requests, {compared.refused} of them refused")


# ---- Requests of ops ----


def made(seed, number):
    """Requests as ops make them: (operation, body)."""
    done = subprocess.run(
        [CLIENT, "make", str(seed), str(number)], capture_output=True, text=True
    )
    equal((done.returncode, done.stderr), (0, ""))
    for line in done.stdout.splitlines():
        target, _, body = line.partition(" ")
        yield target.rpartition(".")[2], json.loads(body)


@test
def answers_the_requests_of_ops_alike():
    """Claims, ends, renewals, takeovers, looks, lists and purges: all tables answer
    all of their requests alike."""
    for seed in range(1, SEEDS + 1):
        with tables() as found:
            compared = Comparison(found)
            kinds = Counter()
            for operation, body in made(seed, MADE):
                compared.ask(operation, body)
                kinds[operation] += 1
        report(compared)
        print("#", dict(kinds))
        equal(sorted(kinds), ["BatchGetItem", "BatchWriteItem", "DeleteItem", "GetItem",
                              "PutItem", "Query", "Scan"])


# ---- Requests by chance ----


class Chance:
    """Requests of the form that ops have, on few items with few values."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = [f"{n:064x}" for n in range(6)]

    def b(self):
        return {"B": base64.b64encode(bytes([self.random.randrange(3)]) * 5).decode()}

    def key(self):
        return {"id": {"S": self.random.choice(self.names)}}

    def item(self):
        item = {**self.key(), "rec": self.b(), "scope": {"S": ""}}
        if self.random.random() < 0.5:
            item["open"] = {"S": self.random.choice("0f")}
            item["since"] = {"N": str(self.random.randrange(5, 2000))}
        if self.random.random() < 0.3:
            item["ttl"] = {"N": "4102444800"}
        if self.random.random() < 0.2:
            item["body"] = self.b()
            item["made"] = {"N": str(self.random.randrange(3))}
        return item

    def condition(self, absent):
        if absent:
            return {"ConditionExpression": "attribute_not_exists(id)"}
        return {
            "ConditionExpression": "rec = :r",
            "ExpressionAttributeValues": {":r": self.b()},
        }

    def put(self):
        body = {"TableName": TABLE, "Item": self.item()}
        body.update(self.condition(absent=self.random.random() < 0.5))
        if self.random.random() < 0.8:
            body["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return "PutItem", body

    def get(self):
        return "GetItem", {"TableName": TABLE, "Key": self.key(), "ConsistentRead": True}

    def delete(self):
        body = {"TableName": TABLE, "Key": self.key(), **self.condition(absent=False)}
        if self.random.random() < 0.3:
            body["ConditionExpression"] = "made = :m"
            body["ExpressionAttributeValues"] = {":m": {"N": str(self.random.randrange(3))}}
        if self.random.random() < 0.5:
            body["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return "DeleteItem", body

    def batch_write(self):
        some = self.random.sample(self.names, self.random.randrange(1, 5))
        requests = [
            {"PutRequest": {"Item": {**self.item(), "id": {"S": name}}}}
            if self.random.random() < 0.6
            else {"DeleteRequest": {"Key": {"id": {"S": name}}}}
            for name in some
        ]
        return "BatchWriteItem", {"RequestItems": {TABLE: requests}}

    def batch_get(self):
        some = self.random.sample(self.names, self.random.randrange(1, 7))
        keys = [{"id": {"S": name}} for name in some]
        return "BatchGetItem", {"RequestItems": {TABLE: {"ConsistentRead": True, "Keys": keys}}}

    def transact(self):
        """A conditional write, as ops have it, and others on other items."""
        some = self.random.sample(self.names, self.random.randrange(2, 5))
        writes = []
        for name in some:
            key = {"id": {"S": name}}
            write = {"TableName": TABLE, **self.condition(absent=self.random.random() < 0.5)}
            if self.random.random() < 0.5:
                write["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
            verb = self.random.choice(("Put", "Delete", "ConditionCheck")) if writes else "Put"
            write.update({"Item": {**self.item(), **key}} if verb == "Put" else {"Key": key})
            writes.append({verb: write})
        token = f"{self.random.getrandbits(128):032x}"
        return "TransactWriteItems", {"TransactItems": writes, "ClientRequestToken": token}

    def update(self):
        """A limit counts a request, remembers its refusal, or moves entries out."""
        few = [self.random.randrange(8) for _ in range(3)]
        moves = self.random.choice((0, 1, 1, 2, 2))
        names = {"#t": "ttl", "#r": f"r{few[0]}"}
        numbers = {":t": 9, ":m": 9 * few[1], ":l": few[1], ":c": 1, ":z": 0, ":e": -few[2]}
        numbers |= {":n": few[2], ":g": moves, ":h": self.random.choice((1, 2))}
        update, condition = self.random.choice((
            ("SET #r = :m - if_not_exists(lim, :z), lim = if_not_exists(lim, :z) + :c, #t = :t",
             "attribute_not_exists(#r) AND (attribute_not_exists(lim) OR lim <= :m) AND "),
            ("SET #r = :e, refs = :n, #t = :t",
             "attribute_not_exists(#r) AND lim = :l AND (attribute_not_exists(refs) OR refs < :n)"
             " AND "),
            ("SET gen = :h REMOVE #0,#1", ""),
        ))  # fmt: skip
        if not condition:
            names = {"#0": f"r{few[0]}", "#1": f"r{few[1]}"}
            if len(set(names.values())) == 1:
                names["#1"] = "rother"
        if condition and self.random.random() < 0.7:
            condition = condition.removesuffix(" AND ")
        else:
            condition += "gen = :g" if moves else "attribute_not_exists(gen)"
        used = {word for word in re.findall(r":\w", update + condition)}
        return "UpdateItem", {
            "TableName": TABLE,
            "Key": self.key(),
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {w: {"N": str(numbers[w])} for w in sorted(used)},
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def any(self):
        kinds = (self.put, self.put, self.put, self.get, self.delete, self.batch_write,
                 self.batch_get)
        return self.random.choice(kinds)()

    def walk(self):
        limit = self.random.randrange(1, 8)
        if self.random.random() < 0.2:
            return "Scan", {
                "TableName": TABLE,
                "ConsistentRead": True,
                "Limit": limit,
                "FilterExpression": "attribute_not_exists(lim)",
                "ProjectionExpression": "id,made,#s",
                "ExpressionAttributeNames": {"#s": "scope"},
            }
        if self.random.random() < 0.5:
            return "Scan", {
                "TableName": TABLE,
                "ConsistentRead": True,
                "Limit": limit,
                "FilterExpression": "attribute_not_exists(body)",
            }
        return "Query", {
            "TableName": TABLE,
            "IndexName": "open",
            "Limit": limit,
            "KeyConditionExpression": "#o = :o",
            "ExpressionAttributeNames": {"#o": "open"},
            "ExpressionAttributeValues": {":o": {"S": self.random.choice("0f")}},
        }


def by_chance(compared, seed, number):
    chance = Chance(seed)
    while compared.requests < number:
        compared.ask(*chance.any())
        if chance.random.random() < 0.05:
            compared.walk(*chance.walk())


@contextlib.contextmanager
def comparison():
    with tables() as found:
        compared = Comparison(found)
        yield compared
        report(compared)


@test(given=comparison)
def answers_requests_by_chance_alike(compared):
    """Conditions that hold and that do not, with and without the old item, batches,
    and walks in pages of any size: all tables answer alike."""
    by_chance(compared, seed=2, number=RANDOM)


@test(rows=[17], given=comparison)
def answers_transactions_alike(compared):
    """Transactions of two to four conditional writes, and what stood in the way of
    which of them: all tables answer alike."""
    chance = Chance(4)
    reasons = Counter()
    while compared.requests < RANDOM // 2:
        _status, answer = compared.ask(*chance.transact())
        reasons.update(r["Code"] for r in answer.get("CancellationReasons", []))
        compared.ask(*chance.get())
    print("#", dict(reasons))
    equal(sorted(reasons), ["ConditionalCheckFailed", "None"])


@test(given=comparison)
def answers_updates_of_limits_alike(compared):
    """Updates that count, refuse and move, whose conditions hold and do not: all tables
    answer alike."""
    chance = Chance(5)
    statuses = Counter()
    while compared.requests < RANDOM // 2:
        status, _answer = compared.ask(*chance.update())
        statuses[status] += 1
        compared.ask(*chance.get())
    assert min(statuses[200], statuses[400]) > RANDOM // 20, statuses


# ---- Controls ----


def drop(name):
    """A table that does not heed the member @name of a request."""

    def change(_operation, body):
        body.pop(name, None)
        return body

    return change


def keep_deleted(operation, body):
    """A table that deletes nothing: it is asked to look instead."""
    if operation == "BatchWriteItem":
        some = body["RequestItems"][TABLE]
        puts = [one for one in some if "PutRequest" in one]
        body["RequestItems"][TABLE] = puts or some
    return body


@test
def control_a_planted_difference_is_found():
    """Control: a table that does not heed a condition, never gives the old item, or
    deletes nothing in a batch with puts, is found out."""
    for change in (
        drop("ConditionExpression"),
        drop("ReturnValuesOnConditionCheckFailure"),
        keep_deleted,
    ):
        with tables() as found:
            try:
                by_chance(Comparison(found, change), seed=3, number=RANDOM)
            except Difference as difference:
                print(f"# found: {str(difference).splitlines()[0][:90]}")
                continue
            raise AssertionError("the difference was not found")


if __name__ == "__main__":
    main()
