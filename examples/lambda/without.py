#!/usr/bin/env python3
"""A runtime of Lambda without idem, for controls: it runs its handler for each event,
or for each record of a batch, and reports the result."""

import http.client
import json
import os
import subprocess

PREFIX = "/2018-06-01/runtime/invocation/"


def call(method, path, body=None):
    connection = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    connection.request(method, PREFIX + path, body)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.headers, text


def run(event):
    """Run the handler, and return how it ended."""
    return subprocess.run(
        [os.environ["_HANDLER"]], input=event, stdout=subprocess.PIPE, check=False
    )


def respond(text):
    """Return the response to an event."""
    event = json.loads(text)
    if "Records" not in event:
        return run(text).stdout
    failed = [
        {"itemIdentifier": record["messageId"]}
        for record in event["Records"]
        if run(json.dumps({"Records": [record]}).encode()).returncode != 0
    ]
    return json.dumps({"batchItemFailures": failed})


while True:
    headers, told = call("GET", "next")
    call("POST", headers["Lambda-Runtime-Aws-Request-Id"] + "/response", respond(told))
