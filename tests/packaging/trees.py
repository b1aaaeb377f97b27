"""What an installation has, for the tests of packages."""

import os
import re

from tap import PROGRAM, equal, run

BUILD = os.path.dirname(PROGRAM)


def said(*command, timeout=120, env=None):
    """Run @command, which must end well; return what it printed."""
    done = run(command, env=env, timeout=timeout)
    assert done.status == 0, (command, (done.stdout + done.stderr).decode()[-3000:])
    return done.stdout.decode()


def installed_files():
    """Install into "root"; return what is there, as paths without the first slash."""
    install = ["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"]
    equal(run([*install, "--destdir", os.path.abspath("root")]).status, 0)
    found = []
    for folder, _, names in os.walk("root"):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), "root")
            found.append(re.sub(r"^(usr/)local/", r"\1", path))
    return found
