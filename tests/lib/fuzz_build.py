"""The build in which all that is shipped counts its branches and is watched by the
address and the undefined-behavior sanitizer: for fuzz targets and some unit tests.

Both tests that use it may come first, and run beside each other: a lock is held while
it is set up and built.
"""

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
# An hour is worth the time of an optimizer and the lines of a stack, and a second is not:
# a finding is kept, and met again in a build that has them.
LONG = os.environ.get("IDEM_TEST_LONG") == "1"
OPTIMIZATION = "1" if LONG else "0"
SETUP = "-Dfuzz=true -Dtests=enabled -Db_lundef=false -Db_sanitize=address,undefined"
SETUP += f" -Doptimization={OPTIMIZATION} -Ddebug=false -Dc_args=-g{OPTIMIZATION}"


def compiler():
    """Return clang where it has libFuzzer; None: it has not, or is not there."""
    for name in "clang-14", "clang":
        path = shutil.which(name)
        if path is None:
            continue
        command = [path, "-fsanitize=fuzzer", "-x", "c", "-", "-o", os.devnull]
        empty = "int LLVMFuzzerTestOneInput(void) { return 0; }"
        if subprocess.run(command, input=empty.encode(), capture_output=True).returncode:
            continue
        return path
    return None


def must_run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _is_set_up(folder):
    """True if @folder has the unit tests, and is optimized enough."""
    options = json.loads((folder / "meson-info/intro-buildoptions.json").read_text())
    value = {option["name"]: option["value"] for option in options}
    return value["tests"] == "enabled" and value["optimization"] >= OPTIMIZATION


def build(folder, targets):
    """Build in @folder, with compiler(), what @targets gives once it is set up: the
    names of targets. Only what has changed is built anew."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "build.ninja").exists():
            # ccache, if Meson finds it, is used for this too.
            clang = compiler()
            cc = f"ccache {clang}" if shutil.which("ccache") else clang
            command = ["meson", "setup", folder, TOP, *SETUP.split()]
            if shutil.which("ld.gold"):  # It takes a third of the time.
                command += ["-Dc_link_args=-fuse-ld=gold"]
            must_run(command, env={**os.environ, "CC": cc})
        elif not _is_set_up(folder):
            must_run(["meson", "configure", folder, *SETUP.split()])
            must_run(["ninja", "-C", folder, "build.ninja"])
        must_run(["ninja", "-C", folder, "-j", str(os.cpu_count()), *targets()])
