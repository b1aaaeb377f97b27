"""The clocks of programs, moved by a test while they run."""

import glob
import os
import re
import shutil
import struct

from files import write
from tap import SANITIZED, run, skip

LIBRARY = os.environ["IDEM_CLOCKS"]


class Clocks:
    """The wall, boot and monotonic clocks of the programs that are started with env."""

    def __init__(self, b):
        self.path = b.file("clocks")
        self.moved = [0, 0, 0]
        self.env = {"LD_PRELOAD": LIBRARY, "CLOCKS_PAGE": self.path}
        if SANITIZED:
            self.env["ASAN_OPTIONS"] = "verify_asan_link_order=0"
        with open(self.path, "wb") as f:
            f.write(bytes(32))

    def move(self, wall=0, boot=0, monotonic=0):
        """Move them by so many milliseconds, for the running programs too."""
        by = (wall, boot, monotonic)
        self.moved = [before + more for before, more in zip(self.moved, by)]
        with open(self.path, "r+b") as f:
            f.write(struct.pack("<3q", *self.moved))

    def keep_right(self, how):
        """Set whether adjtimex() reports them as synchronised: "yes", "no", or "denied"."""
        with open(self.path, "r+b") as f:
            f.seek(24)
            f.write(struct.pack("<q", ("yes", "no", "denied").index(how)))


# Another boot id than this machine's, and then what to run.
OTHER_BOOT = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'


def elsewhere(number=0):
    """Return a command prefix that runs a program as on another machine, by its number:
    with another boot id, to which our boot clock means nothing."""
    boot = os.path.abspath(f"boot-{number}")
    write(boot, f"00000000-1111-4222-8333-{number:012d}\n")
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", OTHER_BOOT, boot]
    if run([*command, "true"]).status != 0:
        skip("no namespaces of users here")
    return command


def faketime_library():
    library = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    if not library:
        skip("no faketime: see tools/deps")
    return library[0]


def needs_faketime():
    """Return the program faketime, and remove what its killed runs left: a semaphore named
    after a process, which the next process with that id could not make."""
    if shutil.which("faketime") is None:
        skip("no faketime: see tools/deps")
    if SANITIZED:
        skip("faketime asks for memory before the sanitizer has any")
    for path in glob.glob("/dev/shm/*faketime_*"):
        pid = re.search(r"faketime_(?:sem|shm)_(\d+)$", path)
        if pid and not os.path.exists(f"/proc/{pid[1]}"):
            os.unlink(path)
