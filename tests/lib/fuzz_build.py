"""The build for fuzz targets and some unit tests, in which all shipped code counts its
branches, and runs under the address and the undefined-behavior sanitizer.

Two tests use it, in either order and at the same time, so a lock is held while it is set
up and built.
"""

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
# Optimized code and the lines of a stack pay in a run of an hour, and not in one of a
# second, whose findings are kept, and run again in a build that has the lines.
LONG = os.environ.get("IDEM_TEST_LONG") == "1"
OPTIMIZATION = "1" if LONG else "0"
SETUP = "-Dfuzz=true -Dtests=enabled -Db_lundef=false -Db_sanitize=address,undefined"
SETUP += f" -Doptimization={OPTIMIZATION} -Ddebug=false -Dc_args=-g{OPTIMIZATION}"


def compiler():
    """Return clang, or None if it is missing or has no libFuzzer."""
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
    """Set up @folder with compiler(), and build the targets whose names @targets() then
    returns. Only what has changed is built anew."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "build.ninja").exists():
            # Meson finds ccache by itself, and uses it for this, too.
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
