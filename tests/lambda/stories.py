"""The stories that examples/lambda/*/try plays, with their controls."""

import glob
import os
import re
import subprocess
import sys

import dynamo
import sqs
from tap import PROGRAM, SANITIZED, TOP, add, environment, main, note, skip

EXAMPLES = os.path.join(TOP, "examples", "lambda")


def play(path):
    with dynamo.server("local") as url:
        env = environment({"IDEM_PROGRAM": PROGRAM, "IDEM_TEST_DYNAMODB": url})
        done = subprocess.run(
            [sys.executable, path], env=env, capture_output=True, text=True, timeout=280,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    kept = re.findall(r"^    ok: .*without.*$", done.stdout, re.M)
    assert kept, "a story without its control: " + done.stdout
    note(f"{done.stdout.count('    ok: ')} things held; {done.stdout.splitlines()[-1][2:]}")


def story(path):
    def run():
        if SANITIZED:
            skip("the stories compile their functions without a sanitizer")
        for why in (dynamo.missing("local"), sqs.missing()):
            if why is not None:
                skip(why)
        play(path)

    return run


for found in sorted(glob.glob(os.path.join(EXAMPLES, "*", "try"))):
    add(f"what {os.path.relpath(found, TOP)} promises holds", story(found))

if __name__ == "__main__":
    main()
