"""The stage of the stories in these folders: this machine, with Amazon's DynamoDB Local
and a server of the SQS protocol instead of AWS, and the sandbox of the tests instead of
Lambda. A story prints what it does, shows commands, and fails if a promise does not hold.

A `try` begins with

    import stage
    with stage.play() as place: ...
"""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = os.path.join(TOP, "tests", "lib"), os.path.join(TOP, "examples", "clients")

import dynamo  # noqa: E402
import sqs  # noqa: E402
import tap  # noqa: E402
from lambda_api import Sandbox  # noqa: E402
from service import Service, once  # noqa: E402, F401  # pylint: disable=unused-import

# Runs a handler as any runtime does, without idem: for controls.
WITHOUT = [sys.executable, os.path.join(HERE, "without.py")]
REGION = "eu-west-1"
began = time.monotonic()


def say(text):
    """Print a comment in the transcript."""
    print("\n# " + text.replace("\n", "\n# "), flush=True)


def check(what, got, wanted):
    """Print that @what is as wanted, or end the story."""
    if got != wanted:
        sys.exit(f"    THE PROMISE DOES NOT HOLD: {what}: {got}, expected: {wanted}")
    print(f"    ok: {what}: {got}", flush=True)


def run(*command):
    """Run a command in the source tree, with its output beside the transcript."""
    subprocess.run(command, cwd=TOP, check=True, stdout=sys.stderr)


def build():
    """Build the program and check for the servers; the tests have both already."""
    if "IDEM_PROGRAM" not in os.environ:
        run("tools/deps", "build")
        run("tools/deps", "servers")
        if not os.path.exists(os.path.join(TOP, "build", "build.ninja")):
            run("meson", "setup", "build")
        run("meson", "compile", "-C", "build", "idem:executable", "idem:shared_library")
    for why in (dynamo.missing("local"), sqs.missing()):
        if why is not None:
            sys.exit(f"{sys.argv[0]}: {why}; tools/deps servers installs what is needed")


class Place:
    """A directory, the servers, and the settings of their clients."""

    def __init__(self, stack):
        self.stack = stack
        self.contents, self.tasks = {}, 0
        # The tests have one already, for all stories.
        self.table_url = os.environ.get("IDEM_TEST_DYNAMODB") or stack.enter_context(
            dynamo.server("local")
        )
        self.credentials = {
            name: value
            for name, value in dynamo.environment().items()
            if name.startswith("AWS_")
        }
        # The first requests to a JVM that has just started take the longest.
        warm = self.store("warm")
        for key in "abc":
            self.idem(warm, "run", "--key", key, "--", "true")

    def store(self, table):
        """Create a table, and return its URL."""
        url = f"dynamodb://{table}?endpoint={self.table_url}&region={REGION}"
        made = self.idem(url, "store", "create")
        if made.returncode != 0:
            sys.exit(made.stderr)
        return url

    def queues(self):
        """Start an SQS server, and return its endpoint."""
        return self.stack.enter_context(sqs.server())

    def idem(self, store, *arguments):
        """Run a command of idem on a store, and return how it ended."""
        env = tap.environment({**self.credentials, "IDEM_STORE": store})
        return subprocess.run(
            [tap.PROGRAM, *arguments], env=env, capture_output=True, text=True, check=False
        )

    def show(self, store, *arguments):
        """Do the same, and print it as at a prompt."""
        print("$ idem " + shlex.join(arguments))
        done = self.idem(store, *arguments)
        print(done.stdout + done.stderr, end="", flush=True)
        return done

    def records(self, store):
        """Return the records by key."""
        told = self.idem(store, "list", "--json").stdout.splitlines()
        return {record["key"]: record for record in map(json.loads, told)}

    def box(self, handler, env, program=None):
        """Start a function of Lambda: a script, in the package that the first lines of
        the template make, or a program that is linked with the runtime. It cannot write
        into its directory."""
        task = self.packed(handler)
        name = os.path.basename(handler)
        if program is None:
            program = [os.path.join(task, "bootstrap")]
        else:
            name = os.path.join(task, name)
            program = ["env", f"PATH={task}:{os.environ['PATH']}", *program]
        # Lambda starts a function in its directory.
        program = ["env", "-C", task, *program]
        settings = {**self.credentials, "LAMBDA_TASK_ROOT": task, **env}
        # This machine may be busier than DynamoDB ever is.
        settings["IDEM_STORE_TIMEOUT"] = "8s"
        box = self.stack.enter_context(Sandbox(name, settings, program))
        box.task = task
        return box

    def packed(self, handler):
        """Make the directory of a function, as Lambda unpacks the package."""
        self.tasks += 1
        task = os.path.abspath(f"task{self.tasks}")
        os.mkdir(task)
        if handler.endswith(".sh"):
            shutil.copy(handler, task)
            shutil.copy(os.path.join(HERE, "bootstrap"), task)
            os.symlink(tap.PROGRAM, os.path.join(task, "idem"))
        else:
            shutil.copy(handler, os.path.join(task, "bootstrap"))
        self.contents[task] = sorted(os.listdir(task))
        os.chmod(task, 0o555)
        return task

    def check_untouched(self):
        """Check that no function wrote into its directory, which Lambda forbids."""
        say("No function has written into its directory, which Lambda would not allow.")
        for task, files in self.contents.items():
            if sorted(os.listdir(task)) != files:
                check(f"files in {task}", sorted(os.listdir(task)), files)
        check("directories as they were", len(self.contents), self.tasks)


def linked(source, *libraries):
    """Build an example in C by the command in its first lines; return the program."""
    built = os.path.dirname(tap.PROGRAM)
    made = os.path.abspath(os.path.basename(source)[:-2])
    command = ["cc", "-I", os.path.join(TOP, "include"), "-o", made, source]
    command += ["-L", built, f"-Wl,-rpath,{built}", "-lidem-aws", "-lidem"]
    subprocess.run([*command, *(f"-l{name}" for name in libraries)], check=True)
    return made


def settings_in(source):
    """Return the settings NAME=VALUE from the comment of an example."""
    found = {}
    with open(source, encoding="utf-8") as f:
        for line in f:
            words = line.lstrip("#* ").split("=", 1)
            if line.startswith(("#     IDEM_", " *     IDEM_")) and len(words) == 2:
                value = words[1].strip()
                quoted = value.startswith("'")
                found[words[0]] = value.split("'")[1] if quoted else value.split()[0]
    return found


def crash(box):
    """Kill the function, as a lack of memory or a fault of the machine would."""
    tap.kill_session(box.process)


def together(*acts):
    """Play @acts at the same time; the first failure ends the story."""
    failures = []

    def play_one(act):
        try:
            act()
        except BaseException as failure:  # pylint: disable=broad-except
            failures.append(failure)

    threads = [threading.Thread(target=play_one, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@contextlib.contextmanager
def play():
    """Build, start DynamoDB Local, and give a Place in a directory of its own."""
    build()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        os.chdir(directory)
        yield Place(stack)
        os.chdir(TOP)
    say(f"all of it held, in {time.monotonic() - began:.0f} s")
