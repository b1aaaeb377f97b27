"""The situations of docs/situations.md, lived through again.

The page is generated: IDEM_REGEN=1 writes it anew. Otherwise what happens is
compared with what it says, but for times, fences and the like. Everything runs at
a terminal, as a reader would see it; lines with "+ " are steps that readers do
not see.
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
from typing import NamedTuple

from files import read, write
import languages
import session
import golden
from tap import TOP, Skip, add, main
from terminals import at_terminal

PAGE = os.path.join(TOP, "docs", "situations.md")
REGEN = os.environ.get("IDEM_REGEN") == "1"

# What the page calls the directory in which a situation is lived through.
DIRECTORY = "/srv/shop"

INTRO = """\
# Situations

The behaviour of idem in the situations that everybody who uses it will meet, as it looks at a terminal. The page is written by `tests/integration/situations.py`, which lives through all of them again with every run of the tests.

An exit status other than 0 is in brackets below the output. `./charge` writes a line into a ledger and prints a receipt; `./charge-slowly` does the same, and then takes its time. The records of each situation are in a store of its own.
"""

# The commands of the page. What they do to the ledger is their effect.
COMMANDS = {
    "charge": 'echo "$1" >>ledger; echo "charged $1, receipt $((1000 + $(wc -l <ledger)))"',
    "charge-slowly": './charge "$1"; exec sleep 20',
    "report": "sleep 2; echo report ready",
    "backup": 'echo "attempt $IDEM_ATTEMPTS, takeover: $IDEM_TAKEOVER"\n'
    '[ "$IDEM_TAKEOVER" = 1 ] || exec sleep 20',
    "mail": 'echo "no such user: $1" >&2; exit 1',
    "put-back": "rm -f idem.db-wal idem.db-shm; cp copy.db idem.db",
    "send": 'test -e network || { echo "no network" >&2; exit 75; }\necho sent',
    "dump": "echo dump >>ledger; cat /dev/zero >disk/zeros 2>/dev/null; seq 150000",
    "import": "echo importing; sleep 20",
    "deploy": 'test -e room || { echo "no room on the disk" >&2; exit 1; }\n'
    'echo "deployed $1, takeover: $IDEM_TAKEOVER"',
    "failing-backup": "exit 3",
    "transfer": 'exec "$PYTHON" "$TRANSFER" bank.db "$@"',
    "transfer-cut-off": 'exec 2>/dev/null\n'
    'KILL_AT=30 LD_PRELOAD="$IDEM_KILL_AT" "$PYTHON" "$TRANSFER" bank.db "$@"',
    "careful-import": 'trap "echo stopped before the first line; exit 75" INT\n'
    'echo importing; [ -e second ] && exit; touch second; sleep 20 & wait',
}


class Situation(NamedTuple):
    """A section of the page."""

    title: str
    text: str
    steps: str
    root: bool = False  # It needs a file system of its own.


SITUATIONS = [
    Situation(
        "The first run, and a replay",
        "The first run of a key runs the command and records its output and exit status. Every later one prints the same bytes and exits with the same status, and runs nothing. A terminal is told that it is a replay; into a file or a pipe goes the command's output and nothing else.",
        """
$ idem run -k order-42 -- ./charge 42
$ idem run -k order-42 -- ./charge 42
$ idem run -k order-42 -- ./charge 42 >receipt
$ cat receipt
$ cat ledger
""",
    ),
    Situation(
        "The same key for something else",
        "A key names one operation. A caller that uses it for another command line is refused with 65, and nothing runs: most likely a script made the same key for two things. If the command line may differ between retries, say with `--fingerprint` what should be compared instead.",
        """
+ idem run -k order-42 -- ./charge 42
$ idem run -k order-42 -- ./charge 1000
$ cat ledger
""",
    ),
    Situation(
        "Somebody else is at work",
        "While one works on a key, another is told so at once with 75: try again later. With `--wait` it waits for the outcome of the first, and replays it. For cron, `-q` makes it no news.",
        """
$ idem run -k report-5 -- ./report >first &
+ until idem show report-5 >/dev/null 2>&1; do sleep 0.02; done
$ idem run -k report-5 -- ./report
$ idem run -k report-5 --wait 10s -- ./report
+ wait
$ cat first
""",
    ),
    Situation(
        "A crash, under hold",
        "Killed after the charge and before the record: nobody can know whether it happened. `idem run` has a supervisor that outlives it, which stops the command with all that it started, and says so in the record. Under `hold`, the default, the record becomes unknown: nothing runs again, and a person finds out and says so. (If the supervisor dies too, or the whole host, the key is busy until the lease is over.)",
        """
$ timeout --foreground -s KILL 1 idem run -k order-43 -- ./charge-slowly 43
$ sleep 1; idem run -k order-43 -- ./charge-slowly 43
$ idem list --status unknown
$ echo "charged 43, receipt 1001" >receipt
$ idem resolve order-43 --complete @receipt --reason "on the statement"
$ idem run -k order-43 -- ./charge-slowly 43
$ cat ledger
""",
    ),
    Situation(
        "A crash, under rerun",
        "The same crash where both runs say `--on-expired-lease rerun`: the next run takes the key over and runs the command again. The command is told so, and has a higher fence than the one before. Choose it for what may be done twice, or for what passes its key on to something that recognises it.",
        """
$ alias once='idem run -k backup-7 --on-expired-lease rerun --'
$ timeout --foreground -s KILL 1 idem run -k backup-7 --on-expired-lease rerun -- ./backup
$ sleep 1; once ./backup
$ once ./backup
""",
    ),
    Situation(
        "A failure",
        "A failure is an outcome like any other: it is recorded and replayed, and the command does not run again under that key. Another try is another operation, with another key. `--outcome` chooses otherwise, by status: what is `fail` is replayed until a person resolves it, after `release` the next run tries again, after `retry` it does so and is told that the work may have been done.",
        """
$ idem run -k mail-7 -- ./mail nobody
$ idem run -k mail-7 -- ./mail nobody
$ idem run -k mail-8 --outcome '0=complete *=fail' -- ./mail nobody
$ idem list --status failed
$ idem resolve mail-8 --release --reason "the user is there now"
""",
    ),
    Situation(
        "Nothing happened, try again",
        "A command that knows that nothing happened exits with 75, or with a status that `--outcome` calls a release. The key is released, and the next run runs the command.",
        """
$ idem run -k news-1 -- ./send
$ touch network
$ idem run -k news-1 -- ./send
$ idem run -k news-2 --outcome 7,9=release -- sh -c 'exit 7'
$ idem run -k news-2 --outcome 7,9=release -- echo sent
""",
    ),
    Situation(
        "More output than is kept",
        "Output beyond `--max-output`, 16 MiB by default, goes to the first caller and is not recorded. The record then says that the work was done and how it ended: it does not run again, and a replay says so and ends with 82.",
        """
$ idem run -k numbers --max-output 1k -- seq 1000 >numbers
$ tail -n 1 numbers
$ idem run -k numbers --max-output 1k -- seq 1000
$ idem show numbers | grep -E 'status|output|result'
""",
    ),
    Situation(
        "The store is away, or full",
        "idem fails closed: without a claim on record nothing runs. Here another program holds the store's file locked: after ten seconds the answer is 69. Then the store is on a disk without room: 73. Both may be tried again as soon as the store is there.\n\nA disk may also become full while the work goes on. There is room in reserve for recording how it ended. The output of `./dump`, which fills the disk, is too long for that: its outcome is kept in the journal (80), and the next run of the key, once there is room, records it and replays it.",
        """
+ touch ledger; idem run -k before -- true
+ (echo 'BEGIN IMMEDIATE;'; sleep 13) | sqlite3 idem.db &
+ mkdir full; mount -t tmpfs -o size=512k none full
+ idem run --store sqlite:full/idem.db -k before -- true
+ cat /dev/zero >full/zeros 2>/dev/null || true
+ sleep 0.5
$ idem run -k order-45 -- ./charge 45
$ idem run --store sqlite:full/idem.db -k order-45 -- ./charge 45
$ wc -l <ledger
+ mkdir disk; mount -t tmpfs -o size=4m none disk
+ idem run --store sqlite:disk/idem.db -k before -- true
$ idem run --store sqlite:disk/idem.db -k dump -- ./dump >out
+ rm disk/zeros
$ idem run --store sqlite:disk/idem.db -k dump -- ./dump | cmp - out && echo the same
$ wc -l <ledger
+ wait
""",
        root=True,
    ),
    Situation(
        "Ctrl-C",
        "A signal goes to the command, and idem records how it ended. A command that dies of it leaves an outcome that nobody knows, as after a crash: 76 under `hold`; under `rerun` the next run takes over. A command that catches the signal and knows that nothing happened exits with 75, and is simply run again.",
        """
$ timeout --foreground --preserve-status -s INT 1 idem run -k import-1 -- ./import
$ idem run -k import-1 -- ./import
$ timeout --foreground --preserve-status -s INT 1 idem run -k import-2 -- ./careful-import
$ idem run -k import-2 -- ./careful-import
""",
    ),
    Situation(
        "A store that was put back from a copy",
        "A copy has forgotten what came after it. Here `order-46` was in flight when the copy was made, and `order-47` was charged after. Put back, the store notices that it was newer before, and refuses: 78. `idem store mark-restored` says what is lost. Work in flight is unknown, and a person looks; what came after is run again when it is asked for, because nothing is left that knows of it.",
        """
$ idem run -k order-46 -- ./charge-slowly 46 >receipt &
+ until idem show order-46 >/dev/null 2>&1; do sleep 0.02; done
$ sqlite3 -readonly idem.db ".backup copy.db"
+ sleep 1.5; kill -KILL $!; sleep 1
$ idem run -k order-47 -- ./charge 47
$ ./put-back
$ idem run -k order-47 -- ./charge 47
$ idem store mark-restored --yes
$ idem run -k order-46 -- ./charge-slowly 46
$ idem run -k order-47 -- ./charge 47
$ cat ledger
""",
    ),
    Situation(
        "A standard output that is full",
        "The output of a command is on record before it is passed on. Where it cannot be written, the exit status is 81: the work is done and must not be done again, but its output did not arrive. It can be written again from the record, unless it was more than is kept.",
        """
$ idem run -k order-48 -- ./charge 48 >/dev/full
$ idem show --output order-48
$ idem run -k numbers --max-output 1k -- seq 1000 >/dev/full
$ cat ledger
""",
    ),
    Situation(
        "A deployment that failed and is mended",
        "A failure is replayed, also after its cause is mended. A person lets the work run again with `idem reopen`, says why, and the next run is told that it takes over. Where no person should be needed, run it with `--outcome jobs` from the beginning (0 completes, 75 releases, all else is tried again). That waits for the same command line; where the command line was the mistake, `idem reopen` lets the mended one run.",
        """
$ idem run -k deploy-1.4 -- ./deploy 1.4
$ touch room
$ idem run -k deploy-1.4 -- ./deploy 1.4
$ idem reopen deploy-1.4 --reason "the disk has room again"
$ idem run -k deploy-1.4 -- ./deploy 1.4
+ rm room
$ idem run -k deploy-1.5 --outcome jobs -- ./deploy 1.5
$ touch room
$ idem run -k deploy-1.5 --outcome jobs -- ./deploy 1.5
$ rm room
$ idem run -k deploy-1.6 --outcome jobs -- ./deploy 1.5
$ touch room
$ idem run -k deploy-1.6 --outcome jobs -- ./deploy 1.6
$ idem reopen deploy-1.6 --reason "the command line was wrong"
$ idem run -k deploy-1.6 --outcome jobs -- ./deploy 1.6
""",
    ),
    Situation(
        "A job that failed at night",
        "cron started a job and it failed, without a word. In the morning `idem list --failed` shows it, and so does `idem watch`, which a monitoring system or cron runs: a warning for a day, and a hook that is run once for it. The person who mends it reopens it, and the alert is over.",
        """
$ idem run -qk backup-23 -- ./failing-backup
$ idem list --failed --since 24h
$ idem watch --once --hook 'cat >>mail' | head -n 1
$ idem watch --once --hook 'cat >>mail' >/dev/null
$ grep -o '"event":.*"key":"[^"]*"' mail
$ idem reopen backup-23 --reason "the tape was full"
$ idem watch --once >/dev/null
""",
    ),
    Situation(
        "A table that is away",
        "Nothing listens at the endpoint of a DynamoDB table. Nothing runs, and each command says which endpoint it was and why: at once, or, where nobody answers at all, within ten seconds for `idem run` and three for what only looks. `idem doctor` goes on to what else can be looked at.",
        """
$ export IDEM_STORE='dynamodb://orders?endpoint=http://127.0.0.1:9'
$ idem run -k order-49 -- ./charge 49
$ idem list --overdue
$ idem watch --once
$ idem doctor | grep bad
+ test ! -e ledger
""",
    ),
    Situation(
        "An owner that is at work",
        "A person does not decide about work while the lease of its owner runs, without saying so: the owner may be at work, and go on beside the next one.",
        """
$ token=$(idem begin -k order-51 --lease 1h)
$ idem resolve order-51 --release --reason "it hangs"
$ idem resolve order-51 --release --reason "it hangs" --force
$ idem complete --token "$token" --result "receipt 1051"
""",
    ),
    Situation(
        "A store that is missing",
        "A store that was here and is gone (deleted, or on a disk that is not mounted) is an error, not a new store: a new one would have forgotten what was done. The directory knows by the lock file; `create=no` in the URL needs not even that.",
        """
$ idem run -k order-52 -- ./charge 52
$ mkdir elsewhere; mv idem.db idem.db-wal idem.db-shm elsewhere
$ idem run -k order-52 -- ./charge 52
$ idem run --store "sqlite:$PWD/new.db?create=no" -k order-52 -- ./charge 52
$ idem doctor | grep bad
$ mv elsewhere/* .
$ idem run -k order-52 -- ./charge 52
$ cat ledger
""",
    ),
    Situation(
        "A disk that is full, looked at",
        "`idem doctor` fails where the next operation would, and says what to do.",
        """
+ mkdir disk; mount -t tmpfs -o size=6m none disk
+ idem run --store sqlite:disk/idem.db -k before -- true
+ rm -f disk/idem.db-reserve; cat /dev/zero >disk/zeros 2>/dev/null || true
$ idem run --store sqlite:disk/idem.db -k order-53 -- ./charge 53
$ idem doctor --store sqlite:disk/idem.db | grep -E '^(bad|warn).*(room|reserve)'
+ rm disk/zeros
$ idem run --store sqlite:disk/idem.db -k order-53 -- ./charge 53
""",
        root=True,
    ),
    Situation(
        "The effect is in a database of your own",
        "`./transfer` is `examples/transfer/transfer.py`, which claims the key, moves the money and records the receipt in one transaction of SQLite. The first try is killed after the money was moved and before the commit: nothing happened, and the next one transfers. Every later one has the first receipt. The database shows its records as a store does.",
        """
+ sqlite3 bank.db "CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER CHECK (balance >= 0)); CREATE TABLE transfer (id INTEGER PRIMARY KEY, key TEXT, payer TEXT, payee TEXT, amount INTEGER); INSERT INTO account VALUES ('ann', 100), ('bob', 0)"
$ ./transfer-cut-off order-54 ann bob 30
$ sqlite3 bank.db "SELECT name, balance FROM account"
$ ./transfer order-54 ann bob 30
$ ./transfer order-54 ann bob 30
$ ./transfer order-54 ann bob 31
$ sqlite3 bank.db "SELECT name, balance FROM account"
$ idem list --store sqlite:bank.db
""",
    ),
    Situation(
        "A command that is typed wrongly",
        "The message names the mistake, with the word that was most likely meant.",
        """
$ idem begin order-54
$ idem release order-54
$ idem complete -k order-54 --result done
$ idem run -k order-54 ./charge 54
$ idem run order-54 -- ./charge 54
$ idem resolve order-54
$ idem rnu -k order-54 -- ./charge 54
$ idem gateway --upstream http://127.0.0.1:3000
""",
    ),
]


# ---- Living through one ----


def steps_of(situation):
    """Return [command, visible] of its steps."""
    lines = situation.steps.strip().splitlines()
    return [(line[2:], line.startswith("$ ")) for line in lines]


def script_of(situation):
    """The bash script of a situation, with a mark and a status after each step."""
    text = "shopt -s expand_aliases\n"
    for command, visible in steps_of(situation):
        if not visible and not command.endswith("&"):
            command = f"{{ {command}; }} >/dev/null 2>&1"
        text += f"{command}\nprintf '%s{session.MARK}' $?\n"
    return text


def python_with_extensions():
    """Return one, or nothing: shell_of() has the situation skipped then."""
    try:
        return languages.python()
    except Skip:
        return ""


def prepare(directory):
    """Make @directory with the commands of the page; return its environment."""
    os.mkdir(directory)
    for name, script in COMMANDS.items():
        path = os.path.join(directory, name)
        write(path, f"#!/bin/sh\n{script}\n", 0o755)
    return {
        "IDEM_STORE": f"sqlite:{directory}/idem.db",
        "PYTHON": python_with_extensions(),
        "TRANSFER": os.path.join(languages.EXAMPLES, "transfer.py"),
        "IDEM_KILL_AT": os.environ.get("IDEM_KILL_AT", ""),
        "IDEM_JOURNAL_DIR": "journal",
        "IDEM_OWNER": "ann@host",
        "IDEM_AUDIT_LOG": f"{directory}/audit.log",
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "eu-west-1",
    }


def shell_of(situation):
    """The command that runs its script, with file systems of its own if need be."""
    shell = ["bash", "--norc", "-c", script_of(situation)]
    if "sqlite3" in situation.steps and not shutil.which("sqlite3"):
        raise Skip("sqlite3 is not installed")
    if "./transfer" in situation.steps:
        languages.python()
    if not situation.root:
        return shell
    private = ["unshare", "--user", "--map-root-user", "--mount"]
    try:
        mount = [*private, "mount", "-t", "tmpfs", "none", "/mnt"]
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        raise Skip("no file system can be mounted here") from None
    return [*private, *shell]


def live_through(situation, env, name):
    """Return the lines of the page's block: commands, output, statuses."""
    directory = os.path.abspath(name)
    env = env | {"NO_COLOR": "1", "TERM": "dumb"} | prepare(directory)
    _, text = at_terminal(shell_of(situation), env, cwd=directory)
    text = text.replace("\r\n", "\n")
    told = text.split(session.MARK)
    steps = steps_of(situation)
    assert len(told) == len(steps) + 1, text
    lines = []
    for (command, visible), got in zip(steps, told):
        output, status = re.fullmatch(r"(.*?)(\d+)", got, re.S).groups()
        if visible:
            output = output.replace(directory, DIRECTORY)
            lines += ["$ " + command, *output.splitlines()]
            lines += [f"[exit status {status}]"] * (status != "0")
        else:
            assert status == "0", (command, got)
    return lines


# ---- The page ----


def section(number, situation, lines):
    block = "\n".join(lines)
    return f"## {number}. {situation.title}\n\n{situation.text}\n\n```text\n{block}\n```\n"


VOLATILE = [
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"\d{4}-\d\d-\d\d [\d:]+ [A-Z]+\b", "TIME"),
    (r"\b\d+(m\d+s|h\d+m|d\d+h)\b", "DURATION"),
    (r"\b1[6-9]\d{11}(\d{3})?\b", "FENCE"),
    (r"\b\d+(\.\d+)? ?(ms|s|m|h|d)\b", "DURATION"),
    (r"[0-9a-f]{8}-[0-9a-f]{16}-\d+", "ENTRY"),
    (r" +", " "),
]


def masked(text):
    """@text without what differs from run to run; the commands stay as typed."""

    def mask(line):
        for pattern, word in VOLATILE if not line.startswith("$ ") else []:
            line = re.sub(pattern, word, line)
        return line

    return [mask(line) for line in text.splitlines()]


def sections_of(page):
    """The introduction and the sections of a page."""
    return re.split(r"(?=^## )", page, flags=re.M)


def read_page():
    if not os.path.exists(PAGE):
        return ""
    return read(PAGE)


def compare(wanted, got):
    """Fail with the lines that differ."""
    found = golden.difference("\n".join(masked(wanted)), "\n".join(masked(got)))
    assert not found, f"the page, and what happens:\n{found}\nIDEM_REGEN=1 writes the page anew."


_lived = {}


def live_through_all():
    """Start all situations side by side: most of the time they wait."""
    env = session.environment()
    with concurrent.futures.ThreadPoolExecutor(len(SITUATIONS)) as pool:
        for number, situation in enumerate(SITUATIONS, 1):
            _lived[number] = pool.submit(live_through, situation, env, str(number))


def add_case(number, situation):
    def case():
        if not _lived:
            live_through_all()
        lines = _lived[number].result()
        if REGEN:
            return
        old = sections_of(read_page())
        assert number < len(old), "the page has no such section"
        wanted = old[number].rstrip() + "\n"
        for again in range(3):
            if masked(section(number, situation, lines)) == masked(wanted):
                break
            # A host under load may be late for a lease: once more, by itself.
            lines = live_through(situation, session.environment(), f"again{again}")
        compare(wanted, section(number, situation, lines))

    case.__name__ = f"situation_{number}"
    add(f"situation {number} is as the page tells it: {situation.title}", case)


def add_page():
    def the_page():
        if REGEN:
            parts = [INTRO]
            old = {part.split(". ", 1)[-1].split("\n")[0]: part for part in sections_of(read_page())}
            for number, situation in enumerate(SITUATIONS, 1):
                new = section(number, situation, _lived[number].result())
                was = old.get(situation.title, "").rstrip() + "\n"
                parts.append(was if masked(was) == masked(new) else new)
            write(PAGE, "\n".join(parts))
        old = sections_of(read_page())
        compare(old[0].rstrip() + "\n", INTRO)
        assert len(old) == len(SITUATIONS) + 1, "sections were added or are missing"

    add("the page has these situations and no others", the_page)


def add_control():
    def control():
        lines = ["$ idem run", "charged 42 at 2026-01-02T03:04:05.678Z"]
        page = section(1, SITUATIONS[0], lines)
        compare(page, page.replace("05.678", "06.789"))
        for bad in (page.replace("42", "43"), page.replace("$ idem", "$ idee")):
            try:
                compare(page, bad)
            except AssertionError:
                continue
            raise AssertionError("a change of the page was not seen")

    add("a page that tells something else is found out", control)


for _number, _situation in enumerate(SITUATIONS, 1):
    add_case(_number, _situation)
add_page()
add_control()


if __name__ == "__main__":
    main()
