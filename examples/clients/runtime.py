"""runtime.py FILE: call the handler of a file for each event, one on each line of input.

Prints a line of JSON for each: the response or the error, as Lambda would get it.
"""

import importlib.util
import json
import sys
import time
import uuid


class Context:
    """The members of a function's context that the handlers read."""

    function_name = "example"

    def __init__(self):
        self.aws_request_id = str(uuid.uuid4())
        self.end = time.monotonic() + 30

    def get_remaining_time_in_millis(self):
        return int((self.end - time.monotonic()) * 1000)


spec = importlib.util.spec_from_file_location("function", sys.argv[1])
function = importlib.util.module_from_spec(spec)
spec.loader.exec_module(function)
for line in sys.stdin:
    try:
        told = {"answer": function.handler(json.loads(line), Context())}
    except Exception as error:
        told = {"error": type(error).__name__}
    print(json.dumps(told), flush=True)
