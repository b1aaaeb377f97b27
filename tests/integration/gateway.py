"""idem gateway: what it makes of its command line, of sockets and of signals, with a
program in the place of nginx that says how it was started. tests/nginx has the real
one."""

import glob
import os
import re
import shutil
import signal
import socket

from files import read, write
from patience import PATIENCE, until
from tap import PROGRAM, Idem, Result, equal, kill_session, main, run, skip, test

# As root, nginx's user must be named.
AS_USER = ["--user", "root"] if os.getuid() == 0 else []
SERVICE = ["--upstream", "http://127.0.0.1:3000"]
USUAL = [*SERVICE, "--global-scope", "--listen", "0", *AS_USER]

# It says into $LOG what it was given and which signals it gets, and answers one
# connection after the other; $STAND_IN makes it misbehave.
STAND_IN = """#!/usr/bin/env python3
import os, signal, socket, sys

def say(text):
    with open(os.environ["LOG"], "a") as f:
        f.write(text + "\\n")

how = os.environ.get("STAND_IN", "")
where = sys.argv[sys.argv.index("-p") + 1]
if "-t" in sys.argv:
    say("check " + " ".join(sys.argv[1:]))
    say("mode " + oct(os.stat(where).st_mode)[-3:])
    sys.exit(1 if how == "refuse" else 0)

def told(number, frame):
    say(signal.Signals(number).name)
    if number in (signal.SIGTERM, signal.SIGQUIT) and how != f"ignore {number}":
        sys.exit(0)

for number in (signal.SIGQUIT, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, told)
signal.pthread_sigmask(signal.SIG_SETMASK, [])  # As nginx does, once it looks at them.
if how == "fail":
    sys.exit(3)
say("start " + " ".join(sys.argv[1:]))
say("group " + str(os.getpgrp() == os.getpid()))
fd = int(os.environ["NGINX"].rstrip(";"))
listening = socket.socket(fileno=fd)
listening.setblocking(True)
open(os.path.join(where, "nginx.pid"), "w").close()
if how == "die":
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    connection, _ = listening.accept()
    with connection:
        try:
            connection.sendall(b"hello\\n")
        except OSError:
            pass  # Somebody only looked whether we are there.
"""


class Gateway:
    """A gateway in this directory, with a stand-in for nginx."""

    def __init__(self, *args, how=""):
        write("stand-in", STAND_IN, 0o755)
        os.makedirs("tmp", exist_ok=True)
        open("module.so", "w", encoding="ascii").close()
        there = ["--nginx", os.path.abspath("stand-in"), "--module", "module.so"]
        self.env = {"LOG": os.path.abspath("log"), "STAND_IN": how}
        self.env["TMPDIR"] = os.path.abspath("tmp")
        self.args = ["gateway", *there, *(args or USUAL)]

    def start(self):
        self.process = Idem().start(*self.args, env=self.env)
        return self

    def __enter__(self):
        self.start()
        self.url = self.process.stdout.readline().decode().strip()
        return self

    def __exit__(self, *error):
        kill_session(self.process)

    def run(self):
        return Idem()(*self.args, env=self.env)

    def end(self, *signals):
        """Send @signals, wait, and return the result."""
        for number in signals:
            before = len(self.log())
            os.kill(self.process.pid, number)
            until(lambda: len(self.log()) > before)
        out, err = self.process.communicate(timeout=PATIENCE)
        return Result(self.process.returncode, out, err)

    def log(self):
        if not os.path.exists("log"):
            return []
        return read("log").splitlines()

    def connect(self):
        host, port = self.url[len("http://") :].rsplit(":", 1)
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE) as s:
            return s.recv(100)


def says(result, status, *words):
    equal(result.status, status)
    for word in words:
        assert word in result.stderr.decode(), result


# ---- The command line ----

BAD = (
    (64, "no scope given: --scope-header", SERVICE),
    (64, "no scope given: --scope-header", [*SERVICE, "--global-scope", "--scope-header", "X-A"]),
    (64, "begin with http://", ["--upstream", "127.0.0.1:3000", "--global-scope"]),
    (64, "1 to 65535", ["--upstream", "http://a:0", "--global-scope"]),
    (64, "1 to 65535", ["--upstream", "http://a:65536", "--global-scope"]),
    (64, "user or password", ["--upstream", "http://a:b@c", "--global-scope"]),
    (64, "names no port", [*SERVICE, "--global-scope", "--listen", "localhost"]),
    (64, "names no port", [*SERVICE, "--global-scope", "--health", "localhost"]),
    (64, "with this option", [*SERVICE, "--global-scope", "http://other"]),
    (64, "cannot be the key itself", [*SERVICE, "--scope-header", "Idempotency-Key"]),
    (64, "letters, digits", [*SERVICE, "--scope-header", "X; evil"]),
    (64, "belong together", [*SERVICE, "--global-scope", "--tls-cert", "a.pem"]),
    (64, "some of POST", [*SERVICE, "--global-scope", "--methods", "POST,GET"]),
    (64, "some of POST", [*SERVICE, "--global-scope", "--methods", "POST,"]),
    (64, '"x" is not part of it', [*SERVICE, "--global-scope", "--fingerprint-from", "x"]),
    (64, "--max-failures", [*SERVICE, "--global-scope", "--max-failures", "2"]),
    (64, "--retry-after", [*SERVICE, "--global-scope", "--retry-after", "1m"]),
    (64, "Set-Cookie", [*SERVICE, "--global-scope", "--replay-headers", "Set-Cookie"]),
    (64, "X Y", [*SERVICE, "--global-scope", "--key-header", "X Y"]),
    (64, "--key-from", [*SERVICE, "--global-scope", "--key-header", "X-Id", "--key-from", ".body.id"]),
    (64, "cannot be the key itself", [*SERVICE, "--scope-header", "X-Id", "--key-header", "x-id"]),
    (64, "at most 4000", [*SERVICE, "--global-scope", "--key-from", ".a" + "\\" * 2000]),
    (64, "--lease", [*SERVICE, "--global-scope", "--lease", "1s"]),
    (64, "hold", [*SERVICE, "--global-scope", "--on-expired-lease", "retry"]),
    (64, "an invalid character", [*SERVICE, "--global-scope", "--user", "a;b"]),
    (64, "is not the URL of a store", [*SERVICE, "--global-scope", "--store", "idem.db"]),
    (64, "unknown option", [*SERVICE, "--global-scope", "--port", "80"]),
    (78, "--nginx", [*SERVICE, "--global-scope", "--nginx", "./none"]),
    (78, "--module", [*SERVICE, "--global-scope", "--nginx", "/bin/true"]
     + ["--module", "./none"]),
    (64, "cannot be resolved", [*SERVICE, "--global-scope"]
     + ["--listen", "no.such.invalid:1"]),
    (64, "--health: the host", [*SERVICE, "--global-scope", "--listen", "0"]
     + ["--health", "no.such.invalid:1"]),
)


@test
def bad_command_lines_are_refused():
    """What cannot be is refused with a sentence that says what, and nothing starts."""
    gateway = Gateway()
    for status, word, args in BAD:
        if "--nginx" not in args:
            args = [*gateway.args[1:5], *args]
        if AS_USER and "--user" not in args:
            args = [*AS_USER, *args]
        result = Idem()("gateway", *args, env=gateway.env)
        assert result.status == status and word in result.stderr.decode(), (args, result)
        equal(result.stdout, b"")
        equal(gateway.log(), [])


def without(path, *command):
    """Run @command where the file @path, if it is there, cannot be used."""
    if os.getuid() != 0:
        skip("it takes root to hide a file")
    script = f'[ ! -e {path} ] || mount --bind /dev/null {path}; exec "$@"'
    return run(["unshare", "--mount", "sh", "-c", script, "sh", *command])


@test
def what_is_missing_is_named():
    """Without nginx, or without the module, it says where to get it."""
    shutil.copy(PROGRAM, "idem")  # Beside which there is no module.
    idem = [os.path.abspath("idem"), "gateway", *USUAL]
    got = without("/usr/sbin/nginx", *idem)
    says(got, 78, "nginx is not installed: apt install nginx-light")
    module = "/usr/lib/nginx/modules/ngx_http_idempotency_module.so"
    script = f"rm -f {module}; exec \"$@\""
    if os.path.exists(module):
        script = f"mount -t tmpfs none {os.path.dirname(module)}; exec \"$@\""
    got = run(["unshare", "--mount", "sh", "-c", script, "sh", *idem, "--nginx", "/bin/true"])
    says(got, 78, "libnginx-mod-http-idempotency that tools/package")


@test
def a_folder_named_nginx_is_passed_over():
    """The build of a source tree, which has one, may be the first in PATH."""
    os.makedirs("build/nginx", exist_ok=True)
    os.makedirs("bin", exist_ok=True)
    shutil.copy("/bin/true", "bin/nginx")
    open("module.so", "w", encoding="ascii").close()
    path = ":".join(os.path.abspath(d) for d in ("build", "bin")) + ":/usr/bin:/bin"
    args = ["gateway", "--module", "module.so", *USUAL]
    got = Idem()(*args, env={"PATH": path})
    assert b"cannot be executed" not in got.stderr, got
    equal(got.status, 0)  # That of /bin/true, which stands in for nginx.
    got = Idem()(*args, "--nginx", "build/nginx")
    says(got, 78, '--nginx: "build/nginx" cannot be used: Is a directory')


@test
def an_nginx_that_cannot_be_executed_is_not_its_configuration():
    """The reason is reported once, and nothing about a configuration nobody read."""
    write("other-machine", b"\x7fELF\x02\x01\x01", 0o755)
    open("module.so", "w", encoding="ascii").close()
    got = Idem()("gateway", "--module", "module.so", "--nginx", "./other-machine", *USUAL)
    says(got, 78, "cannot be executed: Exec format error")
    assert b"configuration" not in got.stderr, got


@test
def root_must_name_a_user():
    """As root it starts only for a user that is named, whom nginx runs as."""
    if os.getuid() != 0:
        skip("it needs root")
    gateway = Gateway(*SERVICE, "--global-scope", "--listen", "0")
    says(gateway.run(), 77, "--user www-data")
    gateway.args += ["--user", "nobody"]
    says(gateway.run(), 77, "Permission denied")  # The store is root's.
    gateway.args[-1] = "no-such-user"
    says(gateway.run(), 64, "unknown user")


# ---- What nginx is given ----


@test
def the_configuration_can_be_printed():
    """--dry-run prints what nginx would be given, and makes nothing."""
    gateway = Gateway()
    got = Idem()(*gateway.args, "--dry-run", env=gateway.env)
    text = got.stdout.decode()
    equal((got.status, got.stderr), (0, b""))
    assert f'load_module "{os.path.abspath("module.so")}";' in text, text
    store = f'"sqlite:{os.path.abspath("idem.db")}" "journal={os.path.abspath("journal")}"'
    assert f"idempotency_store {store};" in text, text
    assert "listen 127.0.0.1:0;" in text, text
    equal(gateway.log(), [])
    assert not os.path.exists("idem.db") and not os.listdir("tmp")
    assert not os.path.exists("journal")


@test
def each_option_is_a_directive():
    """What an option says is in the configuration; nginx/settings has what it does there."""
    gateway = Gateway()
    base = [arg for arg in gateway.args if arg != "--global-scope"]
    for options, line in (
        (["--scope-header", "X-Tenant"], "idempotency_scope $http_x_tenant;"),
        (["--required"], "idempotency required;"),
        (["--methods", "PUT"], "idempotency_methods PUT;"),
        (["--wait", "20s"], "idempotency_wait 20s;"),
        (["--lease", "90s"], "idempotency_lease 90s;"),
        (["--retention", "7d"], "idempotency_retention 604800s;"),
        (["--on-expired-lease", "rerun"], "idempotency_on_expired_lease rerun;"),
        (["--outcome", "500=retry 4xx=fail"], 'idempotency_outcome "500=retry 4xx=fail";'),
        (["--outcome", "webhook", "--max-failures", "2"], "idempotency_max_failures 2;"),
        (["--outcome", "webhook", "--retry-after", "1h"], "idempotency_retry_after 3600s;"),
        (["--on-expired-lease", "rerun", "--max-failures", "2"], "idempotency_max_failures 2;"),
        (["--outcome", "500=retry", "--retry-after", "1h"], "idempotency_retry_after 3600s;"),
        (["--key-header", "X-Request-Id"], 'idempotency_key "X-Request-Id";'),
        (["--replay-headers", "Link,Content-Location"],
         "idempotency_replay_headers Link Content-Location;"),
        (["--max-time", "2m"], "proxy_read_timeout 120s;"),
        (["--routes", "/charge,/pay"], "location /pay {\n            idempotency on;"),
    ):
        scope = [] if options[0] == "--scope-header" else ["--global-scope"]
        got = Idem()(*base, *scope, *options, "--dry-run", env=gateway.env)
        assert line in got.stdout.decode(), (options, got)


@test
def outcomes_wait_where_idem_reconcile_looks():
    """The journal is that of every other command; where there can be none it is left to
    the module, for a file, and refused for a table."""
    gateway = Gateway()

    def journal(*args, **env):
        env = {**gateway.env, **env}
        got = Idem()(*gateway.args, "--dry-run", *args, env=env)
        return b" ".join(re.findall(rb'idempotency_store "\S+"(.*);', got.stdout)).decode()

    equal(journal(IDEM_JOURNAL_DIR="here"), f' "journal={os.path.abspath("here")}"')
    equal(journal(IDEM_JOURNAL_DIR=None, XDG_STATE_HOME="/s"), ' "journal=/s/idem/journal"')
    gateway.env["IDEM_JOURNAL_DIR"] = "/dev/null/none"
    with gateway:
        (path,) = glob.glob("tmp/*/nginx.conf")
        assert f'idempotency_store "sqlite:{os.path.abspath("idem.db")}";' in read(path)
    gateway.args += ["--store", "dynamodb://idem?endpoint=http://127.0.0.1:1&region=here"]
    got = gateway.run()
    assert got.status != 0 and b"/dev/null/none" in got.stderr, got


@test
def a_relative_store_is_found_by_nginx():
    """The path of a store does not depend on the directory that nginx runs in."""
    gateway = Gateway(*USUAL, "--store", "sqlite:here.db")
    got = Idem()(*gateway.args, "--dry-run", env=gateway.env).stdout.decode()
    assert f'"sqlite:{os.path.abspath("here.db")}" ' in got, got


@test
def nginx_is_started_in_a_directory_of_its_own():
    """nginx gets a private directory with its configuration, checks it first, has the
    socket handed over, and is told to end gracefully; the directory is gone then."""
    with Gateway() as gateway:
        (path,) = glob.glob("tmp/*")
        path = os.path.abspath(path)
        text = read(path + "/nginx.conf")
        assert f"listen {gateway.url[len('http://'):]};" in text, text
        equal(gateway.connect(), b"hello\n")
        got = gateway.end(signal.SIGTERM)
        equal(got.status, 0)
        assert b"in front of http://127.0.0.1:3000; records in sqlite:" in got.stderr, got
        equal(
            gateway.log(),
            [
                f"check -t -q -e stderr -p {path} -c nginx.conf",
                "mode 700",
                f"start -e start.log -p {path} -c nginx.conf",
                "group True",
                "SIGQUIT",
            ],
        )
        equal(os.listdir("tmp"), [])


@test
def a_configuration_that_nginx_refuses_is_not_run():
    """If nginx finds fault with the configuration, nothing is started."""
    gateway = Gateway(how="refuse")
    says(gateway.run(), 78, "nginx refuses the configuration")
    equal([line.split()[0] for line in gateway.log()], ["check", "mode"])
    equal(os.listdir("tmp"), [])


@test
def the_end_of_nginx_is_told():
    """If nginx ends by itself, so does the gateway, with a status that says so."""
    equal(Gateway(how="fail").run().status, 3)
    says(Gateway(how="die").run(), 70, "killed by signal 9")
    equal(os.listdir("tmp"), [])


# ---- Signals ----


@test
def signals_are_passed_on():
    """Ctrl-C and SIGTERM let nginx finish what is under way; the second time they do
    not. What else nginx knows is passed on as it is."""
    for number in signal.SIGINT, signal.SIGTERM:
        with Gateway(how=f"ignore {signal.SIGQUIT}") as gateway:
            equal(gateway.end(number, number).status, 0)
            equal(gateway.log()[-2:], ["SIGQUIT", "SIGTERM"])
        os.unlink("log")
    with Gateway() as gateway:
        got = gateway.end(signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT)
        equal(got.status, 0)
        equal(gateway.log()[-3:], ["SIGHUP", "SIGUSR1", "SIGQUIT"])


@test
def nginx_does_not_outlive_the_gateway():
    """A gateway that is killed takes nginx with it, gracefully."""
    with Gateway() as gateway:
        os.kill(gateway.process.pid, signal.SIGKILL)
        until(lambda: gateway.log()[-1] == "SIGQUIT")


# ---- Sockets ----


def listening_on(address):
    return Gateway(*SERVICE, "--global-scope", *AS_USER, "--listen", address)


@test
def an_address_in_use_is_said_at_once():
    """A port that somebody has is named, before nginx is asked."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        gateway = listening_on(str(port))
        says(gateway.run(), 78, f"127.0.0.1:{port} is in use by another program")
        equal(gateway.log(), [])


@test
def it_listens_on_loopback_by_default():
    """Only loopback is silent: where other machines can reach it, it says so."""
    with listening_on("0") as gateway:
        assert gateway.url.startswith("http://127.0.0.1:"), gateway.url
        assert b"other machines" not in gateway.end(signal.SIGTERM).stderr
    with listening_on("*:0") as gateway:
        assert gateway.url.startswith("http://0.0.0.0:"), gateway.url
        assert b"other machines can reach the gateway" in gateway.end(signal.SIGTERM).stderr
    if os.path.exists("/proc/net/if_inet6"):
        with listening_on("[::1]:0") as gateway:
            assert gateway.url.startswith("http://[::1]:"), gateway.url
            equal(gateway.connect(), b"hello\n")
            assert b"other machines" not in gateway.end(signal.SIGTERM).stderr


@test
def it_listens_on_unix_sockets():
    """A unix socket is made, taken over where it was left behind, refused where
    somebody listens, and removed at the end."""
    path = os.path.abspath("here.sock")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    with listening_on(f"unix:{path}") as gateway:
        equal(gateway.url, f"unix:{path}")
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            equal(s.recv(10), b"hello\n")
        second = listening_on(f"unix:{path}")
        says(second.run(), 78, "is in use by another program")
        equal(gateway.end(signal.SIGTERM).status, 0)
    assert not os.path.exists(path)
    write(path, "a file")
    says(listening_on(f"unix:{path}").run(), 78, "is in use")
    assert os.path.exists(path)


@test
def the_next_gateway_keeps_its_unix_socket():
    """A gateway that finishes a request leaves the path to the one that is started
    meanwhile, and does not remove the other's socket at its end."""
    path = os.path.abspath("here.sock")
    old = listening_on(f"unix:{path}")
    old.env["STAND_IN"] = "ignore 3"  # SIGQUIT.
    with old:
        os.kill(old.process.pid, signal.SIGTERM)
        until(lambda: not os.path.exists(path), "the path is free")
        with listening_on(f"unix:{path}") as new:
            equal((new.url, old.end(signal.SIGTERM).status), (f"unix:{path}", 0))
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
                equal(s.recv(10), b"hello\n")


@test
def a_store_that_cannot_be_used_is_said():
    """What is wrong with the store is said by idem, and nginx is not asked."""
    write("text", "this is no database, whatever its name says\n" * 100)
    gateway = Gateway(*USUAL, "--store", "sqlite:text")
    assert gateway.run().status in (74, 78)
    gateway = Gateway(*USUAL, "--store", "sqlite:none/idem.db")
    assert gateway.run().status in (77, 78)
    equal(gateway.log(), [])


if __name__ == "__main__":
    main()
