"""The examples for Lambda, run as they stand."""

import os
import shutil
import time

import dynamo
from lambda_api import Sandbox
from tap import PROGRAM, TOP, Idem, equal, main, note, skip, test

LIMIT = os.environ["IDEM_TEST_LAMBDA_LIMIT"]
LIMIT_SUM = os.environ["IDEM_TEST_LAMBDA_LIMIT_SUM"]


@test
def a_package_is_a_bootstrap_and_an_idem():
    """The two lines of the bootstrap start the idem beside them as the runtime, and the
    handler beside them finds that idem by its name."""
    os.mkdir("task")
    shutil.copy(os.path.join(TOP, "examples", "lambda", "bootstrap"), "task")
    os.symlink(PROGRAM, "task/idem")
    with open("task/charge", "w", encoding="ascii") as f:
        f.write("#!/bin/sh\necho charged >>ledger\necho '\"'$(command -v idem)'\"'\n")
    os.chmod("task/charge", 0o755)
    task = os.path.abspath("task")
    with Sandbox("charge", {"LAMBDA_TASK_ROOT": task}, program=[f"{task}/bootstrap"]) as box:
        for _ in range(2):
            equal(box.invoke({"idempotencyKey": "order"}).json(), f"{task}/idem")
    with open("ledger", encoding="ascii") as f:
        equal(f.read(), "charged\n")


@test
def limit_counts_a_request_once():
    """limit.c: eight requests of a user pass on a day, however often each is sent; the ninth does not."""
    day = int(time.time() * 1000)
    env = {"IDEM_LAMBDA_KEY": "[.user, .request]"}
    asked = 0

    def ask(box, request, user="u1", at=day):
        nonlocal asked
        asked += 1
        event = {"user": user, "request": request, "timestamp": at}
        said = box.invoke(event).json()
        return said["limited"], said["remaining"]

    with Sandbox("", env, program=[LIMIT]) as box:
        for n in range(1, 9):
            equal([ask(box, f"r{n}") for _ in range(3)], [(False, 8 - n)] * 3)
        equal(ask(box, "r9"), (True, 0))
        equal(ask(box, "r1"), (False, 7))
        equal(ask(box, "r10", user="u2"), (False, 7))
        equal(ask(box, "r1", user="u2"), (False, 6))
        # The event of the example's first lines, as it is typed there.
        equal(ask(box, "r2017", at=1510067704370), (False, 7))
        equal(ask(box, "r11", at=day - 86400000), (False, 7))
    # Without the record of the request the limit still knows it.
    with Sandbox("", {**env, "IDEM_LAMBDA_SCOPE_NAME": "other"}, program=[LIMIT]) as box:
        equal(ask(box, "r8"), (False, 0))
        equal(ask(box, "r12"), (True, 0))
    note(f"{asked} requests")


@test
def limit_sum_adds_up_a_stream():
    """limit_sum.c: what the stream of a table brings, also twice, is taken off a limit once."""
    if why := dynamo.missing("dynoxide"):
        skip(why)
    with dynamo.server("dynoxide") as url:
        place = f"//great?endpoint={url}&region=eu-west-1&index=off"
        program = Idem("dynamodb:" + place)

        def idem(*args):
            return program(*args, env=dynamo.environment())

        def ask(request):
            return idem("limit", "-qn", "api", "-u", "u1", "-r", request, "-m", "300",
                        "-p", "day", "--cost", "100", "--approximate").status  # fmt: skip

        equal(idem("store", "create").status, 0)
        equal([ask(f"r{n}") for n in range(4)], [0] * 4)  # Nothing was added up yet.
        items = dynamo.call(url, "Scan", {"TableName": "great"})["Items"]
        records = [
            {"eventID": f"e{n}", "eventName": "INSERT", "eventSource": "aws:dynamodb",
             "dynamodb": {"NewImage": item, "SequenceNumber": str(n)}}
            for n, item in enumerate(items)
        ]  # fmt: skip
        env = {**dynamo.environment(), "LIMIT_PLACE": place, "IDEM_STORE": "memory:",
               "IDEM_LAMBDA_SOURCE": "direct",
               "IDEM_LAMBDA_KEY": ".Records[0].eventID"}  # fmt: skip
        with Sandbox("", env, program=[LIMIT_SUM]) as box:
            equal(box.invoke({"Records": records}).json(), {"requests": 4})
            equal(box.invoke({"Records": records}).json(), {"requests": 4})
        with Sandbox("", env, program=[LIMIT_SUM]) as box:
            equal(box.invoke({"Records": records}).json()["requests"], 4)
        equal((ask("r0"), ask("r9")), (0, 75))
        after = dynamo.call(url, "Scan", {"TableName": "great"})["Items"]
        sums = [item["lim"]["N"] for item in after if item["id"]["S"].endswith("#0")]
        equal(sums, ["400"])


if __name__ == "__main__":
    main()
