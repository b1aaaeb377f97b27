"""The static program: what is inside it, and that it needs nothing of its system."""

import contextlib
import importlib.util
import json
import os
import re
import shutil
import ssl
from importlib.machinery import SourceFileLoader

import dynamo
import postgres
from files import read, write
from lambda_api import Sandbox
from line import Line
from patience import until
from ports import free_port
from tap import LONG, PROGRAM, TOP, equal, main, note, run, skip, test

BUILD = os.path.dirname(PROGRAM)
MOST = 12_000_000
UNSHARE, CHROOT = "/usr/bin/unshare", "/usr/sbin/chroot"
_built = None


def load(name):
    """Return the program tools/@name as a module."""
    loader = SourceFileLoader(name, os.path.join(TOP, "tools", name))
    spec = importlib.util.spec_from_loader(name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


# ---- What is inside ----


def a_map(archives):
    """Return a linker's map with a member of each of @archives."""
    members = "".join(f"/x/{name}(member.o)\n    /x/main.o (symbol)\n" for name in archives)
    return f"Archive member included\n\n{members}\nMemory Configuration\n\nLOAD /x/crtbeginS.o\n"


def what_is_inside(archives, program):
    sbom = load("sbom")
    sbom.compiler = lambda files, _: files.discard("crtbeginS.o") or ("gcc-12", "12.2", None, "x")
    folder = sbom.Path("x86_64")
    folder.mkdir(exist_ok=True)
    write(folder / "idem.map", a_map(archives))
    try:
        return [name for name, *_ in sbom.inside(program, folder)]
    except sbom.Wrong as wrong:
        return str(wrong)


@test
def the_list_of_what_is_inside_is_the_linkers():
    """The list of what is inside names each source package; an archive that no package
    has, a package that was not linked, and another version in the program are errors."""
    sbom = load("sbom")
    packages = sbom.sources()
    archives = [fields[-1][0] for fields in packages.values()]
    versions = {name: sbom.upstream(fields[0]).encode() for name, fields in packages.items()}
    program = b"".join(mark % versions[name] for name, mark in sbom.MARKS.items())
    equal(what_is_inside(["libidem.a", *archives], program), sorted(["gcc-12", *packages]))
    assert "libmore.a" in what_is_inside([*archives, "libmore.a"], program)
    assert "nothing of curl" in what_is_inside(
        [name for name in archives if "curl" not in name], program
    )
    for name in sbom.MARKS:
        other = program.replace(versions[name], b"0.0")
        said = what_is_inside(archives, other)
        assert f"does not have version {versions[name].decode()} of {name}" in said, said


# ---- The program ----


def built():
    """Build the static program, once; return its path."""
    global _built
    if not LONG:
        skip("the static program is built with --long: tools/test --long static")
    if _built is None:
        _built = os.path.join(BUILD, "static", "idem-x86_64")
        env = {"IDEM_STATIC_DIR": os.path.join(BUILD, "static"), "CC": None}
        done = run([os.path.join(TOP, "tools", "static"), "x86_64", _built], env, timeout=3600)
        equal((done.status, done.stderr), (0, b""))
    return _built


@contextlib.contextmanager
def empty_root():
    """Give a function that runs the program in a root with it, and nothing else."""
    if os.getuid() != 0 or run(["unshare", "--mount", "true"]).status != 0:
        skip("an empty root is made by root, where namespaces can be made")
    os.makedirs("root/data")
    os.mkdir("root/proc")  # The kernel's; a store tells one boot from the next by it.
    shutil.copy(built(), "root/idem")

    def idem(*args, **env):
        there = {"HOME": "/data", "PATH": "/", "IDEM_JOURNAL_DIR": None, "IDEM_AUDIT_LOG": None}
        into = [UNSHARE, "--mount", "--pid", "--fork", "--kill-child"]
        into += [f"--mount-proc={os.path.abspath('root/proc')}", CHROOT, "root"]
        return run([*into, "/idem", *args], {**there, **env})

    yield idem


@test
def it_is_static_and_small():
    """The static program asks for no loader and no library, can be loaded anywhere, and
    has less than 12 MB."""
    path = built()
    head = run(["readelf", "-hldW", path]).stdout.decode()
    equal(re.findall(r"NEEDED|INTERP", head), [])
    assert "DYN (Position-Independent" in head, head
    assert os.path.getsize(path) < MOST, os.path.getsize(path)
    note(f"{os.path.getsize(path)} bytes")


@test
def it_works_in_an_empty_root():
    """With nothing else in its root the static program runs a command once, replays it,
    and finds its store in order."""
    with empty_root() as idem:
        at = {"IDEM_STORE": "sqlite:/data/idem.db"}
        assert idem("--version").stdout.startswith(b"idem "), idem("--version")
        # The command claims a key, so a second run of it would end otherwise.
        run_once = ("run", "-k", "outer", "--", "/idem", "begin", "-k", "inner")
        first = idem(*run_once, **at)
        equal((first.status, first.stderr), (0, b""))
        assert first.stdout, first
        equal(idem(*run_once, **at), first)
        record = json.loads(idem("show", "--json", "outer", **at).stdout)
        equal((record["status"], record["attempts"]), ("completed", 1))
        doctor = idem("doctor", **at)
        assert doctor.status == 0, doctor
        note(doctor.stdout.decode().splitlines()[-1])


@test
def it_is_the_runtime_of_a_function():
    """The static program beside the two lines of the bootstrap runs as a function."""
    os.mkdir("task")
    shutil.copy(os.path.join(TOP, "examples", "lambda", "bootstrap"), "task")
    shutil.copy(built(), "task/idem")
    write("charge", "#!/bin/sh\necho charged >> ledger; echo 42\n", 0o755)
    task = os.path.abspath("task")
    with Sandbox("charge", {"LAMBDA_TASK_ROOT": task}, program=[f"{task}/bootstrap"]) as box:
        shutil.copy("charge", "task")
        for _ in range(2):
            equal(box.invoke({"idempotencyKey": "order"}).json(), 42)
    equal(read("ledger"), "charged\n")


def trust_a_certificate_for(name):
    """Make a certificate for the host @name, which the root trusts in the place where
    Debian has those that it trusts; return the context of a server that has it."""
    os.makedirs("root/etc/ssl/certs")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    command += f" -subj /CN={name} -addext subjectAltName=DNS:{name} -keyout key -out crt"
    equal(run(command.split()).status, 0)
    shutil.copy("crt", "root/etc/ssl/certs/ca-certificates.crt")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("crt", "key")
    return context


def works(idem, env):
    """It runs a command once, replays it, and finds its store in order."""
    command = ("run", "-k", "outer", "--", "/idem", "--version")
    first = idem(*command, **env)
    equal((first.status, first.stderr), (0, b""))
    equal(idem(*command, **env), first)
    record = json.loads(idem("show", "--json", "outer", **env).stdout)
    equal((record["status"], record["attempts"]), ("completed", 1))
    checked = idem("store", "check", **env)
    assert checked.status == 0, checked


@test
def it_speaks_to_dynamodb():
    """From a root with /etc/hosts and certificates alone the static program finds a
    name, trusts it over TLS, and works on a table of DynamoDB; without the certificate
    nothing is sent."""
    with dynamo.server("dynoxide") as url, empty_root() as idem:
        tls = trust_a_certificate_for("dynamodb.test")
        write("root/etc/hosts", "127.0.0.1 dynamodb.test\n")
        env = {k: v for k, v in dynamo.environment().items() if k.startswith("AWS_")}
        env["AWS_ENDPOINT_URL_DYNAMODB"] = Line(url, tls).url.replace("127.0.0.1", "dynamodb.test")
        env["IDEM_STORE"] = "dynamodb://orders"
        made = idem("store", "create", **env)
        equal((made.status, made.stderr), (0, b""))
        works(idem, env)
        os.remove("root/etc/ssl/certs/ca-certificates.crt")
        refused = idem("show", "outer", **env)
        assert refused.status != 0 and b"certificate" in refused.stderr, refused


def demand_a_password(server):
    """Have the server of PostgreSQL take connections over TLS alone, with a password."""
    for name in "key", "crt":
        path = shutil.copy(name, server.folder)
        os.chmod(path, 0o600)
        if "user" in postgres.somebody():
            os.chown(path, postgres.somebody()["user"], -1)
        server.psql(f"ALTER SYSTEM SET ssl_{'cert' if name == 'crt' else 'key'}_file = '{path}'")
    write(f"{server.data}/pg_hba.conf",
          "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n")
    server.psql(f"ALTER ROLE {postgres.USER} PASSWORD 'secret'")
    server.psql("ALTER SYSTEM SET ssl = on")
    server.psql("SELECT pg_reload_conf()")
    until(lambda: server.psql("SHOW ssl") == ["on"])


@test
def it_speaks_to_postgresql():
    """From such a root the static program works on a database of PostgreSQL, over TLS and
    with a password; without the certificate nothing is sent."""
    there = {"listen_addresses": "127.0.0.1", "port": free_port(), "fsync": "on"}
    with empty_root() as idem, postgres.server(**there) as server:
        trust_a_certificate_for("postgres.test")
        demand_a_password(server)
        write("root/etc/hosts", "127.0.0.1 postgres.test\n")
        place = f"{postgres.USER}:secret@postgres.test:{server.port}/{postgres.DATABASE}"
        env = {"IDEM_STORE": f"postgresql://{place}"}
        made = idem("store", "create", **env)
        equal((made.status, made.stderr), (0, b""))
        works(idem, env)
        env["IDEM_STORE"] = f"postgres://{place}"
        os.remove("root/etc/ssl/certs/ca-certificates.crt")
        refused = idem("show", "outer", **env)
        assert refused.status != 0 and b"certificate" in refused.stderr, refused
        assert b"secret" not in refused.stderr, refused


# Calls that are newer than Linux 4.15, and statx(), which a container may forbid.
NEW_CALLS = (
    *("rseq", "io_uring_setup", "pidfd_open", "pidfd_send_signal", "clone3", "close_range"),
    *("openat2", "faccessat2", "epoll_pwait2", "statx"),
)


@test
def an_older_kernel_is_enough():
    """Where the kernel has no call that is newer than 2018 the static program does all
    the same."""
    missing = f"inject={','.join(NEW_CALLS)}:error=ENOSYS"
    tracer = ["strace", "-f", "-A", "-o", "calls", "-e", missing, "-e", f"trace={','.join(NEW_CALLS)}"]
    command = [*tracer, built(), "run", "--store", "sqlite:idem.db", "-k", "k", "--", "echo", "done"]
    first = run(command)
    equal((first.status, first.stdout, first.stderr), (0, b"done\n", b""))
    equal(run(command), first)
    refused = set(re.findall(r"(\w+)\(", read("calls")))
    assert refused >= {"close_range", "statx"}, refused
    note(f"refused: {', '.join(sorted(refused))}")


@test
def it_says_what_it_is_made_of():
    """tools/sbom names what was linked into the static program, each part once."""
    path = built()
    folder = os.path.join(BUILD, "static", "x86_64")
    done = run([os.path.join(TOP, "tools", "sbom"), path, folder])
    equal((done.status, done.stderr), (0, b""))
    document = json.loads(done.stdout)
    names = [package["SPDXID"] for package in document["packages"]]
    equal(sorted(set(names)), sorted(names))
    linked = {r["relatedSpdxElement"] for r in document["relationships"]}
    equal(linked, set(names))
    note(f"{len(names)} packages")


if __name__ == "__main__":
    main()
