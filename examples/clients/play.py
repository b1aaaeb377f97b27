"""The stage for the `try` of each folder here: it sends the same events to all handlers of the
folder, those without idem and those with it, in Node.js and in Python, side by side. Each handler
has a process, a service and a store of its own. A story fails if a promise does not hold.
"""

import contextlib
import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from service import Service, once

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
CLIENTS = os.path.join(TOP, "clients")  # In the source; elsewhere they are installed.
BUILT = os.path.join(TOP, "build", "idem")
if os.path.isdir(CLIENTS):
    sys.path.insert(0, os.path.join(CLIENTS, "python"))
    if os.path.exists(BUILT):
        os.environ.setdefault("IDEM_PROGRAM", BUILT)

try:
    import idem

    PROGRAM = idem.open("memory:").program
except ImportError:
    sys.exit("the clients are not installed: pip install, and npm install here, their packages")
except idem.NoProgram as error:
    sys.exit(str(error))
RUNTIMES = {
    ".js": ["node", os.path.join(HERE, "runtime.js")],
    ".py": [sys.executable, "-B", os.path.join(HERE, "runtime.py")],
}


def say(text):
    """Print a comment in the transcript."""
    print("\n# " + text.replace("\n", "\n# "), flush=True)


class Function:
    """A handler in a process; after its death the next event starts another."""

    def __init__(self, path, place):
        self.path, self.name = path, os.path.basename(path)
        self.is_control = self.name.startswith("without")
        self.directory = os.path.join(place, self.name)
        self.service, self.process = Service(), None
        os.mkdir(self.directory)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("IDEM_")}
        self.env.update(IDEM_PROGRAM=PROGRAM, IDEM_STORE=f"sqlite:{self.directory}/idem.db")
        self.env.update(SERVICE_URL=self.service.url)
        if os.path.isdir(CLIENTS):
            python = [sys.path[0], self.env.get("PYTHONPATH", "")]
            self.env.update(NODE_PATH=place, PYTHONPATH=":".join(filter(None, python)))

    def ask(self, event):
        """Send an event. Return the answer, the verdict that kept the work from starting, "error",
        or "died"."""
        if self.process is None:
            command = [*RUNTIMES[self.path[-3:]], self.path]
            with open(os.path.join(self.directory, "log"), "a", encoding="utf-8") as log:
                self.process = subprocess.Popen(
                    command, cwd=self.directory, env=self.env, text=True,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                )  # fmt: skip
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(event) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            told = json.loads(line)
            if "answer" in told:
                return told["answer"]
            is_verdict = issubclass(getattr(idem, told["error"], object), idem.NotStarted)
            return told["error"] if is_verdict else "error"
        self.end()
        self.wait_until_its_end_is_known()
        return "died"

    def wait_until_its_end_is_known(self):
        """Wait until idem has seen the death, as the delay of the next delivery would."""
        end = time.monotonic() + 60
        while not self.is_control and any(not record.get("overdue") for record in self.in_progress()):
            if time.monotonic() > end:
                sys.exit(f"{self.name}: its death was not seen")
            time.sleep(0.05)

    def in_progress(self):
        listed = self.idem("list", "--status", "in_progress", "--json")
        if listed.returncode != 0:
            sys.exit(listed.stderr)
        return [json.loads(line) for line in listed.stdout.splitlines()]

    def dies(self, word, always=False):
        """The process dies once the service has booked @word, before it has the answer."""

        def act():
            process = self.process
            process.kill()
            process.wait()

        self.service.hooks[word] = act if always else once(act)

    def idem(self, *arguments):
        """Run a command of idem on its store."""
        return subprocess.run(
            [PROGRAM, *arguments], env=self.env, capture_output=True, text=True, check=False
        )

    def end(self):
        if self.process is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
            if self.process.wait(60) != 0 and self.process.returncode != -9:
                with open(os.path.join(self.directory, "log"), encoding="utf-8") as log:
                    sys.exit(f"{self.name} ended with {self.process.returncode}: {log.read()}")
            self.process.stdout.close()
            self.process = None


class Stage:
    """The handlers of one folder."""

    def __init__(self, functions):
        self.functions = functions

    def step(self, text, act, without, idem):  # pylint: disable=redefined-outer-name
        """Do @act with each handler. Print what it returns, which must be as expected."""
        say(text)
        for function in self.functions:
            got, wanted = act(function), without if function.is_control else idem
            shown = [each if isinstance(each, str) else json.dumps(each) for each in got]
            print(f"    {function.name:<11} {' | '.join(shown)}", flush=True)
            if got != wanted:
                sys.exit(f"    THE PROMISE DOES NOT HOLD: expected: {wanted}")

    def command(self, *arguments):
        """Print a command of idem, and run it on each store."""
        print("\n$ idem " + shlex.join(arguments), flush=True)
        for function in self.functions:
            if not function.is_control:
                done = function.idem(*arguments)
                if done.returncode != 0:
                    sys.exit(done.stderr)


@contextlib.contextmanager
def of(story):
    """Give a Stage with the handlers beside the file @story, in a directory of their own."""
    folder = os.path.dirname(os.path.abspath(story))
    paths = sorted(glob.glob(folder + "/*.[jp][sy]"), key=lambda path: ("without" not in path, path))
    if not shutil.which("node"):
        say("Node.js is not installed: its handlers are not played.")
        paths = [path for path in paths if not path.endswith(".js")]
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        if os.path.isdir(CLIENTS):
            os.symlink(os.path.join(CLIENTS, "node"), os.path.join(place, "idem"))
        functions = [Function(path, place) for path in paths]
        for function in functions:
            stack.callback(function.end)
        yield Stage(functions)
    say("All of it held.")
