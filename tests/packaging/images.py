"""The images of packaging/container: their recipe, and containers as it describes them.

The gateway runs as the first process of a container whose root is read-only: the files
of this machine, with those that are installed above them. What is started, as whom, with
which environment, signal and health check, is read from the recipe. With --long the
images are built from it, from a base that is made of Debian's packages, and started."""

import atexit
import contextlib
import ctypes
import fcntl
import glob
import json
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import tempfile
import threading

import dynamo
from files import read
from patience import PATIENCE, until
from ports import free_port
import postgres
import procfs
from procfs import children, descendants
from tap import LONG, PROGRAM, TOP, equal, kill_session, main, run, skip, start, test
import trees
import web

BUILD = os.path.dirname(PROGRAM)
MODULE = os.path.join(BUILD, "nginx", "ngx_http_idempotency_module.so")
RECIPE = os.path.join(TOP, "packaging", "container", "Containerfile")
UID = 65532
REFUSED = 7  # What curl ends with then.


# ---- The recipe ----


def stages():
    """Return {stage: [(instruction, its text)]} of the recipe."""
    text = re.sub(r"^#.*\n", "", read(RECIPE), flags=re.M).replace("\\\n", " ")
    found, name = {}, None
    for line in filter(None, map(str.strip, text.splitlines())):
        word, rest = line.split(None, 1)
        if word == "FROM":
            name = rest.split(" AS ")[1]
        found.setdefault(name, []).append((word, rest.strip()))
    return found


def image(name):
    """Return the settings of an image: lists of commands, environment and so on."""
    said = dict(stages()[name])
    return {
        "entrypoint": json.loads(said["ENTRYPOINT"]),
        "env": dict(pair.split("=", 1) for pair in shlex.split(said["ENV"])),
        "user": said["USER"],
        "volumes": json.loads(said["VOLUME"]),
        "stop": said["STOPSIGNAL"],
        "health": json.loads(said["HEALTHCHECK"].split(" CMD ")[1]),
    }


@test
def both_images_are_for_an_ordinary_user():
    """Each image has a user that is not root, a volume at the place of its store, a store
    that must be there, a health check, and a signal that it stops at."""
    for name in "idem", "idem-gateway":
        it = image(name)
        equal((it["user"], it["volumes"]), (f"{UID}:{UID}", ["/var/lib/idem"]))
        equal(it["env"]["IDEM_STORE"], "sqlite:/var/lib/idem/idem.db?create=no")
        equal(it["stop"], "SIGTERM")
        assert it["health"][0].startswith("/usr/"), it


@test
def the_recipe_has_what_the_build_needs():
    """What the gateway is linked with and loads is installed in its image."""
    installed = " ".join(text for word, text in stages()["idem-gateway"] if word == "RUN")
    to_build = re.search(r"^packages=\((.*?)\)", read(os.path.join(TOP, "tools", "deps")), re.M | re.S)[1]
    # The library of each -dev package that the program, or libidem-aws, is linked with.
    of = {
        "libcurl4-openssl-dev": "libcurl4",
        "libjson-c-dev": "libjson-c5",
        "libpq-dev": "libpq5",
        "libsqlite3-dev": "libsqlite3-0",
        "libssl-dev": "libssl3",
        "libzstd-dev": "libzstd1",
        # idem ui is not in front of a service.
        "libmicrohttpd-dev": None,
        "libc6-dev": None,
    }
    equal({n for n in to_build.split() if n.endswith("-dev")}, set(of))
    for library in filter(None, of.values()):
        assert f" {library} " in installed, (library, installed)


# ---- A container of this machine's files ----

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914


@contextlib.contextmanager
def pod():
    """A network of their own for the containers that are started in the block, and for
    the servers that they reach: ports are free in it, whatever runs on this machine."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    if libc.unshare(CLONE_NEWNET) != 0:
        os.close(before)
        skip("no network can be made here: " + os.strerror(ctypes.get_errno()))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh", b"lo", 1))
        yield
    finally:
        libc.setns(before, CLONE_NEWNET)
        os.close(before)


# In namespaces of its own: $1 is the folder of the container, which has the volume in
# "volume", and in "image" either a whole root or what is laid above this machine's.
ENTER = r"""
set -e
cd "$1"; shift
if [ -d image/etc ]; then
    mount -o bind image root
    mount -o remount,bind,ro root
else
    mount -t tmpfs -o mode=755 tmpfs root
    mkdir -p root/usr root/etc root/proc root/dev root/var/lib/idem root/var/tmp
    mount -t overlay -o "lowerdir=image/usr:/usr" overlay root/usr
    for name in bin lib lib32 lib64 libx32 sbin; do
        if [ -h /$name ]; then
            cp -P /$name root/$name
        elif [ -d /$name ]; then
            mkdir root/$name
            mount -o bind /$name root/$name
            mount -o remount,bind,ro root/$name
        fi
    done
    mount -o bind /etc root/etc
    mount -o remount,bind,ro root/etc
    mount -o remount,ro root
fi
mount -o bind volume root/var/lib/idem
[ ! -d root/var/tmp ] || mount -t tmpfs -o mode=1777 tmpfs root/var/tmp
[ ! -d root/proc ] || mount -t proc proc root/proc
[ ! -d root/dev ] || mount -o rbind /dev root/dev
# What becomes another user has nothing of these capabilities then.
caps=-all,+setgid,+setuid,+sys_chroot
exec setpriv --no-new-privs --bounding-set=$caps env -i "$@"
"""


def install(folder):
    """Put into @folder what the recipe copies."""
    for source, target in (
        (PROGRAM, "usr/bin"),
        (MODULE, "usr/lib/nginx/modules"),
        (os.path.join(TOP, "packaging/container/probe"), "usr/lib/idem"),
        *((path, "usr/lib") for path in glob.glob(f"{BUILD}/libidem*.so.0")),
    ):
        os.makedirs(f"{folder}/{target}", exist_ok=True)
        shutil.copy(source, f"{folder}/{target}")


class Host:
    """The folder in which containers of an image run, one after the other. Without a
    root of its own that is the gateway's, above the files of this machine."""

    def __init__(self, settings, root=None):
        if os.getuid() != 0:
            skip("another user's container takes root")
        self.image = settings
        self.path = tempfile.mkdtemp(dir=os.getcwd())
        os.chmod(self.path, 0o755)
        for name in "root", "volume", *([] if root else ["image"]):
            os.makedirs(self.file(name))
        if root:
            os.symlink(root, self.file("image"))
        else:
            install(self.file("image"))
        os.chown(self.file("volume"), UID, UID)
        os.chmod(self.file("volume"), 0o700)

    def file(self, name):
        return os.path.join(self.path, name)

    def command(self, *command):
        env = [f"{name}={value}" for name, value in self.image["env"].items()]
        new = ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child"]
        user = ["chroot", f"--userspec={self.image['user']}", f"--groups={UID}", "root"]
        path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
        return [*new, "sh", "-c", ENTER, "sh", self.path, path, *env, *user, *command]

    def run(self, *command):
        """The result of a command in a container of the image."""
        return run(self.command(*command))

    def gateway(self, *options):
        return Container(self, [*self.image["entrypoint"], *options])


def on_this_machine():
    """A host for the gateway on the files of this machine."""
    if not os.path.exists(MODULE):
        skip("the module was not built: nginx-dev is not installed")
    if shutil.which("nginx", path="/usr/sbin:" + os.environ["PATH"]) is None:
        skip("nginx is not installed: tools/deps test")
    host = Host(image("idem-gateway"))
    tried = host.run("true")
    if tried.status != 0:
        skip("no containers can be made here: " + tried.stderr.decode().strip())
    return host


class Container:
    """A container that runs the gateway, for the length of a with block."""

    def __init__(self, host, command):
        self.host = host
        self.command = host.command(*command)

    def __enter__(self):
        self.process = start(self.command)
        self.url = self.process.stdout.readline().decode().strip()
        assert self.url, self.process.communicate()[1].decode()
        (self.pid,) = children(self.process.pid)
        return self

    def __exit__(self, *error):
        kill_session(self.process)

    def inside(self, *command):
        """Run @command in the container, as `docker exec` does."""
        return run(["nsenter", "-t", str(self.pid), "-m", "-p", "-r", *command])

    def is_healthy(self):
        return self.inside(*self.host.image["health"]).status == 0

    def curl(self, key):
        """The result of a request on the port that the image exposes."""
        curl = ["curl", "-si", "-m", str(int(PATIENCE)), "-H", f"Idempotency-Key: {key}"]
        return run([*curl, "-d", "amount=42", "http://127.0.0.1:8080/charge"])

    def request(self, key):
        return self.curl(key).stdout.decode()

    def stop(self):
        os.kill(self.pid, getattr(signal, self.host.image["stop"]))


class Service(web.Server):
    """The service, on a socket in the volume; it works while @gate is open."""

    def __init__(self, host):
        self.effects = []
        self.gate = threading.Event()
        self.gate.set()
        super().__init__(Handler, host.file("volume/service.sock"))
        os.chmod(self.path, 0o777)

    def __exit__(self, *error):
        self.gate.set()
        super().__exit__(*error)


class Handler(web.Handler):
    def do_POST(self):
        self.server.effects.append(self.body())
        self.server.gate.wait(PATIENCE)
        self.say(201, b"receipt %d\n" % len(self.server.effects))


UPSTREAM = ["--upstream", "http://unix:/var/lib/idem/service.sock", "--global-scope"]


def writable(pid):
    """The places in that process's root that are mounted to be written, but for devices."""
    found = set()
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as f:
        for line in f:
            fields, _, kind = line.partition(" - ")
            place, options = fields.split()[4:6]
            read_only = "ro" in options.split(",") or "ro" in kind.split()[2].split(",")
            if not read_only and not place.startswith(("/proc", "/dev")):
                found.add(place)
    return found


@test
def the_gateway_works_in_a_container():
    """As an ordinary user and the first process, with only the volume and /var/tmp to
    write to: without a store it refuses to start; with one, 201 and then the replay, and
    healthy only while it can answer; a request that is in flight when the container is
    told to stop is finished, answered and recorded, and the container ends with 0."""
    with pod():
        try_gateway(on_this_machine())


@test
def the_gateway_works_in_a_container_on_a_table():
    """With nothing but IDEM_STORE, a region and credentials, the image's own command starts
    on a table of DynamoDB: 201 and then the replay; healthy, unhealthy while the
    table does not answer, and healthy again."""
    with pod():
        try_on_a_table(on_this_machine())


@test
def the_gateway_works_in_a_container_on_a_database():
    """The same on PostgreSQL, which is stopped and started."""
    with pod():
        try_on_a_database(on_this_machine())


def try_gateway(host):
    refused = host.run(*host.image["entrypoint"], *UPSTREAM)
    equal((refused.status, refused.stdout), (78, b""))
    assert b"idem store create" in refused.stderr, refused
    make_store(host)

    with Service(host) as service, host.gateway(*UPSTREAM) as gateway:
        answers_a_retry(gateway, service)
        shown = gateway.inside("idem", "--version")
        equal(shown.status, 0)
        is_ordinary(gateway)
        has_no_zombies(gateway)

        store, elsewhere = host.file("volume/idem.db"), host.file("volume/elsewhere")
        os.rename(store, elsewhere)
        equal(until(lambda: not gateway.is_healthy()), True)
        os.rename(elsewhere, store)
        equal(until(gateway.is_healthy), True)

        service.gate.clear()
        answers = []
        client = threading.Thread(target=lambda: answers.append(gateway.request("order-43")))
        client.start()
        until(lambda: len(service.effects) == 2)
        gateway.stop()
        until(lambda: not gateway.is_healthy())
        equal(gateway.curl("order-44").status, REFUSED)  # And does not hang.
        equal((answers, gateway.process.poll()), ([], None))
        service.gate.set()
        client.join(PATIENCE)
        assert answers[0].startswith("HTTP/1.1 201"), answers
        equal(gateway.process.wait(PATIENCE), 0)
        equal(len(service.effects), 2)
    listed = host.run("/usr/bin/idem", "list")
    assert re.search(r"^completed .* order-43$", listed.stdout.decode(), re.M), listed


def make_store(host):
    made = host.run("/usr/bin/idem", "store", "create")
    equal((made.status, made.stderr), (0, b""))


def answers_a_retry(gateway, service):
    first, second = gateway.request("order-42"), gateway.request("order-42")
    assert first.startswith("HTTP/1.1 201") and "Replayed" not in first, first
    assert second.startswith("HTTP/1.1 201") and "Idempotent-Replayed: true" in second, second
    equal((len(service.effects), gateway.is_healthy()), (1, True))


def try_on(host, env, leave, come_back):
    """The gateway on the store that @env names, which answers nothing after @leave()."""
    host.image["env"].update(env)
    make_store(host)
    with Service(host) as service, host.gateway(*UPSTREAM) as gateway:
        answers_a_retry(gateway, service)
        leave()
        equal(until(lambda: not gateway.is_healthy()), True)
        come_back()
        equal(until(gateway.is_healthy), True)


def try_on_a_table(host):
    given = dynamo.environment()
    env = {name: given[name] for name in given if name.startswith("AWS_")}
    with dynamo.server("dynoxide") as url, contextlib.ExitStack() as stack:
        env["IDEM_STORE"] = f"dynamodb://idem?endpoint={url}"
        try_on(host, env, lambda: stack.enter_context(dynamo.frozen(url)), stack.close)


def try_on_a_database(host):
    # A container has no path to the server's socket.
    there = {"listen_addresses": "127.0.0.1", "port": free_port()}
    with postgres.server(**there) as server:
        place = f"postgres://{postgres.USER}@127.0.0.1:{server.port}/{postgres.DATABASE}"
        try_on(host, {"IDEM_STORE": place}, server.stop, server.start)


def is_ordinary(gateway):
    """Its processes are an ordinary user's, and can write where they should only."""
    equal(procfs.status(gateway.pid)["NSpid"].split()[-1], "1")
    all_of_it = [gateway.pid, *descendants(gateway.pid)]
    ours = [it for it in map(procfs.status, all_of_it) if it]
    assert len(ours) >= 3, ours  # idem, nginx and its worker, at least.
    for it in ours:
        equal((it["Uid"].split(), it["Gid"].split()), ([str(UID)] * 4,) * 2)
        equal((it["CapEff"], it["CapPrm"], it["NoNewPrivs"]), ("0" * 16, "0" * 16, "1"))
    equal(writable(gateway.pid), {"/var/lib/idem", "/var/tmp"})
    touched = gateway.inside("touch", "/usr/new", "/etc/new", "/new")
    equal(touched.stderr.count(b"Read-only file system"), 3)


def has_no_zombies(gateway):
    """What others leave, as a probe might, is taken by the first process."""
    before = set(children(gateway.pid))

    def something_is_left():
        gateway.inside("sh", "-c", "sh -c 'sleep 0.2 & :' & wait")
        return set(children(gateway.pid)) - before

    until(something_is_left)
    until(lambda: set(children(gateway.pid)) <= before, "a zombie stays")


# ---- The images, built ----


def built(name, *options):
    """Build an image from the recipe; return its settings, and its root, mounted."""
    tag = f"idem-test-{name}"
    build = ["buildah", "build", "--format", "docker", "--isolation", "chroot", "--pull-never"]
    done = run([*build, "--build-arg", f"BASE={BASE}", "--target", name, "--tag", tag, *options,
                "--file", RECIPE, TOP], timeout=3600)
    assert done.status == 0, (done.stdout + done.stderr).decode()[-4000:]
    container = said("buildah", "from", "--pull-never", tag)
    atexit.register(run, ["buildah", "rm", container])
    inspected = json.loads(said("buildah", "inspect", container))
    it = inspected["Docker"]["config"]
    equal(it["Healthcheck"]["Test"][0], "CMD")
    settings = {
        "entrypoint": it["Entrypoint"],
        "env": dict(pair.split("=", 1) for pair in it["Env"]),
        "user": it["User"],
        "volumes": list(it["Volumes"]),
        "stop": it["StopSignal"],
        "health": it["Healthcheck"]["Test"][1:],
    }
    equal({**settings, "env": {**settings["env"], **image(name)["env"]}}, settings)
    root = said("buildah", "mount", container)
    for place in "proc", "dev":  # An engine makes them.
        os.makedirs(os.path.join(root, place), exist_ok=True)
    return settings, root


BASE = "localhost/idem-test-debian"


def said(*command):
    return trees.said(*command, timeout=900).strip()


def make_base():
    """A Debian in place of the image of it that a registry has, from its packages."""
    if not LONG:
        skip("with --long: Debian is fetched, and the images are built")
    if os.getuid() != 0:
        skip("the roots of images are mounted by root")
    for program in "buildah", "mmdebstrap":
        if shutil.which(program) is None:
            skip(f"{program} is not installed: tools/deps test")
    if run(["buildah", "inspect", "--type", "image", BASE]).status == 0:
        return
    said("mmdebstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", "base.tar")
    container = said("buildah", "from", "scratch")
    said("buildah", "add", container, "base.tar", "/")
    said("buildah", "commit", "--rm", container, BASE)


@test
def the_image_of_the_gateway_works():
    """Built from the recipe, with a root of its own that nothing of this machine is in,
    the gateway does all that it does above, on each store."""
    make_base()
    settings, root = built("idem-gateway")
    for tried in try_gateway, try_on_a_table, try_on_a_database:
        with pod():
            tried(Host({**settings, "env": dict(settings["env"])}, root))


@test
def the_image_of_the_program_works():
    """Built from the recipe, its root has the static program, certificates and a user:
    it makes a store, refuses where there is none, is healthy where there is one, does
    the work of each command, and ends when it is told to."""
    make_base()
    settings, root = built("idem")
    files = [os.path.join(folder, name)[len(root) :] for folder, _, names in os.walk(root)
             for name in names]
    equal(sorted(files), ["/etc/group", "/etc/passwd", "/etc/ssl/certs/ca-certificates.crt",
                          "/usr/bin/idem"])
    host = Host(settings, root)
    idem = settings["entrypoint"]
    equal(host.run(*idem, "begin", "-k", "a").status, 78)
    assert host.run(*settings["health"]).status != 0
    equal(host.run(*idem, "store", "create", "--store", "sqlite:/var/lib/idem/idem.db").status, 0)
    equal(host.run(*settings["health"]).status, 0)
    token = host.run(*idem, "begin", "-k", "a").stdout.decode().strip()
    equal(host.run(*idem, "complete", "--token", token, "--result", "done").status, 0)
    equal(host.run(*idem, "begin", "-k", "a")[:2], (10, b"done"))
    with start(host.command(*idem, "watch", "--every", "60s")) as process:
        first = until(lambda: children(process.pid))[0]
        until(lambda: os.readlink(f"/proc/{first}/exe").endswith("/usr/bin/idem"))
        until(lambda: process.poll() is not None or tell(first, settings["stop"]))
        equal(status_of_end(process), 0)


def tell(pid, name):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, getattr(signal, name))


def status_of_end(process):
    process.communicate()
    return process.returncode


if __name__ == "__main__":
    main()
