"""The examples for Lambda, run as they stand."""

import os
import shutil
import time

import dynamo
from lambda_api import Sandbox
from tap import PROGRAM, TOP, Idem, equal, main, note, skip, test

LIMIT = os.environ["IDEM_TEST_LAMBDA_LIMIT"]


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


if __name__ == "__main__":
    main()
