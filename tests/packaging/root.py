"""A clean Debian: a folder with the essential packages of this machine, those that
are asked for and what they depend on, made from the files of this machine."""

import glob
import os
import re
import shutil
import subprocess

from files import read, write
from tap import run, skip

ADMIN = "/var/lib/dpkg"
# Made by the scripts of packages, so that no package lists them.
MADE = ("/etc/group", "/etc/passwd", "/etc/nsswitch.conf")


def fields(text):
    """Return a paragraph of dpkg's as {name: value}."""
    found = re.findall(r"^([\w-]+):((?:.|\n(?= ))*)$", text, re.M)
    return {name: value.strip() for name, value in found}


def installed():
    """Return {package: its paragraph} of this machine."""
    texts = read(f"{ADMIN}/status").strip().split("\n\n")
    return {
        fields(text)["Package"]: text for text in texts if " ok installed" in text
    }


def names(dependencies):
    """Return [[alternatives]] of a field such as Depends, without versions."""
    groups = (group.split("|") for group in dependencies.split(",") if group.strip())
    return [[re.match(r"\s*([^\s(:]+)", name)[1] for name in group] for group in groups]


def closure(wanted, packages):
    """Return @wanted with all that they need of @packages."""
    paragraphs = {name: fields(text) for name, text in packages.items()}
    provided = {}
    for name, paragraph in paragraphs.items():
        for (virtual,) in names(paragraph.get("Provides", "")):
            provided.setdefault(virtual, name)
    found, left = set(), list(wanted)
    while left:
        name = left.pop()
        if name in found:
            continue
        if name not in packages:
            skip(f"{name} is not installed here: tools/deps test")
        found.add(name)
        needs = [paragraphs[name].get(f, "") for f in ("Depends", "Pre-Depends")]
        for group in names(",".join(needs)):
            choices = [provided.get(n, n) if n not in packages else n for n in group]
            left.append(next((n for n in choices if n in packages), group[0]))
    return found


def info_files(name):
    """Return the files in which dpkg says what it knows of a package."""
    found = glob.glob(f"{ADMIN}/info/{name}.*")
    return found + glob.glob(f"{ADMIN}/info/{name}:*.*")


def files_of(name):
    """Return the paths that a package has installed."""
    (path,) = [p for p in info_files(name) if p.endswith(".list")]
    return [line for line in read(path).splitlines() if line != "/."]


class Root:
    """The folder @path; without() is the text that it is made from."""

    def __init__(self, path, wanted):
        if os.getuid() != 0 or not os.path.isdir(f"{ADMIN}/info"):
            skip("a root for packages is made by root, on a Debian")
        self.path = os.path.abspath(path)
        packages = installed()
        essential = [n for n, text in packages.items() if "\nEssential: yes" in text]
        self.packages = sorted(closure([*essential, *wanted], packages))
        self._directories()
        self._copy()
        self._tell({name: packages[name] for name in self.packages})

    def file(self, path):
        return os.path.join(self.path, path.lstrip("/"))

    def _directories(self):
        for name in ("dev", "proc", "root", "run", "sys", "tmp", "usr", "var/lib"):
            os.makedirs(self.file(name))
        os.chmod(self.file("tmp"), 0o1777)
        for link in ("bin", "lib", "lib32", "lib64", "libx32", "sbin"):
            if os.path.islink("/" + link):
                os.makedirs(self.file("usr/" + link))
                os.symlink("usr/" + link, self.file(link))

    def _copy(self):
        """Copy all files of the packages, and the choices between alternatives."""
        paths = {path for name in self.packages for path in files_of(name)}
        paths |= set(MADE) | {os.readlink(p) for p in paths if is_alternative(p)}
        for link in filter(os.path.islink, glob.glob("/etc/alternatives/*")):
            if os.readlink(link) in paths:
                paths.add(link)
                paths |= alternative_links(os.path.basename(link))
        there = "\0".join(sorted(p[1:] for p in paths if os.path.lexists(p)))
        pack = ["tar", "-C", "/", "-cf", "-", "--no-recursion", "--null", "-T", "-"]
        unpack = ["tar", "-C", self.path, "-xpf", "-", "--keep-directory-symlink"]
        with subprocess.Popen(
            pack, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as packing, subprocess.Popen(unpack, stdin=packing.stdout) as unpacking:
            packing.stdout.close()
            packing.stdin.write(there.encode())
            packing.stdin.close()
            assert unpacking.wait() == 0 and packing.wait() == 0

    def _tell(self, paragraphs):
        """Tell the dpkg in there what is installed."""
        admin = self.file(ADMIN)
        for name in ("alternatives", "info", "parts", "triggers", "updates"):
            os.makedirs(f"{admin}/{name}", exist_ok=True)
        for name in self.packages:
            for path in info_files(name):
                shutil.copy2(path, f"{admin}/info")
        for name in ("info/format", "triggers/File", "arch"):
            if os.path.exists(f"{ADMIN}/{name}"):
                shutil.copy2(f"{ADMIN}/{name}", f"{admin}/{name}")
        with open(f"{admin}/status", "w", encoding="utf-8") as f:
            for text in paragraphs.values():
                # What waits here does not concern them.
                f.write(re.sub(r"\nTriggers-\w+:.*", "", text) + "\n\n")
        open(f"{admin}/available", "w", encoding="utf-8").close()
        # No service starts in there.
        os.makedirs(self.file("usr/sbin"), exist_ok=True)
        write(self.file("usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n", 0o755)

    def __call__(self, *command, timeout=120, user=None):
        """Run @command in there, with processes and devices; all that it leaves
        running ends with it."""
        into = ["chroot", *([f"--userspec={user}"] if user else []), self.path]
        script = (
            'mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec "$@"'
        )
        new = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        home = {"HOME": "/tmp", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        if run([*new, "true"]).status != 0:
            skip("no containers can be made here")
        return run(
            [*new, "sh", "-c", script, self.path, *into, *command],
            env={**home, "IDEM_JOURNAL_DIR": None},
            timeout=timeout,
        )


def is_alternative(path):
    return os.path.islink(path) and os.readlink(path).startswith("/etc/alternatives/")


def alternative_links(name):
    """Return the links, such as /usr/bin/awk, that the alternative @name is for."""
    try:
        return {line for line in read(f"{ADMIN}/alternatives/{name}").splitlines()[1:2] if line[:1] == "/"}
    except OSError:
        return set()
