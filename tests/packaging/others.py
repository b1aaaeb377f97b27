"""The recipes for other systems (RPM, Arch), and the archive of the sources: what they
name is what the build has. With --long the RPMs are built and installed in a root of
their own, and the archive is made, built and tried."""

import functools
import glob
import os
import re
import shutil

import files
from tap import LONG, TOP, equal, main, note, run, skip, test
import trees
from trees import BUILD, installed_files, said

SPEC = os.path.join(TOP, "packaging", "rpm", "idem.spec")
PKGBUILD = os.path.join(TOP, "packaging", "arch", "PKGBUILD")


read = functools.partial(files.read, TOP)

def version():
    return re.search(r"^  version: '(.*)',$", read("meson.build"), re.M)[1]


def dependencies():
    """Return {name for pkg-config: the least version, or None} of what is linked."""
    found = {}
    for file in "meson.build", "cli/ui/meson.build":
        for name, rest in re.findall(r"dependency\('([\w-]+)'(.*)", read(file)):
            least = re.search(r"version: '>=(.*?)'", rest)
            found[name] = least[1] if least else found.get(name)
    return {name: least for name, least in found.items() if name not in ("threads", "cmocka")}


def meson_version():
    return re.search(r"meson_version: '>=(.*)'", read("meson.build"))[1]


# ---- RPM ----


def spec():
    """The specification with its macros expanded, as rpmbuild reads it."""
    if shutil.which("rpmspec") is None:
        skip("rpmspec is not installed: tools/deps test")
    return said("rpmspec", "--define", "_libdir /usr/lib64", "-P", SPEC)


@test
def the_spec_names_what_the_build_needs():
    """Version and dependencies of the RPMs are those of the build."""
    text = spec()
    equal(re.search(r"^Version: +(.*)$", text, re.M)[1], version())
    needed = dict(re.findall(r"^BuildRequires: +pkgconfig\((.*?)\)(?: >= (.*))?$", text, re.M))
    equal(needed, {name: least or "" for name, least in dependencies().items()})
    assert f"BuildRequires:  meson >= {meson_version()}" in text, text
    equal(re.search(r"^License: +(.*)$", text, re.M)[1], "Apache-2.0")


def lists(text):
    """Return {package: (its patterns, those that are excluded)}."""
    found = {}
    for part in re.split(r"^%files", text[: text.index("%changelog")], flags=re.M)[1:]:
        name, *lines = part.splitlines()
        kept, left_out = found.setdefault(name.strip() or "idem", ([], []))
        for line in filter(None, lines):
            word, *rest = line.split()
            if word == "%exclude":
                left_out.append(rest[0])
            elif word.startswith("%config"):
                kept.append(rest[0])
            elif word.startswith("/"):
                kept.append(word)
    return found


def complaints(paths, of):
    """Return what is wrong with the lists @of for these files."""
    def takes(package, path):
        kept, left_out = of[package]
        return (any(trees.is_like(path, p) for p in kept)
                and not any(trees.is_like(path, p) for p in left_out))

    return trees.complaints(paths, {package: kept for package, (kept, _) in of.items()}, takes)


def as_rpm(path):
    """Where a Fedora has an installed file of this Debian."""
    return "/" + re.sub(r"^usr/lib/[^/]+-linux-gnu/", "usr/lib64/", path)


@test
def each_file_is_in_one_rpm():
    """Each installed file is in one package, and no list names one that is not."""
    paths, of = [as_rpm(path) for path in installed_files()], lists(spec())
    equal(complaints(paths, of), [])
    note(f"{len(paths)} files in {len(of)} packages")
    # The control.
    assert complaints([*paths, "/usr/bin/forgotten"], of)
    assert complaints(paths, {**of, "libs": ([*of["libs"][0], "/usr/bin/idem"], [])})


@test
def rpms_are_built_and_work():
    """tools/rpm builds them, the same bytes in each time zone; rpm installs them in a root of
    their own, each file is there, and libraries are provided under their sonames."""
    if not LONG:
        skip("with --long: the RPMs are built and installed")
    if shutil.which("rpmbuild") is None:
        skip("rpmbuild is not installed: tools/deps test")
    wanted = {as_rpm(path) for path in installed_files()}
    sums = []
    for where, zone in ("one", "UTC"), ("two", "Pacific/Kiritimati"):
        # Each compiles all by itself.
        env = ["env", "-u", "CC", "-u", "SOURCE_DATE_EPOCH", "CCACHE_DISABLE=1", f"TZ={zone}"]
        said(*env, f"{TOP}/tools/rpm", os.path.abspath(where), timeout=3000)
        sums.append(sorted(said("sh", "-c", f"cd {where} && sha256sum *.rpm").splitlines()))
    equal(sums[0], sums[1])
    rpms = glob.glob("one/*.x86_64.rpm")
    listed = set(said("rpm", "-qlp", *rpms).splitlines())
    pages = {re.sub(r"(/man/.*\.\d)\.gz$", r"\1", path) for path in listed}
    equal({path for path in wanted if path not in pages}, set())
    provided = said("rpm", "-qp", "--provides", *rpms)
    for name in "libidem.so.0()(64bit)", "libidem-aws.so.0()(64bit)":
        assert name in provided.splitlines(), provided
    if os.getuid() != 0:
        skip("rpm installs into a root as root")
    root = os.path.abspath("there")
    said("rpm", "--root", root, "--nodeps", "-i", *map(os.path.abspath, rpms))
    env = {"IDEM_STORE": f"sqlite:{os.getcwd()}/idem.db"}
    work = [f"{root}/usr/bin/idem", "run", "-k", "k", "--", "sh", "-c", "echo $$"]
    equal(said(*work, env=env), said(*work, env=env))


# ---- Arch ----


def fields():
    """The fields of the PKGBUILD, as bash has them."""
    names = ["pkgver", "arch", "license", "depends", "makedepends", "source"]
    show = "; ".join(f'echo "{name} ${{{name}[*]}}"' for name in names)
    lines = said("bash", "-c", f"set -eu; source {PKGBUILD}; {show}").splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines}


# Of which package of Arch a name for pkg-config is.
OF_ARCH = {
    "json-c": "json-c",
    "libcrypto": "openssl",
    "libcurl": "curl",
    "libmicrohttpd": "libmicrohttpd",
    "libpq": "postgresql-libs",
    "libzstd": "zstd",
    "sqlite3": "sqlite",
}


@test
def the_pkgbuild_names_what_the_build_needs():
    """Version and dependencies of the package are those of the build; bash can read it."""
    said("bash", "-n", PKGBUILD)
    it = fields()
    equal(it["pkgver"], [version()])
    equal(it["source"], [f"idem-{version()}.tar.xz"])
    equal(set(OF_ARCH), set(dependencies()))
    needed = {OF_ARCH[name] for name in dependencies()} | {"glibc", "meson"}
    equal(set(it["depends"]) | set(it["makedepends"]), needed)
    with open(PKGBUILD, encoding="utf-8") as f:
        text = f.read()
    for function in "build", "check", "package":
        assert f"\n{function}() {{\n" in text, function


# ---- The archive, and the names of the libraries ----


@test
def libraries_keep_their_names():
    """The soname of each library is that of the first release: what was linked with it
    goes on to find it."""
    installed_files()
    for name in "libidem.so.0", "libidem-aws.so.0":
        (path,) = glob.glob(f"root/**/{name}", recursive=True)
        said_of = re.search(r"SONAME.*\[(.*)\]", said("readelf", "-d", path))[1]
        equal(said_of, name)


@test
def the_archive_builds():
    """`meson dist` makes an archive of the commit, which builds outside of a repository;
    the program does its work once, and the checks and the contract of the stores hold."""
    if not LONG:
        skip("with --long: the archive is made, built and tried")
    if not os.path.exists(os.path.join(TOP, ".git")):
        skip("an archive is made of a repository")
    changes = ["git", "-C", TOP, "status", "--porcelain", "--untracked-files=no"]
    if said(*changes):
        note("what is not committed is not in it")
    os.mkdir("dist")
    dist = ["meson", "dist", "-C", BUILD, "--no-tests", "--formats", "xztar"]
    said(*dist, "--allow-dirty", timeout=600)
    name = f"idem-{version()}"
    said("tar", "-xf", f"{BUILD}/meson-dist/{name}.tar.xz")
    setup = ["meson", "setup", "made", name, "-Dtests=enabled", "-Dnginx=disabled"]
    said(*setup, timeout=600)
    targets = ["idem", "libidem.so.0.1.0", "libidem-aws.so.0.1.0", "tests/contract/contract"]
    said("ninja", "-C", "made", *targets, timeout=3000)
    tests = ["contract/memory", "contract/sqlite", "integration/test_cli", "check-format",
             "check-includes", "check-names", "check-rows", "check-words"]
    done = run(["meson", "test", "-C", "made", "--no-rebuild", "-t", "10", *tests], timeout=3000)
    assert done.status == 0, done.stdout.decode()[-4000:]
    note(re.search(rb"Ok: +(\d+)", done.stdout)[0].decode() + " tests")


if __name__ == "__main__":
    main()
