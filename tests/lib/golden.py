"""Files with the expected output of commands. IDEM_REGEN=1 writes them anew; read the
difference before you keep it."""

import difflib
import os
import sys

from files import read, write

REGEN = os.environ.get("IDEM_REGEN") == "1"


def difference(wanted, seen):
    """Return the lines in which they differ."""
    lines = (text.splitlines() for text in (wanted, seen))
    return "\n".join(difflib.unified_diff(*lines, "golden", "now", lineterm=""))


def check(path, seen):
    """Fail with the lines in which the file differs from @seen."""
    found = difference(read(path) if os.path.exists(path) else "", seen)
    if REGEN and found:
        print(found, file=sys.stderr)
        write(path, seen)
    else:
        assert not found, found
