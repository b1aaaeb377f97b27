"""idem lambda package: the zip runs where there is nothing but the zip."""

import contextlib
import hashlib
import os
import select
import shutil
import socket
import ssl
import subprocess
import threading
import time
import zipfile

import dynamo
from lambda_api import Sandbox
from patience import until
from tap import LONG, PROGRAM, Idem, equal, main, note, run, skip, test

OBJECT = os.environ["IDEM_TEST_LAMBDA_OBJECT"]
LINKED = os.environ["IDEM_TEST_LAMBDA_LINKED"]
STATIC = os.environ["IDEM_TEST_LAMBDA_STATIC"]

# Lambda's processors, and what the head of an ELF file has for each.
MACHINES = {"x86_64": 62, "arm64": 183}

# Where Amazon Linux 2023 keeps the certificates that it trusts.
AMAZON = "etc/pki/tls/certs/ca-bundle.crt"

# As Lambda sets it: the system's libraries come first.
LAMBDA_LIBRARIES = "/lib64:/usr/lib64:/var/runtime:/var/task:/var/task/lib:/opt/lib"


FUNCTION = []  # The zip with the handler, once it was made.


def package(*arguments):
    done = Idem()("lambda", "package", *arguments, timeout=120)
    equal((done.status, done.stderr), (0, b""))
    return "function.zip"


def function():
    if not FUNCTION:
        return package(OBJECT)
    with open("function.zip", "wb") as f:
        f.write(FUNCTION[0])
    return "function.zip"


def unpack(path, root="root"):
    """An empty system: the files of the zip in /var/task, and the three files of a
    kernel that are read: which boot this is, and what jq's process looks at."""
    task = os.path.join(root, "var/task")
    os.makedirs(task)
    with zipfile.ZipFile(path) as z:
        equal(z.testzip(), None)
        for info in z.infolist():
            z.extract(info, task)
            mode = (info.external_attr >> 16) & 0o777
            os.chmod(os.path.join(task, info.filename), mode)
    boot = "proc/sys/kernel/random/boot_id"
    with open("/" + boot, encoding="ascii") as f:
        boot_id = f.read()
    for name, text in (
        (boot, boot_id),
        ("proc/self/statm", "50000 1 1 1 0 1 0\n"),
        ("dev/null", ""),
    ):
        os.makedirs(os.path.dirname(f"{root}/{name}"), exist_ok=True)
        with open(f"{root}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    return os.path.abspath(root)


def in_root(root):
    """What runs the package there."""
    if os.geteuid() != 0:
        skip("not root: chroot is not allowed")
    return ["chroot", root, "/var/task/bootstrap"]


def openssl(*arguments):
    done = run(["openssl", *arguments])
    equal((arguments[0], done.status), (arguments[0], 0))


def certificates():
    """A certificate of an authority of ours for localhost."""
    subject = ["-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    ca = ["-x509", "-days", "2", "-subj", "/CN=test authority"]
    openssl("req", *subject, *ca, "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *subject, "-subj", "/CN=localhost", "-keyout", "s.key", "-out", "s.csr")
    with open("s.ext", "w", encoding="utf-8") as f:
        f.write("subjectAltName=DNS:localhost\n")
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"]
    openssl("x509", "-req", "-in", "s.csr", *signed, "-extfile", "s.ext", "-out", "s.pem")


class Terminator:
    """TLS in front of a server; counts the connections."""

    def __init__(self, port):
        self.port = port
        self.connections = 0
        self.refused = 0
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain("s.pem", "s.key")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "https://localhost:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        try:
            outer = self.context.wrap_socket(sock, server_side=True)
        except OSError:
            self.refused += 1
            return
        self.connections += 1
        inner = socket.create_connection(("127.0.0.1", self.port))
        pair = {outer: inner, inner: outer}
        with contextlib.suppress(OSError), outer, inner:
            while True:
                ready = [outer] if outer.pending() else select.select(list(pair), [], [])[0]
                for one in ready:
                    data = one.recv(65536)
                    if not data:
                        return
                    pair[one].sendall(data)


@test
def a_package_has_what_it_needs():
    """The zip has the launcher, a loader, the program and its libraries, and is the same each time."""
    with open(package(OBJECT), "rb") as one:
        first = one.read()
    FUNCTION.append(first)
    with open(package(OBJECT), "rb") as two:
        equal(hashlib.sha256(first).digest(), hashlib.sha256(two.read()).digest())
    with zipfile.ZipFile("function.zip") as z:
        names = set(z.namelist())
        size = sum(info.file_size for info in z.infolist())
    needed = {"bootstrap", "lib/main", "lib/ld.so", "handler.so", "lib/libc.so.6"}
    equal(needed - names, set())
    equal([n for n in names if "libcurl" in n or "libjq" in n] != [], True)
    note(f"{len(first)} bytes, {size} unpacked, {len(names)} files")
    assert len(first) < 50 << 20, len(first)
    root = unpack("function.zip")
    dynamic = subprocess.run(
        ["readelf", "-dl", f"{root}/var/task/bootstrap"], capture_output=True, check=True
    ).stdout
    assert b"INTERP" not in dynamic and b"NEEDED" not in dynamic, dynamic


SCHEMES = {"libidem-postgres.so.0", "libidem-postgresql.so.0"}


def open_postgres(root):
    """What the package says of a store in PostgreSQL that is nowhere."""
    loader = [*in_root(root)[:2], "/var/task/lib/ld.so", "--inhibit-cache"]
    program = ["--library-path", "/var/task/lib", "/var/task/lib/main"]
    return run([*loader, *program, "list"], {"IDEM_STORE": "postgresql://u@/x?host=/nowhere"})


@test
def a_package_has_the_stores_that_are_installed():
    """A function whose IDEM_STORE is in PostgreSQL finds libidem-postgres and libpq in its
    package, where they are installed; where not, the line that names the package says that
    they are missing, and what to install."""
    build = os.path.dirname(PROGRAM)
    if not os.path.exists(f"{build}/libidem-postgres.so.0"):
        skip("this build has no store in PostgreSQL")
    with zipfile.ZipFile(function()) as z:
        names = {os.path.basename(name) for name in z.namelist()}
    equal((SCHEMES - names, "libpq.so.5" in names), (set(), True))
    done = open_postgres(unpack("function.zip"))
    equal(done.status, 69)
    assert b"cannot connect to PostgreSQL" in done.stderr, done

    os.mkdir("less")
    for name in "idem", "libidem.so.0", "libidem-aws.so.0", "libidem-dynamodb.so.0":
        shutil.copy(f"{build}/{name}", "less")
    done = run(["less/idem", "lambda", "package", OBJECT], {"LD_LIBRARY_PATH": "less"}, timeout=120)
    equal(done.status, 0)
    missing = b", and no store in PostgreSQL, which is not installed here: apt install libidem-pos"
    assert missing in done.stdout, done
    with zipfile.ZipFile("function.zip") as z:
        assert not [name for name in z.namelist() if "postgres" in name or "libpq" in name]
    done = open_postgres(unpack("function.zip", "other"))
    equal((done.status, b"libidem-postgresql.so.0" in done.stderr), (78, True))


@test
def what_cannot_be_packed():
    """A file that is not there, a directory, one with a name of ours, and a place that cannot be written."""
    os.mkdir("directory")
    with open("bootstrap", "wb") as f:
        f.write(b"x")
    for arguments in (["no-such"], ["directory"], ["bootstrap"], ["--program", "bootstrap"]):
        done = Idem()("lambda", "package", *arguments)
        equal((arguments, done.status != 0, done.stdout), (arguments, True, b""))
        equal(os.path.exists("function.zip"), False)
    done = Idem()("lambda", "package", "-o", "no/such/f.zip")
    equal((done.status != 0, b"cannot write" in done.stderr), (True, True))


@test
def it_serves_from_an_empty_system_over_tls():
    """With nothing but the zip, three files of a kernel, and the authority at Amazon Linux's place, events are served with the DynamoDB store over TLS."""
    kind = "local" if LONG else "dynoxide"
    missing = dynamo.missing(kind)
    if missing:
        skip(missing)
    certificates()
    root = unpack(function())
    command = in_root(root)
    os.makedirs(os.path.dirname(f"{root}/{AMAZON}"))
    shutil.copy("ca.pem", f"{root}/{AMAZON}")
    # An older system has libraries of these names, which are not ours.
    os.makedirs(f"{root}/lib64")
    for name in ("libc.so.6", "libcrypto.so.3", "libcurl.so.4"):
        with open(f"{root}/lib64/{name}", "wb") as f:
            f.write(b"of another system")
    with dynamo.server(kind) as plain:
        env = {k: v for k, v in dynamo.environment().items() if k.startswith("AWS_")}
        created = run(
            [PROGRAM, "store", "create", "--store", f"dynamodb://idem?endpoint={plain}"],
            env,
            timeout=60,
        )
        equal(created.status, 0)
        tls = Terminator(int(plain.rpartition(":")[2]))
        env.update(
            IDEM_STORE=f"dynamodb://idem?endpoint={tls.url}",
            LAMBDA_TASK_ROOT="/var/task",
            LD_LIBRARY_PATH=LAMBDA_LIBRARIES,
            AWS_CA_BUNDLE=None,
            HOME="/",
        )
        with Sandbox("handler.so:handle", env, program=command) as box:
            first = box.invoke({"idempotencyKey": "42"})
            assert first.kind == "response", box.said()
            equal(box.invoke({"idempotencyKey": "42"}).body, first.body)
            equal(box.invoke({"idempotencyKey": "do-fail"}).type, "Poison")
            keys = [f"m{n}" for n in range(10)]
            event = {
                "Records": [
                    {
                        "messageId": key,
                        "eventSource": "aws:sqs",
                        "eventSourceARN": "arn:aws:sqs:eu-west-1:1:orders",
                        "body": "do-fail" if key == "m4" else key,
                    }
                    for key in keys
                ]
            }
            for _ in range(2):
                failed = box.invoke(event).json()["batchItemFailures"]
                equal(failed, [{"itemIdentifier": "m4"}])
            equal(box.starts, 1)
        with open(f"{root}/ledger", encoding="utf-8") as f:
            equal(len(f.readlines()), 2 + 10 + 1)
        seen = tls.connections
        assert seen > 0
        note(f"{kind}: 5 events over {seen} TLS connections")

        # The control: without the authority at that place nothing is trusted.
        os.rename(f"{root}/{AMAZON}", f"{root}/elsewhere.crt")
        with Sandbox("handler.so:handle", env, program=command) as box:
            equal(box.invoke({"idempotencyKey": "44"}).type, "Idem.StoreUnavailable")
        equal(tls.connections, seen)
        until(lambda: tls.refused, "its connection was refused")
        env["AWS_CA_BUNDLE"] = "/elsewhere.crt"
        with Sandbox("handler.so:handle", env, program=command) as box:
            equal(box.invoke({"idempotencyKey": "44"}).kind, "response")

        # The control: by the loader's own rule the other system's would be taken.
        loader = ["chroot", root, "/var/task/lib/ld.so", "/var/task/lib/main"]
        plain = run(loader, {"LD_LIBRARY_PATH": LAMBDA_LIBRARIES})
        equal((plain.status, b"/lib64/lib" in plain.stderr), (127, True))

        # Keys by jq.
        env["IDEM_LAMBDA_KEY"] = ".order"
        with Sandbox("handler.so:handle", env, program=command) as box:
            first = box.invoke({"order": 12345678901234567890})
            equal(first.kind, "response")
            equal(box.invoke({"order": 12345678901234567890}).body, first.body)
            equal(box.invoke({"order": 12345678901234567891}).json()["attempts"], 1)
        tls.listener.close()


@test
def a_linked_function_is_packed():
    """A function that is linked with libidem is packed with --program."""
    root = unpack(package("--program", LINKED))
    command = in_root(root)
    os.makedirs(f"{root}/tmp")
    env = {"IDEM_STORE": "sqlite:/tmp/idem.db", "LD_LIBRARY_PATH": LAMBDA_LIBRARIES}
    with Sandbox("", env, program=command) as box:
        started = time.monotonic()
        equal(box.invoke({"idempotencyKey": "a"}).json(), {"idempotencyKey": "a"})
        note(f"the first event after {time.monotonic() - started:.3f} s")


def machine(path):
    with open(path, "rb") as f:
        return int.from_bytes(f.read(20)[18:], "little")


def for_another(path, name):
    """Copies the program at @path, for the other processor by its head; which that is."""
    with open(path, "rb") as f:
        head = bytearray(f.read())
    (other,) = (arch for arch, number in MACHINES.items() if number != machine(path))
    head[18:20] = MACHINES[other].to_bytes(2, "little")
    with open(name, "wb") as f:
        f.write(head)
    os.chmod(name, 0o755)
    return other


@test
def a_static_program_is_packed_without_a_loader():
    """A program that is linked statically is started by the shell, and is packed for
    the other processor too."""
    root = unpack(package("--program", STATIC))
    task = f"{root}/var/task"
    equal(sorted(os.listdir(task)), ["bootstrap", "lib"])
    equal(os.listdir(f"{task}/lib"), ["main"])
    env = {"LAMBDA_TASK_ROOT": task, "_HANDLER": "charge"}
    equal(run([f"{task}/bootstrap"], env).stdout, b"1 arguments, lambda, for charge\n")

    other = for_another(STATIC, "foreign")
    done = Idem()("lambda", "package", "--arch", other, "--program", "foreign")
    equal((done.status, done.stderr), (0, b""))
    assert f": for {other}, ".encode() in done.stdout, done.stdout
    equal(machine(f"{unpack('function.zip', 'other')}/var/task/lib/main"), MACHINES[other])


@test
def one_processor_for_the_whole_package():
    """Without a program for the processor that --arch names nothing is packed, nor with
    a handler, a shared object or libraries for another one."""
    here, other = sorted(MACHINES, key=lambda arch: MACHINES[arch] != machine(PROGRAM))
    for_another(STATIC, "foreign")
    for_another(LINKED, "foreign-linked")
    for_another(OBJECT, "foreign.so")
    for arguments, said in (
        (["--arch", other], f"{other}: this idem is for {here}; give a statically linked one"),
        (["--arch", other, "--program", STATIC], f"this file is for {here}, and the package for {other}"),
        (["foreign"], f"foreign: this file is for {other}, and the package for {here}"),
        (["foreign.so"], f"foreign.so: this file is for {other}, and the package for {here}"),
        (["--program", "foreign-linked"], "its libraries are those of another processor"),
    ):
        done = Idem()("lambda", "package", *arguments)
        equal((arguments, done.status, done.stdout), (arguments, 78, b""))
        assert said.encode() in done.stderr, done.stderr
        equal(os.path.exists("function.zip"), False)
    equal(Idem()("lambda", "package", "--arch", "sparc").status, 64)


if __name__ == "__main__":
    main()
