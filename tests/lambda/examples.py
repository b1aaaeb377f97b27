"""The examples for Lambda, run as they stand."""

import os
import re
import shutil
import subprocess
import time

import dynamo
from lambda_api import Sandbox
from tap import TOP, Idem, equal, main, note, skip, test

EXAMPLES = os.path.join(TOP, "examples", "lambda")
LIMIT = os.environ["IDEM_TEST_LAMBDA_LIMIT"]
LIMIT_SUM = os.environ["IDEM_TEST_LAMBDA_LIMIT_SUM"]


def lines(name):
    if not os.path.exists(name):
        return []
    with open(name, encoding="utf-8") as f:
        return f.read().splitlines()


def settings(name):
    """The settings in the comment of an example."""
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as f:
        found = re.findall(r"^#  *(IDEM_\w+)=('[^']*'|\S+)", f.read(), re.M)
    assert found, name
    return {key: value.strip("'") for key, value in found}


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


@test
def order_tells_three_failures_apart():
    """order.sh: not reached is tried again, rejected is the outcome, unclear waits for a person."""
    shutil.copy(os.path.join(EXAMPLES, "order.sh"), ".")
    os.mkdir("bin")
    with open("bin/curl", "w", encoding="utf-8") as f:
        f.write(
            "#!/bin/sh\necho call >>calls\n"
            'while [ "$1" != --output ]; do shift; done\n'
            'echo \'{"id": 1}\' >"$2"\n. ./behave\n'
        )
    os.chmod("bin/curl", 0o755)
    env = {
        **settings("order.sh"),
        "API_URL": "http://api.example",
        "PATH": os.path.abspath("bin") + ":" + os.environ["PATH"],
    }
    rows = [
        ("exit 7", "NotReached", "NotReached", 2),
        ("printf 503", "NotReached", "NotReached", 2),
        ("printf 402", "Rejected", "Rejected", 1),
        ("exit 28", "Unclear", "Idem.Failed", 1),
        ("printf 500", "Unclear", "Idem.Failed", 1),
        ("printf 201", None, None, 1),
    ]
    with Sandbox("order.sh", env) as box:
        for number, (behave, first, second, calls) in enumerate(rows):
            with open("behave", "w", encoding="utf-8") as f:
                f.write(behave + "\n")
            before = len(lines("calls"))
            event = {"orderId": str(number)}
            equal((behave, box.invoke(event).type), (behave, first))
            equal((behave, box.invoke(event).type), (behave, second))
            equal((behave, len(lines("calls")) - before), (behave, calls))


@test
def the_commands_in_the_examples_work():
    """What the comment of order.sh says packs it, and it is a script."""
    path = os.path.join(EXAMPLES, "order.sh")
    with open(path, encoding="utf-8") as f:
        command = re.search(r"^#  *(idem lambda package .*)$", f.read(), re.M)[1]
    equal(command.split(), ["idem", "lambda", "package", "-o", "order.zip", "order.sh"])
    equal(subprocess.run(["sh", "-n", path]).returncode, 0)


if __name__ == "__main__":
    main()
