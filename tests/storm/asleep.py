"""A storm over work that cannot be killed: its file system is frozen for five seconds
at a time, and its runners give up, are killed, or lose their supervisor meanwhile.

A command notes its process and then goes to sleep in its effect. No other may start
while that process is alive and its lease runs. The control does the same with
a time limit of its own and a lock that its holder gives back.
"""

import concurrent.futures
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

from procfs import below
from tap import LONG, PROGRAM, equal, environment, main, note, start, test
from unkillable import frozen_disk

KEYS = 300 if LONG else 8
SIDE_BY_SIDE = 25 if LONG else 8
FROZEN_S = 5
LEASE = "12s"  # Longer than any sleep, so that the lease ends after it.

# Who is at work is a file KEY.PID. One whose process is alive, and no zombie, is beside us.
WORK = """
for other in work/$IDEM_KEY.*; do
    [ -e "$other" ] || continue
    pid=${other##*.}
    state=$(sed 's/.*) //; s/ .*//' /proc/$pid/stat 2>/dev/null)
    case $state in ""|Z|X) ;; *) echo "$IDEM_KEY: $pid ($state)" >> beside ;; esac
done
echo "$IDEM_KEY $IDEM_FENCE $IDEM_TAKEOVER" >> starts
sh -c ': > work/$IDEM_KEY.$$; exec mkdir disk/$IDEM_KEY.$IDEM_FENCE'
exit $?
"""


LOCKED = 'mkdir lock && { sh -c "$0" & pid=$!; sleep 0.5; kill -9 $pid; rmdir lock; }'


@contextlib.contextmanager
def winter():
    """A disk that is frozen most of the time."""
    with frozen_disk(os.path.abspath("disk")) as thaw:
        over = threading.Event()

        def seasons():
            while not over.wait(FROZEN_S):
                thaw()
                over.wait(0.3)
                subprocess.run(["fsfreeze", "-f", "disk"], capture_output=True, check=False)

        thread = threading.Thread(target=seasons)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def run(key, chance, statuses):
    """Run it until it is done. The first run may take no longer than its file system
    sleeps, or is struck."""
    env = environment({"IDEM_STORE": f"sqlite:{os.path.abspath('idem.db')}"})
    command = [PROGRAM, "run", "-k", key, "--on-expired-lease", "rerun", "--lease", LEASE]
    command += ["--max-attempts", "0", "--kill-after", "100ms", "--outcome", "jobs"]
    limit = ["--max-time", "400ms"]
    whom = chance.choice(("nobody", "nobody", "runner", "supervisor"))
    while True:
        with start([*command, *limit, "--", "sh", "-c", WORK], env) as runner:
            if whom != "nobody":
                time.sleep(0.1 + chance.random() * 0.5)
                strike(runner, whom)
            runner.communicate()
            statuses.append(runner.returncode)
        if runner.returncode == 0:
            # It is said to be done: then it is.
            return any(name.split(".")[0] == key for name in os.listdir("disk"))
        limit, whom = [], "nobody"
        time.sleep(0.2)


def strike(runner, whom):
    names = below(runner.pid)
    supervisors = [pid for pid, name in names.items() if name == "idem-supervisor"]
    for pid in [runner.pid] if whom == "runner" else supervisors:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def lines(name):
    with contextlib.suppress(FileNotFoundError):
        with open(name, encoding="ascii") as f:
            return f.read().splitlines()
    return []


@test(rows=[5])
def nobody_starts_beside_a_sleeper():
    """While a process of an attempt cannot be killed, no other attempt of its key starts;
    each key comes to its end, and every attempt after the first is a takeover."""
    seed = int.from_bytes(os.urandom(4), "big")
    statuses = []
    os.mkdir("work")
    begun = time.monotonic()
    with winter(), concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        todo = [pool.submit(run, f"k{n}", random.Random(seed + n), statuses) for n in range(KEYS)]
        done = [one.result() for one in todo]
    starts = [line.split() for line in lines("starts")]
    tally = {status: statuses.count(status) for status in sorted(set(statuses))}
    note(f"seed {seed}: {KEYS} keys, {len(starts)} starts, {tally}, "
         f"{time.monotonic() - begun:.0f} s")
    equal((lines("beside"), all(done)), ([], True))
    equal({key for key, _, _ in starts}, {f"k{n}" for n in range(KEYS)})
    assert tally.get(80, 0) >= KEYS // 4, tally  # Enough could not be killed.
    seen = set()
    for key, _, takeover in starts:
        assert takeover == "1" or key not in seen, (key, starts)
        seen.add(key)


@test
def a_time_limit_and_a_lock_do_not_do():
    """The control: a time limit under a lock starts a second one beside the sleeper."""
    os.mkdir("work")
    env = {**os.environ, "IDEM_KEY": "k", "IDEM_TAKEOVER": "?"}
    with frozen_disk(os.path.abspath("disk")):
        for fence in ("1", "2"):
            command = ["sh", "-c", LOCKED, WORK]
            subprocess.run(command, env={**env, "IDEM_FENCE": fence}, check=False)
    equal(len(lines("beside")), 1)


if __name__ == "__main__":
    sys.setswitchinterval(0.001)
    main()
