"""examples/stepfunctions: one execution for each key, whatever becomes of answers."""

import contextlib
import json
import os
import signal
import subprocess
import sys

from files import write
import tap
from patience import until
from procfs import children
from tap import PROGRAM, TOP, Idem, equal, main, run, start, test

EXAMPLE = os.path.join(TOP, "examples", "stepfunctions", "start.sh")
MACHINE = "arn:aws:states:eu-west-1:123456789012:stateMachine:Orders"

# In place of the AWS command line and of Step Functions, by the rules of the API's
# reference: a name that is in use is answered with its execution where that is open and
# has the same input, else refused. Its faults are the files "deny", "cut" and "hold".
AWS = """#!%s
import json, os, sys, time
words = sys.argv[1:]
assert words[:2] == ["stepfunctions", "start-execution"], words
given = dict(zip(words[2::2], words[3::2]))
name, machine = given.get("--name") or os.urandom(8).hex(), given["--state-machine-arn"]
with open(given["--input"].removeprefix("file://")) as f:
    text = f.read()
json.loads(text)
with open("requests", "a") as f:
    print(name, file=f)
if os.path.exists("deny"):
    os.unlink("deny")
    sys.exit("An error occurred (AccessDeniedException): not authorized")
os.makedirs("executions", exist_ok=True)
path = "executions/" + name
if not 1 <= len(name) <= 80:
    sys.exit("An error occurred (InvalidName)")
if os.path.exists(path) and (os.path.exists("closed") or open(path).read() != text):
    sys.exit("An error occurred (ExecutionAlreadyExists)")
with open(path, "w") as f:
    f.write(text)
while os.path.exists("hold"):
    time.sleep(0.01)
if os.path.exists("cut"):
    os.unlink("cut")
    sys.exit("Connection was closed before we received a valid response")
print(json.dumps({"executionArn": machine.replace(":stateMachine:", ":execution:") + ":" + name}))
""" % sys.executable


class Shop:
    """Orders, and the programs that their executions are started with."""

    def __init__(self, orders=3):
        os.makedirs("orders")
        os.makedirs("bin")
        os.symlink(PROGRAM, "bin/idem")
        write("bin/aws", AWS, 0o755)
        for n in range(orders):
            self.write(n, 4200)
        path = os.path.abspath("bin") + ":" + os.environ["PATH"]
        self.env = {"STATE_MACHINE_ARN": MACHINE, "IDEM_STORE": Idem().store, "PATH": path}

    @staticmethod
    def write(n, total):
        with open(f"orders/{n}.json", "w", encoding="ascii") as f:
            json.dump({"order": n, "total": total}, f)

    def start(self):
        return run([EXAMPLE, "orders"], self.env)

    @staticmethod
    def names():
        return sorted(os.listdir("executions"))

    @staticmethod
    def requests():
        with open("requests", encoding="ascii") as f:
            return len(f.readlines())


def fault(name):
    with open(name, "w", encoding="ascii"):
        pass


@test
def each_order_is_started_once():
    """A directory of orders, started twice, once refused in the middle: each has one
    execution, under a name that Step Functions takes, and replays ask for nothing."""
    shop = Shop()
    fault("deny")
    got = shop.start()
    assert got.status == 1 and b"AccessDenied" in got.stderr, got
    first = shop.start()
    equal((first.status, len(first.stdout.splitlines())), (0, 3))
    equal(shop.requests(), 4)
    equal(shop.start().stdout, first.stdout)
    equal((shop.requests(), len(shop.names())), (4, 3))
    for name in shop.names():
        equal((len(name), set(name) - set("0123456789abcdef")), (64, set()))


@test
def a_lost_answer_starts_no_second_one():
    """An answer that is lost is asked for again under the same name; so where the
    execution is over by then."""
    for closed in (False, True):
        os.makedirs(f"closed-{closed}")
        with contextlib.chdir(f"closed-{closed}"):
            shop = Shop(1)
            fault("cut")
            equal(shop.start().status, 1)
            if closed:
                fault("closed")
            got = shop.start()
            equal(got.status, 0)
            (name,) = shop.names()
            equal(json.loads(got.stdout)["executionArn"],
                  MACHINE.replace("stateMachine", "execution") + ":" + name)


@test
def a_killed_start_is_found_by_its_name():
    """Its runner is killed after the execution began, before the record: the next run
    takes over, and finds it."""
    shop = Shop(1)
    fault("hold")
    with start([EXAMPLE, "orders"], shop.env) as process:
        until(lambda: os.path.exists("executions") and os.listdir("executions"))
        (runner,) = children(process.pid)
        os.kill(runner, signal.SIGKILL)
    os.unlink("hold")
    got = until(lambda: next((g for g in [shop.start()] if g.status != 75), None))
    equal((got.status, len(shop.names())), (0, 1))
    shop.write(0, 4300)
    equal(shop.start().status, 65)


@test
def without_a_name_each_retry_is_another():
    """The control: the same requests without idem."""
    shop = Shop(1)
    words = ["bin/aws", "stepfunctions", "start-execution", "--state-machine-arn", MACHINE,
             "--input", "file://orders/0.json"]
    for _ in range(2):
        equal(subprocess.run(words, env=tap.environment(shop.env), check=False,
                             stdout=subprocess.DEVNULL).returncode, 0)
    equal(len(shop.names()), 2)


if __name__ == "__main__":
    main()
