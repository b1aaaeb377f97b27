"""An event-source mapping, which Lambda has between an SQS queue and a function.

    with Sandbox("./handler", env) as one, Sandbox("./handler", env) as two:
        with Mapping(queue, [one, two]) as mapping:    # polls until the block ends
            ...
    mapping.counts, mapping.deliveries

It has a thread for each sandbox, which receives up to ten messages, invokes the function
with them, and deletes those that the function did not report. It leaves the reported ones
to the queue, and the whole batch if the function failed.
"""

import collections
import json
import threading
from typing import NamedTuple

import sqs
from patience import PATIENCE

BATCH = 10


def record_of(message, queue_url):
    """Return a message in the form that the event has."""
    attributes = {
        name: {key[0].lower() + key[1:]: item for key, item in value.items()}
        for name, value in message.get("MessageAttributes", {}).items()
    }
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": attributes,
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": ":".join(["arn:aws:sqs", sqs.REGION, *queue_url.split("/")[-2:]]),
        "awsRegion": sqs.REGION,
    }


def failures(answer, ids):
    """Return the ids that @answer leaves to the queue: all of @ids, if it is not valid."""
    if answer.kind != "response":
        return set(ids)
    try:
        said = json.loads(answer.body)
        items = (said or {}).get("batchItemFailures") or []
        failed = {item["itemIdentifier"] for item in items}
    except (ValueError, TypeError, KeyError, AttributeError):
        return set(ids)
    return failed if failed <= set(ids) else set(ids)


class Delivery(NamedTuple):
    """One message in one invocation, and its end: "deleted", "reported", "lost" (its
    deletion), or how the whole invocation failed."""

    body: str
    message_id: str
    receives: int
    end: str


class Mapping:
    """Polls @queue for @boxes, each of which has @seconds for a batch.

    @loses(message) says whose deletion gets lost, so that it comes again when its
    visibility is over. @before(messages) is called before messages are deleted.
    """

    def __init__(
        self, queue, boxes, seconds=PATIENCE, loses=lambda m: False, before=lambda m: None
    ):
        self.queue, self.seconds = queue, seconds
        self.loses, self.before = loses, before
        self.counts = collections.Counter()
        self.deliveries = []
        self.failure = None
        self.lock = threading.Lock()
        self.end = threading.Event()
        self.threads = [threading.Thread(target=self.poll, args=(b,)) for b in boxes]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *failure):
        self.end.set()
        for thread in self.threads:
            thread.join()
        if failure[0] is None and self.failure is not None:
            raise self.failure

    def poll(self, box):
        try:
            while not self.end.is_set():
                if not self.step(box):
                    self.end.wait(0.25)
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error

    def step(self, box):
        """Take one batch from the queue to its end. Return False if there is none now."""
        messages = self.queue.receive(BATCH)
        if not messages:
            return False
        event = {"Records": [record_of(m, self.queue.url) for m in messages]}
        answer = box.invoke(event, self.seconds)
        failed = failures(answer, [m["MessageId"] for m in messages])
        ends = [(m, self.end_of(m, answer, failed)) for m in messages]
        self.delete([m for m, end in ends if end == "deleted"])
        with self.lock:
            self.counts.update(["batches", f"{answer.kind}s"])
            for m, end in ends:
                receives = int(m["Attributes"]["ApproximateReceiveCount"])
                delivery = Delivery(m["Body"], m["MessageId"], receives, end)
                self.deliveries.append(delivery)
                self.counts.update(["messages", end])
        return True

    def end_of(self, message, answer, failed):
        if answer.kind != "response":
            return answer.kind
        if message["MessageId"] in failed:
            return "reported"
        return "lost" if self.loses(message) else "deleted"

    def delete(self, messages):
        if not messages:
            return
        self.before(messages)
        entries = [
            {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]}
            for i, m in enumerate(messages)
        ]
        url = self.queue.url
        said = self.queue.call("DeleteMessageBatch", QueueUrl=url, Entries=entries)
        assert not said.get("Failed"), said

    def ends(self, text):
        """Return how the deliveries of messages with @text in their bodies ended."""
        with self.lock:
            return [d.end for d in self.deliveries if text in d.body]
