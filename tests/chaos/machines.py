"""Machines of the driver at work on a store, and what is wrong with what they noted."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECK, DRIVER = (Path(arg).resolve() for arg in sys.argv[1:3])
del sys.argv[1:3]
sys.path[:0] = [str(HERE.parent / room) for room in ("lib", "history", "chaos")]

import dynamo  # noqa: E402
import histories  # noqa: E402
import judge  # noqa: E402
import tap  # noqa: E402

TABLE = "orders"
# Nobody is early. A lying Date, until others contradict it, makes them late.
SLACK = "early=10 late=60000"


def store(url):
    return url if url.startswith(("postgres:", "sqlite:")) else f"dynamodb://{TABLE}?endpoint={url}"


def idem(url, *args):
    env = dict(dynamo.environment(), IDEM_STORE=store(url), HOME=os.getcwd())
    return subprocess.run([tap.PROGRAM, *args], env=env, capture_output=True, text=True)


def drive(url, *options, into="into"):
    """Let machines work at @url; the directory with what they noted."""
    into = Path(into)
    command = [DRIVER, "--store", store(url), "--into", into, *map(str, options)]
    done = subprocess.run(command, env=dynamo.environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    print("#", done.stdout.strip())
    return into


def faults_of(into, url):
    """What is wrong with the ledger, held against the table at @url."""
    exported = idem(url, "export")
    assert (exported.returncode, exported.stderr) == (0, ""), exported.stderr
    events = judge.read_ledger(into / "ledger")
    records = judge.read_export(exported.stdout)
    judge.count(events, records)
    return judge.judge(events, records)


def history_of(into, slack=SLACK):
    """All that the machines were answered, in one file.

    A claim that nobody knows of is given back behind its caller's back, so a
    history cannot say what becomes of it: its key is left out.
    """
    lines, keys, unknown = [], {}, set()
    for part in sorted(into.glob("history-*")):
        for line in part.open():
            word = line.split()
            # The last line of one who was killed may not be whole.
            if not line.endswith("\n"):
                break
            if word[0] == "call":
                keys[word[1]] = word[3]
                begins = word[4] == "begin"
            elif begins and word[3] == "?":
                unknown.add(keys[word[1]])
            lines.append((keys[word[1]], line))
    path = into / "all"
    with open(path, "w", encoding="ascii") as f:
        f.write(f"history chaos {slack}\n")
        f.writelines(line for key, line in lines if key not in unknown)
    print(f"# {len(unknown)} keys with a claim that nobody knows of are left out")
    return path


def hold(found, into):
    """Nothing is wrong, and the history is explained."""
    assert not found, "\n".join(found[:20])
    _, seen, _ = histories.explained(CHECK, history_of(into))
    print(f"# {seen} operations of the history explained")
