"""Calendar windows: which one a moment is in, and that a job runs once in each."""

import collections
import contextlib
import datetime
import json
import os
import signal
import subprocess
import zoneinfo

import dynamo
import postgres
from box import case, contains, finish, is_gone
from moved_clocks import Clocks
from patience import until
from procfs import children
from tap import LONG, Idem, equal, main, test

MINUTE, DAY = 60_000, 86_400_000
RERUN = ("--on-expired-lease", "rerun")
DAILY = ("--every", "day", "--fingerprint", "none")
STEP_S = 900
PERIODS = ("15m", "hour", "2h", "6h", "day", "week", "month")


def local(at_s, zone):
    """What the clocks of @zone show at @at_s, without the zone, by Python's own rules."""
    return datetime.datetime.fromtimestamp(at_s, zone).replace(tzinfo=None)


def shift(at_s, zone):
    return datetime.datetime.fromtimestamp(at_s, zone).utcoffset()


def floor(period, shown):
    """The whole month, week, day or part of it at or before what a clock shows."""
    day = shown.replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "month":
        return day.replace(day=1)
    if period == "week":
        return day - datetime.timedelta(days=day.weekday())
    if period == "day":
        return day
    minutes = {"15m": 15, "hour": 60, "2h": 120, "6h": 360}[period]
    part = (shown.hour * 60 + shown.minute) // minutes * minutes
    return day + datetime.timedelta(minutes=part)


def name(period, at_s, zone):
    shown = datetime.datetime.fromtimestamp(at_s, zone)
    forms = {"month": "%Y-%m", "week": "%G-W%V", "day": "%Y-%m-%d", "15m": "%Y-%m-%dT%H:%M%z/15m"}
    hours = "%Y-%m-%dT%H%z" + ("" if period == "hour" else "/" + period)
    return shown.strftime(forms.get(period, hours))


def begins(zone, from_s, to_s):
    """Where windows of each period begin, found by watching the clock."""
    latest = {period: floor(period, local(from_s, zone)) for period in PERIODS}
    found = {period: [] for period in PERIODS}
    for at_s in range(from_s + STEP_S, to_s, STEP_S):
        shown = local(at_s, zone)
        for period in PERIODS[: 7 if shown.minute % 30 == 0 else 1]:
            begin = floor(period, shown)
            part = period not in ("day", "week", "month")
            if begin > latest[period] or (part and (shown == begin or begin < latest[period])):
                found[period].append(at_s)
                latest[period] = begin
    return found


def answers(lines):
    done = subprocess.run(
        [os.environ["IDEM_WINDOWS"]],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "TZ": "Asia/Tokyo"},  # That of the host is not looked at.
    )
    return done.stdout.splitlines()


def a_year_agrees(name_of_zone, year):
    zone = zoneinfo.ZoneInfo(name_of_zone)
    from_s = int(datetime.datetime(year - 1, 11, 1, tzinfo=datetime.timezone.utc).timestamp())
    to_s = int(datetime.datetime(year + 1, 3, 1, tzinfo=datetime.timezone.utc).timestamp())
    wanted = collections.OrderedDict()
    for period, found in begins(zone, from_s, to_s).items():
        for number, (start_s, end_s) in enumerate(zip(found, found[1:])):
            calm = shift(start_s - 86400, zone) == shift(end_s + 86400, zone)
            if calm and number % 20 and period not in ("day", "week", "month"):
                continue
            answer = f"{start_s} {end_s} {name(period, start_s, zone)}"
            for at_s in {start_s, (start_s + end_s) // 2, end_s - 1}:
                wanted[f"{period} {name_of_zone} {at_s}"] = answer
    got = answers(wanted)
    different = [(ask, want, saw) for (ask, want), saw in zip(wanted.items(), got) if want != saw]
    equal((len(got), different[:5]), (len(wanted), []))
    for period in PERIODS:
        names = {answer.split()[2] for ask, answer in wanted.items() if ask.startswith(period)}
        starts = {answer.split()[0] for ask, answer in wanted.items() if ask.startswith(period)}
        equal(len(names), len(starts))


@test
def windows_are_those_of_the_zones():
    """A year of windows beside Python's zones: summer time both ways, half hours, a
    midnight that comes twice, one that does not come, and a day that does not."""
    for zone, year in (
        ("UTC", 2026),
        ("Europe/Berlin", 2026),
        ("Asia/Kathmandu", 2026),
        ("Australia/Lord_Howe", 2026),
        ("America/Havana", 2026),
        ("America/Sao_Paulo", 2018),
        ("Pacific/Apia", 2011),
    ):
        a_year_agrees(zone, year)


# ---- idem run --every ----------------------------------------------------------


class Days:
    """A store of which the host's clocks are moved from day to day, from the next noon: a
    clock that is moved back could come to before the host was started."""

    def __init__(self, b):
        self.b = b
        self.clocks = Clocks(b)
        now = datetime.datetime.now(datetime.timezone.utc)
        self.today = now.replace(hour=12, minute=0, second=0, microsecond=0)
        if self.today < now:
            self.today += datetime.timedelta(days=1)
        self._move(int((self.today - now).total_seconds() * 1000))

    def _move(self, ms):
        self.clocks.move(wall=ms, boot=ms, monotonic=ms)

    def next(self, ms=DAY):
        self.today += datetime.timedelta(milliseconds=ms)
        self._move(ms)

    def key(self, days=0):
        return "j@" + (self.today + datetime.timedelta(days=days)).strftime("%Y-%m-%d")

    def run(self, script, *options):
        return self.b.run("j", script, *DAILY, *options, env=self.clocks.env)

    def start(self, script, *options):
        return self.b.start_run("j", script, *DAILY, *options, env=self.clocks.env)

    def record(self, key):
        shown = self.b("show", "--json", key, env=self.clocks.env)
        return json.loads(shown.stdout) if shown.status == 0 else None

    def crash(self, *options):
        """Today's job dies with its host."""
        process = self.start("echo $$ > pid; exec sleep 1000", *options)
        self.b.await_pid()
        for pid in [process.pid, *children(process.pid), self.b.await_pid()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        finish(process)


SAY = "echo $IDEM_WINDOW $IDEM_TAKEOVER"


@case
def once_in_each_window(b):
    """A day runs once, and is told which it is; the next day runs again. The record stays
    until the second day after it is over."""
    days = Days(b)
    first = days.run(SAY)
    window = days.key()[2:]
    equal(first[:2], (0, f"{window} 0\n".encode()))
    equal(days.run("echo again")[:2], first[:2])
    left_ms = days.record(days.key())["expires_ms"] - int(days.today.timestamp() * 1000)
    assert 60 * 3600_000 - 60_000 < left_ms < 61 * 3600_000, left_ms
    days.next()
    equal(days.run(SAY)[:2], (0, f"{days.key()[2:]} 0\n".encode()))
    assert days.key()[2:] != window
    equal(b.run("plain", "echo ${IDEM_WINDOW-none}", env={"IDEM_WINDOW": "x"}).stdout, b"none\n")


@case
def what_died_yesterday_runs_first(b):
    """Under rerun, and then today's; its status is not lost."""
    days = Days(b)
    days.crash(*RERUN)
    days.next()
    got = days.run(SAY + "; [ $IDEM_TAKEOVER = 0 ] || exit 3", *RERUN)
    want = f"{days.key(-1)[2:]} 1\n{days.key()[2:]} 0\n".encode()
    equal(got[:2], (3, want))
    equal(days.run(SAY, *RERUN)[:2], (0, f"{days.key()[2:]} 0\n".encode()))
    equal(days.record(days.key(-1))["status"], "completed")


@case
def what_died_yesterday_is_held(b):
    """Under hold nothing runs until a person has said what came of it."""
    days = Days(b)
    days.crash()
    days.next()
    for _ in range(2):
        got = days.run("echo effect >> ledger")
        equal((got.status, b.effects()), (76, 0))
        contains(got.stderr, days.key(-1).encode(), b"idem resolve")
    equal(days.record(days.key()), None)
    fence = str(days.record(days.key(-1))["fence"])
    done = b("resolve", days.key(-1), "--complete", "by hand", "--fence", fence, "--reason", "seen", env=days.clocks.env)
    equal(done.status, 0)
    equal((days.run("echo effect >> ledger").status, b.effects()), (0, 1))


@case
def what_failed_yesterday_runs_again_first(b):
    """What is to be run again is, and today's follows whether it then ends well or not."""
    days = Days(b)
    again = ("--outcome", "jobs")
    equal(days.run("exit 5", *again).status, 5)
    days.next()
    equal(days.run("echo $IDEM_WINDOW >> seen; exit 6", *again).status, 6)
    equal(b.read("seen").split(), [days.key(-1)[2:], days.key()[2:]])


@case
def what_still_runs_is_busy(b):
    """Yesterday's work that goes on is not joined by today's, unless that is asked for."""
    days = Days(b)
    long = days.start("read x < gate; echo long", "--lease", "never")
    until(lambda: (days.record(days.key()) or {}).get("status") == "in_progress", "it runs")
    days.next()
    got = days.run("echo effect >> ledger")
    equal((got.status, b.effects()), (75, 0))
    contains(got.stderr, days.key(-1).encode())
    equal(days.run("echo effect >> ledger", "--overlap").status, 0)
    equal(b.effects(), 1)
    b.open_gate()
    equal(finish(long)[:2], (0, b"long\n"))


def each_window_runs_once(b, days, env, windows, behind_ms=0):
    """The same line of a crontab on two hosts, after one of another host whose clock shows
    so much more, and sets the store's."""
    line = ("--every", "15m", "--zone", "Asia/Kathmandu", "--replay", "quiet", "--wait", "1m")
    for n in range(windows):
        days.next(behind_ms)
        equal(b.run(f"ahead{n}", "true", env=env).status, 0)
        days.next(-behind_ms)
        hosts = [b.start_run("w", "echo effect >> ledger; echo said", *line, env=env) for _ in range(2)]
        equal(sorted(finish(host) for host in hosts), [(0, b"", b""), (0, b"said\n", b"")])
        days.next(15 * MINUTE)
    equal(b.effects(), windows)


@case
def two_hosts_run_each_window_once(b):
    """The clocks of both are ten minutes behind the store's."""
    days = Days(b)
    each_window_runs_once(b, days, days.clocks.env, 100, behind_ms=10 * MINUTE)


@case
def two_hosts_run_each_window_once_in_a_table(b):
    """The clocks of both are hours off that of DynamoDB, which goes on by itself."""
    with dynamo.server("dynoxide") as url:
        days = Days(b)
        env = {**dynamo.environment(), **days.clocks.env, "IDEM_STORE": f"dynamodb://idem?endpoint={url}"}
        equal(b("store", "create", env=env).status, 0)
        each_window_runs_once(b, days, env, 100 if LONG else 20)


@case
def two_hosts_run_each_window_once_in_a_database(b):
    """The same in PostgreSQL."""
    with postgres.server() as server:
        days = Days(b)
        env = {**days.clocks.env, "IDEM_STORE": server.url}
        equal(b("store", "create", env=env).status, 0)
        each_window_runs_once(b, days, env, 100 if LONG else 20)


@test
def a_limit_counts_in_the_same_windows():
    """idem limit cuts months, weeks and days of a zone, with the hour that a day has more or
    less: an event of the last millisecond counts in it, and the next in another."""
    idem = Idem()
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    for options, zone, first, last in (
        (("month", "--zone", "Europe/Berlin"), berlin, (2024, 3, 1), (2024, 4, 1)),  # 31 days less an hour.
        (("month",), datetime.timezone.utc, (2024, 2, 1), (2024, 3, 1)),
        (("week",), datetime.timezone.utc, (2024, 12, 30), (2025, 1, 6)),
        (("day", "--zone", "Europe/Berlin"), berlin, (2024, 3, 31), (2024, 4, 1)),  # 23 hours.
        (("day", "--zone", "Europe/Berlin"), berlin, (2024, 10, 27), (2024, 10, 28)),  # 25.
        (("15m", "--zone", "Asia/Kathmandu"), zoneinfo.ZoneInfo("Asia/Kathmandu"),
         (2020, 1, 1, 0, 15), (2020, 1, 1, 0, 30)),
    ):
        start, end = (int(datetime.datetime(*at, tzinfo=zone).timestamp() * 1000) for at in (first, last))
        counted = []
        for request, at in (("a", start), ("b", end - 1), ("c", end), ("d", start - 1)):
            done = idem("limit", "-n", "plan", "-u", "u", "-r", request, "--at", str(at), "--late", "36000d",
                        "-m", "9", "--json", "--per", *options)
            told = json.loads(done.stdout)
            counted.append((request, told["remaining"], told["start_ms"] == start, told["end_ms"] == end))
        wanted = [("a", 8, True, True), ("b", 7, True, True), ("c", 8, False, False), ("d", 8, False, False)]
        equal((options, counted), (options, wanted))
    for options, said in ((("day", "--zone", "Mars/Olympus"), b"no such time zone"),
                          (("90s", "--zone", "UTC"), b"must divide a day"), (("year",), b"--per")):
        done = idem("limit", "-n", "a", "-u", "u", "-r", "r", "-m", "1", "--per", *options)
        equal((options, done.status), (options, 64))
        contains(done.stderr, said)


# ---- Locks -----------------------------------------------------------------------


@case
def a_lock_keeps_others_away_and_remembers_nothing(b):
    """One at a time, each with its own status and output, also after a death; an operation
    of the same key is another thing. The control: without it both are there at once."""
    lock = ("--lock", "--wait", "100s")
    alone = "mkdir here && sleep 0.05 && rmdir here"
    said = [b.start_run("repo", alone, *lock) for _ in range(6)]
    equal({finish(one)[:2] for one in said}, {(0, b"")})
    for _ in range(7):  # More often than an operation may be started.
        equal(b.run("repo", "echo out; exit 3", *lock), (3, b"out\n", b""))
    equal(b.run("repo", "kill -9 $$", *lock).status, 137)
    equal(b.record("=lock:repo")["status"], "released")
    equal(b.run("repo", "true", *lock).status, 0)
    holder = b.start_run("repo", "read x < gate", *lock)
    until(lambda: b.has_status("=lock:repo", "in_progress"), "it is held")
    got = b.run("repo", "echo effect >> ledger", "--lock")
    equal((got.status, b.effects()), (75, 0))
    equal(b.run("repo", "echo an operation").stdout, b"an operation\n")
    b.open_gate()
    equal(finish(holder).status, 0)
    equal(b.record("=lock:repo")["status"], "released")

    control = [b.start_run(f"other{n}", alone) for n in range(6)]
    assert any(finish(one).status != 0 for one in control)


@case
def a_lock_that_is_lost_ends_its_command(b):
    """Its lease is taken by another: the command is ended, and that is said."""
    options = ("--lock", "--lease", "12s", "--kill-after", "0s")
    holder = b.start_run("l", "echo $$ > pid; exec sleep 1000", *options)
    child = b.await_pid()
    fence = str(b.record("=lock:l")["fence"])
    done = b("resolve", "=lock:l", "--release", "--force", "--fence", fence, "--reason", "stuck")
    equal(done.status, 0)
    equal(finish(holder).status, 80)
    until(lambda: is_gone(child), "the command is ended")
    equal(b.run("l", "echo next", "--lock").stdout, b"next\n")


# ---- Pipelines and mail ----------------------------------------------------------


@case
def a_quiet_replay_has_its_status_alone(b):
    """With --replay quiet nothing is printed, and the status is that of the record."""
    for script, status in (("echo out; echo err >&2", 0), ("echo out; exit 3", 3)):
        key = f"q{status}"
        equal(b.run(key, script).status, status)
        equal(b.run(key, script, "--replay", "quiet"), (status, b"", b""))
        equal(b.run(key, script).stdout, b"out\n")  # The control.


@case
def a_replay_drains_its_input(b):
    """Whoever writes into a replay is not ended by a signal for it, where that was asked for."""

    def piped(key, *options):
        line = (
            "set -o pipefail; head -c 1000000 /dev/zero | "
            f"idem run -qk {key} {' '.join(options)} -- wc -c; echo ${{PIPESTATUS[*]}}"
        )
        return b.shell(line).stdout.decode().split()

    equal(piped("k"), ["1000000", "0", "0"])
    equal(piped("k", "--drain"), ["1000000", "0", "0"])
    equal(piped("k", "--drain", "--fingerprint", "x"), ["0", "65"])
    equal(piped("k", "--fingerprint", "x"), ["141", "65"])  # The control.


if __name__ == "__main__":
    main()
