"""TAP for tests in Python: register, run each in a directory of its own, report.

A test file:

    from tap import Idem, equal, main, test

    @test(rows=[4])
    def finished_work_is_replayed():
        '''A finished command is replayed and does not run again.'''
        idem = Idem()
        first = idem("run", "-k", "a", "--", "sh", "-c", "echo $$")
        equal(idem("run", "-k", "a", "--", "sh", "-c", "echo $$"), first)

    if __name__ == "__main__":
        main()
"""

import argparse
import atexit
import concurrent.futures
import contextlib
import fnmatch
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import traceback
from typing import NamedTuple

from patience import LATE_STATUS, Late

LONG = os.environ.get("IDEM_TEST_LONG") == "1"
SANITIZER = os.environ.get("IDEM_TEST_SANITIZER", "none")  # As Meson names it.
SANITIZED = SANITIZER != "none"
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.abspath(
    os.environ.get("IDEM_PROGRAM", os.path.join(TOP, "build", "idem"))
)

_tests = []
_notes = []
_ending = contextlib.ExitStack()
atexit.register(_ending.close)


class Skip(Exception):
    """Raised by skip()."""


class Result(NamedTuple):
    """How a command ended; killed by signal N is the status -N."""

    status: int
    stdout: bytes
    stderr: bytes


def skip(reason):
    """End this test as skipped."""
    raise Skip(reason)


def equal(got, wanted):
    """Fail and show both unless they are equal."""
    assert got == wanted, f"got    {got!r}\nwanted {wanted!r}"


def note(text):
    """Print in the results what a test did, such as how often."""
    _notes.append(text)


def for_all(context):
    """Enter @context for all tests of this program, and return its value."""
    return _ending.enter_context(context)


def add(description, function, rows=()):
    """Register @function, for tests that are made in a loop."""
    tags = "".join(f" [row {row}]" for row in rows)
    _tests.append((function.__name__, description + tags, function))


def sentence_of(function):
    sentence = " ".join((function.__doc__ or "").split())
    assert sentence, f"{function.__name__} has no docstring"
    return sentence


def test(function=None, *, rows=(), given=None):
    """Register a function; its docstring states in one sentence what holds.

    @rows are the rows of the fault matrix that the test covers; @given() makes a context,
    whose value the function gets.
    """

    def register(f):
        def call():
            with given() as it:
                return f(it)

        call.__name__ = f.__name__
        add(f"{f.__name__}: {sentence_of(f)}", f if given is None else call, rows)
        return f

    return register(function) if function else register


def each(values, rows=(), given=lambda value: value):
    """Register a function once for each of @values. It is called with @given(value), which
    runs just before it."""

    def register(f):
        for value in values:

            def case(value=value):
                f(given(value))

            case.__name__ = f"{value}_{f.__name__}"
            add(f"{case.__name__}: {sentence_of(f)}", case, rows)
        return f

    return register


def environment(extra=None):
    """Return our environment without the user's IDEM_ settings, taste or home, plus @extra.

    A value of None removes a variable.
    """
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("IDEM_", "XDG_", "CLICOLOR"))
        and name not in ("NO_COLOR", "TZ")
    }
    env.update(HOME=os.getcwd(), LC_ALL="C")
    env.update(IDEM_JOURNAL_DIR=os.path.join(os.getcwd(), "journal"))
    env.update(IDEM_AUDIT_LOG=os.path.join(os.getcwd(), "audit.log"))
    for name, value in (extra or {}).items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = str(value)
    return env


def traced(env=None):
    """Return @env, by default ours, for a program under a tracer, where the address
    sanitizer cannot look for leaks."""
    env = os.environ if env is None else env
    options = env.get("ASAN_OPTIONS", os.environ.get("ASAN_OPTIONS", ""))
    return {**env, "ASAN_OPTIONS": f"{options}:detect_leaks=0"}


def watched(program):
    """Return the words of @program, a test in C that one in Python starts, after those of
    IDEM_TEST_WRAPPER: memcheck does not follow a test into its children."""
    return [*shlex.split(os.environ.get("IDEM_TEST_WRAPPER", "")), *program]


def start(cmd, env=None, **popen):
    """Start @cmd in a session of its own, with pipes, and leave it running.

    Whoever starts a process ends it: `with start(...) as process:`.
    """
    options = dict(
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    options.update(popen)
    return subprocess.Popen(cmd, env=environment(env), **options)


def kill_session(process):
    """Kill @process, which start() made, and what it left in its session."""
    for entry in os.listdir("/proc"):
        with contextlib.suppress(ValueError, ProcessLookupError):
            if os.getsid(int(entry)) == process.pid:
                os.kill(int(entry), signal.SIGKILL)
    process.wait()


def end_session(process):
    """Do the same, and close the pipes to it."""
    kill_session(process)
    for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
        pipe.close()


# A run may wait for a disk that other tests keep busy.
TIMEOUT = 600 if "IDEM_TEST_LONG" in os.environ else 120


def run(cmd, env=None, input=None, timeout=TIMEOUT):
    """Run @cmd to its end; a run longer than @timeout seconds fails the test."""
    stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
    process = start(cmd, env, stdin=stdin)
    try:
        stdout, stderr = process.communicate(input, timeout)
    except subprocess.TimeoutExpired as late:
        kill_session(process)
        raise AssertionError(
            f"{cmd} ran longer than {timeout} s\n"
            f"stdout: {late.stdout!r}\nstderr: {late.stderr!r}"
        ) from None
    return Result(process.returncode, stdout, stderr)


def at_once(function, items):
    """Call @function for each of @items at the same time, and return the results."""
    items = list(items)
    with concurrent.futures.ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(function, items))


class Idem:
    """The program under test, on a SQLite file in the test's own directory."""

    def __init__(self, store=None):
        self.store = store or "sqlite:" + os.path.abspath("idem.db")

    def __call__(self, *args, env=None, input=None, timeout=TIMEOUT):
        return run([PROGRAM, *args], self._env(env), input, timeout)

    def start(self, *args, env=None, **popen):
        return start([PROGRAM, *args], self._env(env), **popen)

    def _env(self, extra):
        return {"IDEM_STORE": self.store, **(extra or {})}


def report(out, number, description, failure=None, skipped=None):
    """Print one TAP case to @out; @failure is the text that explains it."""
    line = f"{number} - {description.replace('#', ' ')}"
    if skipped is not None:
        line += f" # SKIP {skipped}"
    print("not ok" if failure is not None else "ok", line, file=out)
    for text in "\n".join([failure or "", *_notes]).strip("\n").splitlines():
        print("#", text, file=out)
    _notes.clear()
    out.flush()


def _explain(error):
    """Return the text of a failed assertion, and its line of the test."""
    if not isinstance(error, AssertionError):
        return "".join(traceback.format_exception(error))
    frames = traceback.extract_tb(error.__traceback__)
    frame = [f for f in frames if f.filename != __file__][-1]
    where = f"at {os.path.basename(frame.filename)}:{frame.lineno}: {frame.line}"
    return f"{error}\n{where}".strip()


def _in_directory(function):
    """Call @function in a directory of its own; return why it was skipped."""
    home = os.getcwd()
    with tempfile.TemporaryDirectory(
        prefix="idem-test-", ignore_cleanup_errors=True
    ) as directory:
        os.chdir(directory)
        try:
            function()
        except Skip as reason:
            return str(reason)
        finally:
            os.chdir(home)
    return None


def _run_one(function):
    """Return (failure, skipped, late) of one test."""
    try:
        return None, _in_directory(function), False
    except Exception as error:  # pylint: disable=broad-except
        return _explain(error), None, isinstance(error, Late)


def arguments():
    """Take the arguments of this program itself; what main() reads stays."""
    ends = [i for i, arg in enumerate(sys.argv) if arg.partition("=")[0] == "--only"]
    end = min(ends, default=len(sys.argv))
    own = sys.argv[1:end]
    del sys.argv[1:end]
    return own


def main():
    """Run the registered tests and exit: 0 if all of them held, LATE_STATUS if those
    that failed were late and nothing else."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--only", metavar="PATTERN", default="", help="tests whose name has this"
    )
    pattern = f"*{parser.parse_args().only}*"
    chosen = [t for t in _tests if fnmatch.fnmatch(t[0], pattern)]

    # TAP goes to the real stdout; whatever a test or its children print goes
    # to stderr, where it cannot be taken for a result.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    if not chosen:
        print("1..0 # SKIP no test to run", file=out)
        sys.exit(1 if _tests else 0)
    print(f"1..{len(chosen)}", file=out, flush=True)
    failures, lates = 0, 0
    for number, (_, description, function) in enumerate(chosen, 1):
        failure, skipped, late = _run_one(function)
        report(out, number, description, failure, skipped)
        failures += failure is not None
        lates += late
    sys.exit(0 if not failures else LATE_STATUS if lates == failures else 1)
