"""The machine: a line for the head of a table."""

import os
import platform
import subprocess
import time


def file_system(path):
    """Its type, and how it is mounted."""
    found = subprocess.run(
        ["findmnt", "--noheadings", "--output", "FSTYPE,OPTIONS", "--target", path],
        capture_output=True,
        text=True,
        check=True,
    )
    kind, how = found.stdout.split(maxsplit=1)
    return f"{kind} ({how.strip()})"


def describe(place):
    """Date, processors, file system, kernel."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in open("/proc/cpuinfo", encoding="utf-8")
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return [
        time.strftime("%Y-%m-%d"),
        f"{os.cpu_count()} processors ({model})",
        file_system(place),
        f"Linux {platform.release()}",
    ]
