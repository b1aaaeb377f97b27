"""The Debian packages: each file is in one of them, and they work where nothing else
of ours is."""

import filecmp
import glob
import os
import re
import shutil

import dynamo
from root import Root, fields
from files import read, write
from tap import LONG, PROGRAM, TOP, equal, main, note, run, skip, test
import trees
from trees import BUILD, installed_files

DEBIAN = os.path.join(TOP, "packaging", "debian")


# ---- What is in which package ----


def patterns():
    """Return {package: the patterns of its files}."""
    found = {}
    for path in glob.glob(f"{DEBIAN}/*.install"):
        package = os.path.basename(path)[: -len(".install")]
        lines = [line.split()[0] for line in read(path).splitlines() if line.strip()]
        # The module is taken from where it was built.
        found[package] = [line for line in lines if not line.startswith("obj-")]
    return {package: lines for package, lines in found.items() if lines}


def complaints(paths, of):
    """Return what is wrong with the lists of @of for these installed files."""
    return trees.complaints(paths, of, lambda package, path: owns(path, of[package]))


def owns(path, patterns):
    return any(trees.is_like(path, pattern) for pattern in patterns)


@test
def each_file_is_in_one_package():
    """Each installed file is in one package, and no list names one that is not."""
    paths = installed_files()
    equal(complaints(paths, patterns()), [])
    note(f"{len(paths)} files in {len(patterns())} packages")


@test
def a_file_that_is_forgotten_is_seen():
    """The control: a file in no package, in two, and a list that names nothing."""
    of = patterns()
    first = "usr/bin/idem"
    (owner,) = (package for package in of if owns(first, of[package]))
    other = next(package for package in of if package != owner)
    paths = installed_files()
    assert complaints([*paths, "usr/bin/forgotten"], of)
    assert complaints(paths, {**of, other: [*of[other], first]})
    assert complaints(paths, {**of, owner: [*of[owner], "usr/bin/never"]})


@test
def versions_agree():
    """The version of the packages is that of the program, and they are built with
    what tools/deps installs to build."""
    version = re.search(r"^  version: '(.*)',$", read(TOP, "meson.build"), re.M)[1]
    assert read(DEBIAN, "changelog").startswith(f"idem ({version}-"), version
    source = fields(read(DEBIAN, "control").split("\n\n")[0])
    needed = set(re.findall(r"[\w.+-]+-dev\b", source["Build-Depends"]))
    here = read(TOP, "tools", "deps")
    equal(sorted(name for name in needed if not re.search(rf"\b{name}\b", here)), [])
    # Without the headers of a library a build leaves out what needs it.
    to_build = re.search(r"^packages=\((.*?)\)", here, re.M | re.S)[1].split()
    libraries = {name for name in to_build if name.endswith("-dev")} - {"libc6-dev"}
    equal(sorted(libraries - needed), [])


# ---- Services ----


def need_root_and(*programs):
    if os.getuid() != 0:
        skip("the group and the directory of root's store are made by root")
    for program in programs:
        if shutil.which(program, path="/usr/sbin:" + os.environ["PATH"]) is None:
            skip(f"{program} is not installed: tools/deps test")


def is_ready(root):
    """The group of idem serve and the default directory are there, in the folder @root."""
    assert re.search(r"^idem:", read(root, "etc/group"), re.M)
    place = os.stat(os.path.join(root, "var/lib/idem"))
    equal((oct(place.st_mode), place.st_uid), ("0o40700", 0))


@test
def its_services_can_be_started():
    """The files for systemd make the group and the directory; each unit is one that systemd
    takes, with the program that was installed, and the socket is of the group."""
    need_root_and("systemd-sysusers", "systemd-tmpfiles", "systemd-analyze")
    installed_files()
    (lib,) = glob.glob("root/**/lib/sysusers.d", recursive=True)
    lib, root = os.path.abspath(os.path.dirname(lib)), os.path.abspath("root")
    os.makedirs("root/etc", exist_ok=True)
    write("root/etc/passwd", "root:x:0:0::/root:/bin/sh\n")
    write("root/etc/group", "root:x:0:\n")
    for program, options in ("sysusers", []), ("tmpfiles", ["--create"]):
        done = run([f"systemd-{program}", *options, f"--root={root}", f"{lib}/{program}.d/idem.conf"])
        equal((program, done.status), (program, 0))
    is_ready("root")
    units = sorted(glob.glob(f"{lib}/systemd/system/idem-*"))
    equal(len(units), 6)
    program = f"{os.path.dirname(lib)}/bin/idem"
    for unit in units:
        # The place where the program will be is that of the build; here it is in a folder.
        write(unit, read(unit).replace(program.removeprefix(root) + " ", program + " "))
    done = run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units])
    equal((done.status, done.stderr), (0, b""))
    (group,) = re.findall(r"^SocketGroup=(.*)$", read(f"{lib}/systemd/system/idem-serve.socket"), re.M)
    equal(group, re.search(r"^g (\S+)", read(f"{lib}/sysusers.d/idem.conf"), re.M)[1])


@test
def the_audit_log_is_rotated():
    """A decision before a rotation and one after it are both kept, in the file of each."""
    need_root_and("logrotate")
    rules = read(TOP, "packaging/systemd/logrotate.conf")
    assert "/var/lib/idem/audit.log" in rules, rules
    write("rules", rules.replace("/var/lib/idem", os.getcwd()).replace("    compress\n", ""), 0o644)
    env = {"IDEM_STORE": "sqlite:idem.db", "IDEM_AUDIT_LOG": os.path.abspath("audit.log")}
    for key in "first", "second":
        equal(run([PROGRAM, "begin", "-k", key], env).status, 0)
        equal(run([PROGRAM, "resolve", "--release", "--force", "--reason", key, key], env).status, 0)
        if key == "first":
            said("env", "PATH=/usr/sbin:/usr/bin:/bin", "logrotate", "--force", "--state=state", "rules")
    assert '"first"' in read("audit.log.1") and '"first"' not in read("audit.log")
    assert '"second"' in read("audit.log")


# ---- Which library needs what ----

OF_OTHERS = re.compile(r"\b(curl_|ZSTD_|json_object_|idem_(?:dynamodb|lambda|consumer|execution)_)")


def library_folder():
    """Install; return the folder of the libraries, and that of the program."""
    installed_files()
    (path,) = glob.glob("root/**/libidem.so.0", recursive=True)
    (program,) = glob.glob("root/**/bin/idem", recursive=True)
    return os.path.abspath(os.path.dirname(path)), os.path.abspath(program)


def said(*command):
    done = run(command)
    equal((command, done.status, done.stderr), (command, 0, b""))
    return done.stdout.decode()


def needed(path):
    return set(re.findall(r"NEEDED.*\[(.+?)\.so", said("readelf", "-d", path)))


@test
def the_core_knows_nothing_of_aws():
    """libidem and the program need no library that libidem-aws needs, and libidem has no
    name of libcurl, zstd, json-c or AWS."""
    libraries, program = library_folder()
    core, aws = f"{libraries}/libidem.so.0", f"{libraries}/libidem-aws.so.0"
    equal(needed(core) & {"libcurl", "libzstd", "libjson-c", "libidem-aws"}, set())
    equal(needed(program) & {"libcurl", "libzstd", "libidem-aws"}, set())
    equal({"libidem", "libcurl", "libjson-c", "libzstd"} - needed(aws), set())
    names = said("nm", "-D", core)
    equal([line for line in names.splitlines() if OF_OTHERS.search(line)], [])
    # The control: the pattern finds such names where they are.
    assert OF_OTHERS.search(said("nm", "-D", aws)), aws
    note(f"libidem needs {', '.join(sorted(needed(core)))}")


@test
def without_libidem_aws_its_package_is_named():
    """The program does its work on a file without libidem-aws; where that is needed, what
    is to be installed is said, with status 78; and with it there it works."""
    libraries, program = library_folder()
    for name in ("a.db", "b.db"):
        done = run([program, "run", "--store", f"sqlite:{name}", "-k", "k", "--", "echo", "done"])
        equal((done.status, done.stdout, done.stderr), (0, b"done\n", b""))
    table = [program, "show", "--store", "dynamodb://orders?region=eu-west-1", "k"]
    for command in (table, [program, "lambda", "sources"]):
        # Meson names the folder of the build to its tests.
        done = run(["env", "-u", "LD_LIBRARY_PATH", *command])
        equal((command, done.status, done.stdout), (command, 78, b""))
        assert b"apt install libidem-aws0" in done.stderr, done.stderr
    there = {"LD_LIBRARY_PATH": libraries, "AWS_REGION": "", "AWS_ENDPOINT_URL": ""}
    done = run(table[:3] + ["dynamodb://x", "k"], there)
    assert b"invalid table name" in done.stderr, done.stderr
    assert b"api-gateway-http" in run([program, "lambda", "sources"], there).stdout


@test
def a_set_user_id_program_loads_no_library():
    """A program that runs as its owner refuses a store that it would have to load."""
    if os.geteuid() != 0:
        skip("a file of another user's needs root")
    _, program = library_folder()
    copy = os.path.abspath("idem-as-nobody")
    with open(program, "rb") as one, open(copy, "wb") as two:
        two.write(one.read())
    os.chown(copy, 65534, 65534)
    os.chmod(copy, 0o4755)
    done = run([copy, "show", "--store", "dynamodb://orders?region=eu-west-1", "k"])
    if b"set-user-ID" not in done.stderr and os.statvfs(".").f_flag & os.ST_NOSUID:
        skip("this file system has no programs that run as their owner")
    equal(done.status, 78)
    assert b"loads no library" in done.stderr, done.stderr


# ---- Built and installed ----

# What lintian says of them and is meant so: the packages are not part of Debian, and
# no bug of Debian's is closed by their first release.
MEANT = {
    "initial-upload-closes-no-bugs",
}

_built = None


def built():
    """Build the packages, once; return the folder that they are in."""
    global _built
    if not LONG:
        skip("packages are built with --long: tools/test --long packaging")
    if _built is None:
        _built = os.path.join(BUILD, "packages")
        done = run([os.path.join(TOP, "tools", "package"), _built], timeout=1800)
        equal((done.status, done.stderr), (0, b""))
    return _built


def debs(folder):
    """Return {package: its file}, without debugging symbols."""
    found = {os.path.basename(p).split("_")[0]: p for p in glob.glob(folder + "/*.deb")}
    return {name: path for name, path in found.items() if not name.endswith("-dbgsym")}


def built_elsewhere():
    """Build the packages once more, in a folder whose name is longer, as somebody with
    another mask, time zone and order of letters; return the folder."""
    locales, folder = os.path.abspath("locales"), os.path.abspath("elsewhere/in/a/folder")
    os.mkdir(locales)
    said("localedef", "-i", "en_US", "-f", "UTF-8", f"{locales}/en_US.UTF-8")
    env = {"LOCPATH": locales, "LC_ALL": "en_US.UTF-8", "TZ": "Pacific/Kiritimati"}
    env["CCACHE_DISABLE"] = "1"  # Nothing is to come from the other folder.
    make = ["sh", "-c", 'umask 027; exec "$0" "$1"', os.path.join(TOP, "tools", "package"), folder]
    done = run(make, env, timeout=1800)
    equal((done.status, done.stderr), (0, b""))
    return folder


@test
def they_are_the_same_bytes_each_time():
    """Packages, source and debugging symbols are the same bytes, wherever and by whomever
    they are built."""
    there = {}
    for folder in built(), built_elsewhere():
        for pattern in "*.deb", "*.dsc", "*.tar.xz":
            for path in glob.glob(f"{folder}/{pattern}"):
                there.setdefault(os.path.basename(path), []).append(path)
    equal({name: len(paths) for name, paths in there.items() if len(paths) != 2}, {})
    other = [name for name, paths in there.items() if not filecmp.cmp(*paths, shallow=False)]
    equal(sorted(other), [])
    note(f"{len(there)} files")


@test
def lintian_finds_nothing():
    """lintian has nothing to say against the packages and their source."""
    (changes,) = glob.glob(built() + "/*.changes")
    done = run(["lintian", "--no-cfg", "--allow-root", changes], timeout=300)
    said = done.stdout.decode().splitlines()
    equal([line for line in said if line.split()[2] not in MEANT], [])
    note(f"{len(debs(built()))} packages")


@test
def they_work_in_a_clean_root():
    """In a root that has nothing else of ours, dpkg -i gives a program that works, man
    pages, completion, a library to build with and run with, first without libidem-aws;
    purging takes all away again."""
    folder = built()
    found = debs(folder)
    tools = ["curl", "gcc", "libc6-dev", "man-db", "nginx-light", "pkgconf"]
    root = Root("root", [*tools, *depends(found)])
    note(f"a clean root of {len(root.packages)} packages")
    before = set(files(root))
    for path in found.values():
        os.link(path, root.file("tmp/" + os.path.basename(path)))
    core = ["idem", "libidem-dev", "libidem0"]
    dpkg(root, "-i", *(f"/tmp/{os.path.basename(found[name])}" for name in core))
    is_ready(root.path)
    work(root)
    library(root)
    table(root, missing=True)
    rest = sorted(set(found) - set(core))
    dpkg(root, "-i", *(f"/tmp/{os.path.basename(found[name])}" for name in rest))
    note(f"installed {', '.join(sorted(found))}: {len(set(files(root)) - before)} files")
    table(root)
    aws_library(root)

    pages(root)
    completion(root)
    module(root)

    dpkg(root, "-P", *found)
    left = {p for p in set(files(root)) - before if "idem" in os.path.basename(p)}
    equal({p for p in left if not p.startswith("/tmp/")}, set())


def depends(found):
    """Return the packages of Debian that these need, at any version."""
    names = set()
    for path in found.values():
        said = run(["dpkg-deb", "-f", path, "Depends"]).stdout.decode()
        names |= {part.split("|")[0].split()[0] for part in said.split(",")}
    return {n for n in names if n not in found and not n.startswith("nginx-abi")}


def files(root):
    for folder, _, names in os.walk(root.path):
        if not folder.startswith((root.file("dev"), root.file("proc"))):
            for name in names:
                yield os.path.join(folder, name)[len(root.path) :]


def dpkg(root, *args):
    done = root("dpkg", *args)
    assert done.status == 0, (done.stdout + done.stderr).decode()


def work(root):
    """The program does work once, as an ordinary user."""
    script = "idem run -k a -- sh -c 'echo $$; echo x >>/tmp/ledger'"
    done = root("sh", "-c", f"{script}; {script}; cat /tmp/ledger", user="nobody")
    first, second, *ledger = done.stdout.decode().split()
    equal((done.status, done.stderr, first, ledger), (0, b"", second, ["x"]))


def pages(root):
    """man shows each page of idem's."""
    there = run(["dpkg", "--root", root.path, "-L", "idem", "libidem-dev"])
    shown = re.findall(r"/man/man\d/([^/]+)\.(\d)(?:\.gz)?$", there.stdout.decode(), re.M)
    assert len(shown) > 50, shown
    script = 'for page; do man -w "${page%%.*}.${page#*.}" >/dev/null || echo $page; done'
    done = root("sh", "-c", script, "sh", *(f"{name}.{n}" for name, n in shown))
    equal((done.status, done.stdout, done.stderr), (0, b"", b""))
    done = root("sh", "-c", "MANWIDTH=70 man 1 idem-run")
    assert b"EXIT STATUS" in done.stdout, done
    note(f"{len(shown)} man pages")


def completion(root):
    """The file for bash completes commands and options where bash looks for it."""
    done = root(
        "bash",
        "-c",
        "source /usr/share/bash-completion/completions/idem\n"
        "COMP_WORDS=(idem ru) COMP_CWORD=1; _idem; echo ${COMPREPLY[*]}\n"
        "COMP_WORDS=(idem run --lea) COMP_CWORD=2; _idem; echo ${COMPREPLY[*]}",
    )
    equal((done.status, done.stdout), (0, b"run\n--lease\n"))
    assert os.path.exists(root.file("usr/share/zsh/vendor-completions/_idem"))
    assert os.path.exists(root.file("usr/share/fish/vendor_completions.d/idem.fish"))


def done_once(lines, order):
    """The example did its work in the first of two runs, and replayed it in the second."""
    equal((len(lines), lines[0]), (3, f"charging {order}"))
    first, second = (line.split(": ") for line in lines[1:])
    equal((first[0], second[0], first[1]), ("STARTED", "REPLAY", second[1]))


def library(root):
    """An example builds with what pkg-config says, does its work once on a file, and
    is linked with nothing of AWS."""
    script = (
        "cd /tmp && cp /usr/share/doc/libidem-dev/examples/once.c . && "
        "gcc once.c -o once $(pkg-config --cflags --libs idem) && "
        "./once sqlite:/tmp/once.db order-1 && ./once sqlite:/tmp/once.db order-1 && "
        "ldd ./once"
    )
    done = root("sh", "-c", script)
    equal((done.status, done.stderr), (0, b""))
    lines = done.stdout.decode().splitlines()
    done_once(lines[:3], "order-1")
    assert any("libidem.so.0 => " in line for line in lines), lines
    assert not any("curl" in line or "idem-aws" in line for line in lines), lines


def table(root, missing=False):
    """A DynamoDB table: the program and the example name the package where it is
    missing; where it is not, they do the work once."""
    # Of ca-certificates, whose script makes it.
    os.makedirs(root.file("etc/ssl/certs"), exist_ok=True)
    trusted = "/etc/ssl/certs/ca-certificates.crt"
    shutil.copy(trusted, root.file(trusted))
    with dynamo.server("dynoxide") as url:
        store = f"dynamodb://orders?region=eu-west-1&endpoint={url}"
        names = "AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b"
        create = root("sh", "-c", f"{names} idem store create --store '{store}'")
        once = root("sh", "-c", f"{names} /tmp/once '{store}' 1; {names} /tmp/once '{store}' 1")
    said = [done.stdout.decode() + done.stderr.decode() for done in (create, once)]
    if missing:
        equal(create.status, 78)
        for text in said:
            assert "apt install libidem-aws0" in text, text
        return
    assert create.status == 0 and "was made" in said[0], said
    done_once(said[1].splitlines(), "1")


def aws_library(root):
    """A program that names functions of libidem-aws builds with what pkg-config says."""
    write(root.file("tmp/sources.c"), "#include <idem/lambda.h>\n#include <stdio.h>\n"
                                      "int main(void) { return puts(idem_lambda_source_at(0)->name) < 0; }\n")
    compiled = "gcc sources.c -o sources $(pkg-config --cflags --libs idem-aws)"
    done = root("sh", "-c", f"cd /tmp && {compiled} && ./sources")
    equal((done.status, done.stderr, done.stdout), (0, b"", b"alb\n"))


def module(root):
    """nginx loads the module as it is installed; the gateway finds both, and replays."""
    done = root("nginx", "-t")
    assert done.status == 0, done
    with open(root.file("tmp/service.conf"), "w", encoding="ascii") as f:
        # Whoever asks is told another number.
        f.write("events { } http { server { listen unix:/tmp/service.sock;")
        f.write("location / { return 201 $request_id; } } }")
    script = """
        nginx -c /tmp/service.conf -g "daemon off; pid /tmp/pid;" &
        mkdir /tmp/theirs && chown nobody /tmp/theirs
        idem gateway -u http://unix:/tmp/service.sock -l unix:/tmp/theirs/gateway.sock \\
            --global-scope --user nobody --store sqlite:/tmp/theirs/idem.db >/tmp/log 2>&1 &
        until grep -q ^unix: /tmp/log; do sleep 0.1; done
        for key in a a b; do
            curl -s --unix-socket /tmp/theirs/gateway.sock -H "Idempotency-Key: $key" \\
                -d x=1 http://localhost/ && echo
        done"""
    done = root("bash", "-c", script)
    said = done.stdout.decode().split()
    assert len(said) == 3 and said[0] == said[1] != said[2], (done, said)
    note(f"the gateway answered {said}")


if __name__ == "__main__":
    main()
