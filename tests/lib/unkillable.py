"""Processes that SIGKILL does not end: in an uninterruptible sleep, or another user's."""

import contextlib
import glob
import os
import shutil
import subprocess

from patience import until
from tap import PROGRAM, skip

NOBODY = 65534


def _do(*command):
    return subprocess.run(command, capture_output=True, check=False)


@contextlib.contextmanager
def frozen_disk(path):
    """Make a file system at @path on which every writer sleeps until the block is over, and
    cannot be killed meanwhile. Give a function that ends that early."""
    if os.getuid() != 0:
        skip("only root can mount and freeze a file system")
    image = path + ".img"
    with open(image, "wb") as f:
        f.truncate(16 << 20)
    os.mkdir(path)
    made = _do("mkfs.ext4", "-q", "-F", image)
    mounted = _do("mount", "-o", "loop", image, path)
    if made.returncode or mounted.returncode:
        skip(f"no loop mount here: {(made.stderr + mounted.stderr)[-200:]!r}")
    try:
        if _do("fsfreeze", "-f", path).returncode:
            skip("no file system can be frozen here")
        yield lambda: _do("fsfreeze", "-u", path)
    finally:
        _do("fsfreeze", "-u", path)
        until(lambda: _do("umount", path).returncode == 0, "the disk is not in use")


class OrdinaryUser:
    """Lets an ordinary user run the program under test in the directory of @b, with a
    command ./likesudo SECONDS that the user may not signal."""

    def __init__(self, b):
        if os.getuid() != 0:
            skip("only root can make a set-uid program of root's")
        self.b = b
        os.chmod(b.path, 0o777)
        self._copy_programs()
        helper = b.file("as-root")
        shutil.copy(shutil.which("setpriv"), helper)
        os.chmod(helper, 0o4755)
        b.write(
            "likesudo",
            "#!/bin/sh\n./as-root --reuid=0 --clear-groups sleep $1\n",
        )
        os.chmod(b.file("likesudo"), 0o755)
        probe = self._as_user("./as-root", "--reuid=0", "--clear-groups", "id", "-u")
        told = subprocess.run(probe, cwd=b.path, capture_output=True, check=False)
        if told.stdout != b"0\n":
            skip(f"no set-uid program works here: {told.stderr[-200:]!r}")

    def _copy_programs(self):
        """Copy the programs, because the user may have no access to the build."""
        libraries = glob.glob(os.path.join(os.path.dirname(PROGRAM), "libidem.so*"))
        os.mkdir(self.b.file("bin"))
        for path in (PROGRAM, *filter(os.path.isfile, libraries)):
            shutil.copy(path, self.b.file("bin"))

    @staticmethod
    def _as_user(*command):
        user = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
        return (*user, "--", *command)

    def idem(self, *args):
        """Return a command line that runs idem as that user."""
        library = "LD_LIBRARY_PATH=" + self.b.file("bin")
        return self._as_user("env", library, self.b.file("bin/idem"), *args)
