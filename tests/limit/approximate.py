"""Approximate limits: nothing is refused too early, and what is admitted beyond the limit
is no more than what was admitted while the count was on its way."""

import json
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]
SUM = str(Path(sys.argv[2]).resolve())

import dynamo  # noqa: E402
from crowd import Crowd, servers, table  # noqa: E402
from patience import PATIENCE
from tap import LONG, equal, main, note, test  # noqa: E402

del sys.argv[1:3]
BOUND_AGE_S = 1.0  # How old the count that a handle knows may be.


def streams(url, operation, body):
    """The answer of the side of the server that has the streams."""
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode(),
        headers={
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": "DynamoDBStreams_20120810." + operation,
            "X-Amz-Date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
            "Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/"
            "eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00",
        },
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


class Reader(threading.Thread):
    """Reads the stream of a table every so often, and gives what came to be added up;
    some of it twice, as a stream does."""

    def __init__(self, url, name, pause_s):
        super().__init__()
        self.url, self.pause_s = url, pause_s
        self.place = f"//{name}?endpoint={url}&index=off"
        self.arn = dynamo.call(url, "DescribeTable", {"TableName": name})["Table"][
            "LatestStreamArn"
        ]
        self.ending = threading.Event()
        self.requests = self.batches = self.again = 0
        self.longest_s = 0.0
        self.failed = None

    def shards(self):
        found = streams(self.url, "DescribeStream", {"StreamArn": self.arn})
        return [shard["ShardId"] for shard in found["StreamDescription"]["Shards"]]

    def iterator(self, shard):
        asked = {
            "StreamArn": self.arn,
            "ShardId": shard,
            "ShardIteratorType": "TRIM_HORIZON",
        }
        return streams(self.url, "GetShardIterator", asked)["ShardIterator"]

    def give(self, adder, event):
        adder.stdin.write(json.dumps(event) + "\n")
        adder.stdin.flush()
        return int(adder.stdout.readline())

    def run(self):
        try:
            self.read()
        except Exception as error:  # pylint: disable=broad-except
            self.failed = error

    def read(self):
        iterators = {shard: self.iterator(shard) for shard in self.shards()}
        env = dynamo.environment()
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with subprocess.Popen([SUM, self.place], env=env, **pipes) as adder:
            last = time.monotonic()
            while True:
                ending = self.ending.is_set()
                for shard, iterator in iterators.items():
                    got = streams(self.url, "GetRecords", {"ShardIterator": iterator})
                    iterators[shard] = got["NextShardIterator"]
                    if got["Records"]:
                        self.requests += self.give(adder, got)
                        self.batches += 1
                    if got["Records"] and self.batches % 3 == 0:
                        self.give(adder, got)
                        self.again += 1
                now = time.monotonic()
                self.longest_s = max(self.longest_s, now - last)
                last = now
                if ending:
                    adder.stdin.close()
                    return
                time.sleep(self.pause_s)


def most_within(times, span_ms):
    """The most of sorted @times in any span."""
    most = first = 0
    for last, at in enumerate(times):
        while at - times[first] > span_ms:
            first += 1
        most = max(most, last - first + 1)
    return most


def run(kind, room, pause_s):
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    name = f"huge-{int(pause_s * 10)}"
    store, url = table(kind, name, StreamSpecification=stream)
    crowd = Crowd(store, room, how="approximate", depth=4, processes=8)
    crowd.ids = 6 * room
    reader = Reader(url, name, pause_s)
    reader.start()
    crowd.run()
    reader.ending.set()
    reader.join()
    assert reader.failed is None, repr(reader.failed)
    admitted = crowd.admitted()[0]
    # Who knows an older count may admit what another refused a moment ago; what was
    # admitted once stays so, with its remaining count.
    for key in crowd.torn():
        equal(sum(admitted for admitted, _ in crowd.heard[key]), 1)
    equal(len(crowd.heard), crowd.ids)
    equal(reader.requests, admitted)
    # A record that was written just after a look is added up at the end of the next.
    span_s = BOUND_AGE_S + 2 * reader.longest_s
    bound = most_within(sorted(crowd.times.values()), span_s * 1000)
    crowd.say(f"{kind}, the stream read every {pause_s} s")
    note(
        f"{admitted - room} more than the limit; the bound is {bound}, admitted in the busiest "
        f"{span_s:.1f} s; {reader.batches} batches, {reader.again} of them given twice; "
        f"{len(crowd.torn())} requests were refused by one and admitted by another"
    )
    assert room <= admitted <= room + bound, (room, admitted, bound)
    left = dynamo.call(url, "Scan", {"TableName": name})["Items"]
    summed = next(i["lim"]["N"] for i in left if i["id"]["S"].endswith("#0"))
    equal(int(summed), admitted)


@test
def what_is_too_much_is_bounded():
    """A limit that is counted by the table's stream admits at least the limit, and at most
    what was admitted meanwhile on top; what was admitted once stays admitted."""
    for pause_s in (0.1, 1.0) if LONG else (0.1,):
        run("dynoxide", 3000 if LONG else 600, pause_s)


if __name__ == "__main__":
    with servers:
        main()
