"""A real server of the SQS protocol for the tests: fauxqs, from npm.

    with sqs.server() as url:                       # its endpoint
        queue = sqs.Queue(url, "orders", visibility=30, receives=3)
        queue.send(["one", "two"])
        idem consume --queue queue.url ...          # with sqs.environment(url)
        queue.left(), queue.dead()                  # bodies

It has redelivery, dead-letter queues and FIFO groups, and keeps everything in memory.
"""

import functools
import http.client
import json
import os
import shutil
import time
import urllib.parse

import dynamo
from patience import PATIENCE, until
from tap import for_all, skip

REGION = "eu-west-1"


def environment(endpoint):
    """Return credentials and the endpoint, for tap.environment() and its callers."""
    return {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        "AWS_SESSION_TOKEN": None,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": None,
        "AWS_ENDPOINT_URL_SQS": endpoint,
        "AWS_ENDPOINT_URL": None,
        "AWS_CONFIG_FILE": "/nonexistent/config",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent/credentials",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def program():
    return os.path.join(dynamo.SERVERS, "node_modules", "fauxqs", "dist", "cli.js")


def missing():
    """Return why the server cannot be started here, or None."""
    if shutil.which("node") is None:
        return "no Node.js"
    if not os.path.exists(program()):
        return f"fauxqs is not installed in {dynamo.SERVERS}: see tools/deps"
    return None


class Failed(Exception):
    """Raised if SQS refused a call; the argument is its answer."""


def call(endpoint, action, body):
    """Call an action, and return the answer."""
    at = urllib.parse.urlsplit(endpoint)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=PATIENCE)
    try:
        connection.request(
            "POST",
            "/",
            json.dumps(body),
            {
                "Content-Type": "application/x-amz-json-1.0",
                "X-Amz-Target": f"AmazonSQS.{action}",
                "Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/"
                f"{REGION}/sqs/aws4_request, SignedHeaders=host, Signature=00",
            },
        )
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise Failed(f"{action}: {answer.status} {text!r}")
    return json.loads(text or b"{}")


def server():
    """Give the endpoint of a server without queues, for a with block."""
    if missing():
        skip(missing())
    env = {k: v for k, v in os.environ.items() if not k.startswith("FAUXQS_")}
    env.update(FAUXQS_LOGGER="false", FAUXQS_DEFAULT_REGION=REGION)
    return dynamo.serving(
        lambda port: ["env", f"FAUXQS_PORT={port}", "node", program()],
        lambda endpoint: call(endpoint, "ListQueues", {}),
        env,
    )


@functools.cache
def shared():
    """Return the endpoint of a server for all tests of this program."""
    return for_all(server())


class Queue:
    """A queue; with @receives, a message goes to a dead-letter queue after so many."""

    def __init__(self, endpoint, name, visibility=30, receives=None, fifo=False):
        self.endpoint = endpoint
        self.fifo = fifo
        self.dead_url = None
        suffix = ".fifo" if fifo else ""
        own = {"VisibilityTimeout": str(visibility)}
        if fifo:
            own["FifoQueue"] = "true"
        if receives is not None:
            self.dead_url, arn = self.make(name + "-dead" + suffix, fifo)
            policy = {"deadLetterTargetArn": arn, "maxReceiveCount": receives}
            own["RedrivePolicy"] = json.dumps(policy)
        self.url = self.call("CreateQueue", QueueName=name + suffix, Attributes=own)[
            "QueueUrl"
        ]

    def call(self, action, **body):
        return call(self.endpoint, action, body)

    def make(self, name, fifo):
        own = {"FifoQueue": "true"} if fifo else {}
        url = self.call("CreateQueue", QueueName=name, Attributes=own)["QueueUrl"]
        asked = {"QueueUrl": url, "AttributeNames": ["QueueArn"]}
        got = self.call("GetQueueAttributes", **asked)
        return url, got["Attributes"]["QueueArn"]

    def send(self, bodies, groups=None):
        """Send @bodies in their order; to a FIFO queue, each in its group."""
        for start in range(0, len(bodies), 10):
            entries = []
            for i, body in enumerate(bodies[start : start + 10]):
                entry = {"Id": str(i), "MessageBody": body}
                if self.fifo:
                    entry["MessageGroupId"] = groups[start + i]
                    entry["MessageDeduplicationId"] = f"{start + i}-{time.time_ns()}"
                entries.append(entry)
            answer = self.call("SendMessageBatch", QueueUrl=self.url, Entries=entries)
            assert not answer.get("Failed"), answer

    def count(self, url=None):
        """Return how many messages may be received now, and how many are in flight."""
        got = self.call(
            "GetQueueAttributes", QueueUrl=url or self.url, AttributeNames=["All"]
        )["Attributes"]
        return (
            int(got["ApproximateNumberOfMessages"]),
            int(got["ApproximateNumberOfMessagesNotVisible"]),
        )

    def wait_empty(self, seconds=PATIENCE):
        """Wait until no message is waiting or in flight."""
        until(lambda: self.count() == (0, 0), "the queue is empty", seconds, every=0.25)

    def receive(self, most=10, visibility=None, url=None):
        asked = {"QueueUrl": url or self.url, "MaxNumberOfMessages": most}
        asked.update(WaitTimeSeconds=0, AttributeNames=["All"])
        if visibility is not None:
            asked["VisibilityTimeout"] = visibility
        return self.call("ReceiveMessage", **asked).get("Messages", [])

    def bodies(self, url):
        """Receive all messages at @url, and return their bodies."""
        found = []
        while messages := self.receive(visibility=600, url=url):
            found += [m["Body"] for m in messages]
        return sorted(found)

    def left(self):
        return self.bodies(self.url)

    def dead(self):
        return self.bodies(self.dead_url)
