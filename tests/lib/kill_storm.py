"""Clients whose programs are killed: under kill -9 they retry until they have a receipt."""

import collections
import concurrent.futures
import random
import signal
import subprocess
import threading
import time

from tap import equal


class Storm:
    """Runs @command(key) for each key, from two of @clients at once, as after a redelivery,
    until it has killed @kills runs or @may_stop() returns True.

    @patience(rng): the seconds until a run is killed. With @refusal, the beginning of its
    message, a run that ends with 75 is tried again.
    """

    def __init__(self, command, kills, patience, clients, *, env=None, refusal=None,
                 may_stop=lambda: False):
        self.command, self.wanted, self.patience, self.clients = command, kills, patience, clients
        self.env, self.refusal, self.may_stop = env, refusal, may_stop
        self.kills = 0
        self.tries = 0
        self.keys = []
        self.receipts = collections.defaultdict(set)
        self.lock = threading.Lock()

    def _new_key(self):
        """Return the next key for a client, or None if the storm is over."""
        with self.lock:
            if self.kills >= self.wanted or self.may_stop():
                return None
            self.keys.append(f"k{len(self.keys) // 2}")
            return self.keys[-1]

    def run(self, key, patience):
        """Retry until there is a receipt. @patience: the seconds until the kill."""
        pipes = {name: subprocess.PIPE for name in ("stdout", "stderr")}
        while True:
            self.tries += 1
            command = self.command(key)
            with subprocess.Popen(
                command, env=self.env, stdin=subprocess.DEVNULL, **pipes
            ) as process:
                try:
                    process.wait(patience())
                except subprocess.TimeoutExpired:
                    process.kill()
                receipt, complaint = process.communicate()
            if process.returncode == -signal.SIGKILL:
                with self.lock:
                    self.kills += 1
            elif process.returncode == 0:
                with self.lock:
                    self.receipts[key].add(receipt)
                return
            else:
                got = (key, process.returncode, complaint[: len(self.refusal or complaint)])
                equal(got, (key, 75, self.refusal) if self.refusal else (key, 0, b""))
                time.sleep(0.1)

    def _client(self, seed):
        rng = random.Random(seed)
        while key := self._new_key():
            self.run(key, lambda: self.patience(rng))

    def blow(self):
        with concurrent.futures.ThreadPoolExecutor(self.clients) as pool:
            for done in [pool.submit(self._client, seed) for seed in range(self.clients)]:
                done.result()
        return self

    def answered(self):
        """Return the keys whose clients have a receipt, the same for both."""
        equal({k: r for k, r in self.receipts.items() if len(r) != 1}, {})
        return list(self.receipts)
