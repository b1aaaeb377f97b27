"""What an installation has, for the tests of packages."""

import fnmatch
import os
import re

from tap import PROGRAM, equal, run

BUILD = os.path.dirname(PROGRAM)


def said(*command, timeout=120, env=None):
    """Run @command, which must end well; return what it printed."""
    done = run(command, env=env, timeout=timeout)
    assert done.status == 0, (command, (done.stdout + done.stderr).decode()[-3000:])
    return done.stdout.decode()


def complaints(paths, of, takes):
    """Return what is wrong with the patterns of @of, {package: [pattern]}, for these files:
    each is to be in one package, by @takes(package, path), and no pattern is for nothing."""
    bad = []
    for path in paths:
        found = [package for package in of if takes(package, path)]
        if len(found) != 1:
            bad.append(f"{path}: in {' and '.join(found) or 'no package'}")
    for package, patterns in of.items():
        bad += [f"{package}: there is nothing like {p}" for p in patterns
                if not any(is_like(path, p) for path in paths)]
    return bad


def is_like(path, pattern):
    return fnmatch.fnmatch(path, pattern) or path.startswith(pattern + "/")


def installed_files():
    """Install into "root"; return what is there, as paths without the first slash."""
    install = ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"]
    equal(run([*install, "--destdir", os.path.abspath("root")]).status, 0)
    found = []
    for folder, _, names in os.walk("root"):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), "root")
            found.append(re.sub(r"^usr/local/(etc/|)", lambda m: m[1] or "usr/", path))
    return found
