"""The real Powertools for AWS Lambda (TypeScript), which the tests compare with.

    with powertools.process() as powertools_do:
        keys = powertools_do("keys", prefix="pay", events=["{}"])
"""

import contextlib
import json
import os
import shutil
import subprocess

import dynamo
from tap import TOP, skip

PACKAGE = os.path.join(
    dynamo.SERVERS, "node_modules", "@aws-lambda-powertools", "idempotency"
)


def missing():
    """Return why it cannot be started here, or None."""
    if shutil.which("node") is None:
        return "no node"
    if not os.path.isdir(PACKAGE):
        return f"Powertools is not installed in {dynamo.SERVERS}: see tools/deps"
    return None


@contextlib.contextmanager
def process():
    """Start it, give a function that calls it, and end it."""
    if missing():
        skip(missing())
    script = os.path.join(TOP, "tests", "lib", "powertools.mjs")
    child = subprocess.Popen(
        ["node", script, dynamo.SERVERS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        preexec_fn=dynamo.die_with_parent,
        env={**dynamo.environment(), "NODE_NO_WARNINGS": "1"},
    )

    def do(what, **rest):
        child.stdin.write(json.dumps({"do": what, **rest}) + "\n")
        child.stdin.flush()
        line = child.stdout.readline()
        assert line, f"powertools.mjs ended with status {child.wait()}"
        return json.loads(line)

    try:
        yield do
    finally:
        child.stdin.close()
        child.kill()
        child.wait()
