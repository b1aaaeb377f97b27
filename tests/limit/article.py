"""The limiter of the article in its three iterations, and ours, asked the same.

The article is "Your Lambda function might execute twice" (cloudonaut, 2017); its
updates of a DynamoDB table are made here as they stand there, on a real server.
Instead of days there are windows of some seconds, so that midnight really comes.
"""

import functools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "lib")]
del sys.argv[1:2]

import dynamo  # noqa: E402
from tap import PROGRAM, equal, main, note, skip, test  # noqa: E402

LIMIT = 8
WINDOW_S = 3


@functools.cache
def server():
    url = dynamo.shared("dynoxide")
    dynamo.make_table(url, "ratelimit")
    return url


def update(body):
    """The answer to an UpdateItem, or None if its condition does not hold."""
    try:
        return dynamo.call(server(), "UpdateItem", {"TableName": "ratelimit", **body})
    except OSError as error:
        said = json.load(error)
        assert said["__type"].endswith("ConditionalCheckFailedException"), said
        return None


def window(at_ms):
    return int(at_ms) // (WINDOW_S * 1000)


def now_ms():
    return int(time.time() * 1000)


def first(user, _request, _at_ms):
    """Iteration 1: a counter, and the clock of the moment. True: admitted."""
    done = update(
        {
            "Key": {"id": {"S": f"iteration1:{user}:{window(now_ms())}"}},
            "UpdateExpression": "ADD calls :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
            "ReturnValues": "ALL_NEW",
        }
    )
    return int(done["Attributes"]["calls"]["N"]) <= LIMIT


def second(user, request, _at_ms):
    """Iteration 2: a set of requests, and the clock of the moment."""
    condition = (
        "attribute_not_exists (requests) OR contains(requests, :request) "
        "OR size(requests) < :limit"
    )
    done = update(
        {
            "Key": {"id": {"S": f"iteration2:{user}:{window(now_ms())}"}},
            "UpdateExpression": "ADD requests :requests",
            "ConditionExpression": condition,
            "ExpressionAttributeValues": {
                ":request": {"S": request},
                ":requests": {"SS": [request]},
                ":limit": {"N": str(LIMIT)},
            },
        }
    )
    return done is not None


def ours(store):
    def ask(user, request, at_ms):
        env = dict(dynamo.environment(), IDEM_STORE=store, HOME=os.getcwd())
        done = subprocess.run(
            [
                *(PROGRAM, "limit", "--json", "--name", "requests", "--subject", user),
                *("--request", request, "--at", str(at_ms)),
                *("--max", str(LIMIT), "--per", f"{WINDOW_S}s"),
            ],
            env=env,
            capture_output=True,
            timeout=60,
        )
        assert done.returncode in (0, 75), done.stderr
        told = json.loads(done.stdout)
        equal(told["admitted"], done.returncode == 0)
        told.pop("repeated")
        told.pop("retry_after_ms", None)
        return told

    return ask


def wait_for_window(room_s):
    """Wait for the start of a window, and be that long before its end."""
    while now_ms() % (WINDOW_S * 1000) > (WINDOW_S - room_s) * 1000:
        time.sleep(0.05)


def stores():
    yield "sqlite:" + os.path.abspath("idem.db")
    yield f"dynamodb://ratelimit?endpoint={server()}"


def in_one_window(ask, user, requests):
    """The answers to @requests, all asked in one window of the clock."""
    while True:
        wait_for_window(2.5)
        at_ms = now_ms()
        answers = [ask(f"{user}-{at_ms}", request, at_ms) for request in requests]
        if window(now_ms()) == window(at_ms):
            return answers


@test
def the_first_iteration_counts_retries():
    """Six requests, each delivered twice, are six of eight; the first iteration counts
    twelve, and refuses the last ones."""
    requests = [f"r{n // 2}" for n in range(12)]
    answers = in_one_window(first, "u1", requests)
    equal(answers.count(False), 4)
    note(f"first iteration: {answers.count(False)} of 12 deliveries refused")
    for store in stores():
        told = in_one_window(ours(store), "u1", requests[:6])
        equal([t["admitted"] for t in told], [True] * 6)
        equal([t["remaining"] for t in told], [7, 7, 6, 6, 5, 5])
    equal(in_one_window(second, "u1", requests).count(False), 0)


@test
def the_second_iteration_changes_its_answer_across_midnight():
    """A ninth request is refused; when it is delivered again after midnight the second
    iteration admits it, and so admits nine of the events of one day."""
    requests = [f"r{n}" for n in range(9)]
    wait_for_window(2.5)
    at_ms = now_ms()
    answers = [second("u2", request, at_ms) for request in requests]
    if window(now_ms()) != window(at_ms):
        skip("the machine is too slow for windows of three seconds")
    equal(answers, [True] * 8 + [False])
    while window(now_ms()) == window(at_ms):
        time.sleep(0.05)
    equal(second("u2", "r8", at_ms), True)


@test
def ours_does_neither():
    """Nine requests, delivered again and again, before midnight and after it: eight are
    admitted, and every delivery hears what the first one heard."""
    asked = 0
    for store in stores():
        ask = ours(store)
        wait_for_window(2.5)
        at_ms = now_ms()
        heard = {f"r{n}": ask("u3", f"r{n}", at_ms) for n in range(9)}
        equal(sum(told["admitted"] for told in heard.values()), 8)
        equal(sorted(told["remaining"] for told in heard.values()), [0, 0, 1, 2, 3, 4, 5, 6, 7])
        while window(now_ms()) == window(at_ms):
            time.sleep(0.05)
        for _ in range(3):
            for request, told in heard.items():
                equal(ask("u3", request, at_ms), told)
                asked += 1
        fresh = ask("u3", "r8", now_ms())  # An event of the new day.
        equal((fresh["admitted"], fresh["remaining"]), (True, 7))
    note(f"{asked} deliveries after midnight heard what they heard before it")


if __name__ == "__main__":
    main()
