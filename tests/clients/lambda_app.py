"""The same as lambda_app.js."""

import json
import os
import sys

sys.path.insert(0, os.environ["PACKAGE"])

import idem  # noqa: E402

store = idem.open(os.environ["STORE"])


def work(event, context):
    with open("ledger", "a", encoding="utf-8") as f:
        f.write("effect\n")
    if "broken" in json.dumps(event):
        raise ValueError("broken")
    headers = {"Location": "/1", "Set-Cookie": "s=1"}
    return {"statusCode": 201, "headers": headers, "body": f'"{os.getpid()}"'}


class Context:
    aws_request_id = "r"
    left = 0

    def get_remaining_time_in_millis(self):
        return self.left


# The samples have one key.
protected = idem.lambda_handler(work, store=store, scope=lambda event: f"client {len(str(event))}")

for line in sys.stdin:
    asked = json.loads(line)
    context = Context()
    context.left, context.function_name = asked["left"], asked.get("function", "f")
    try:
        said = {"value": (work if asked.get("bare") else protected)(asked["event"], context)}
    except Exception as error:
        said = {"error": str(error)}
    print(json.dumps(said), flush=True)
