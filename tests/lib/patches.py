"""Patches that plant a defect, and the lines above their diffs.

    One sentence that says the defect.
    Tests: core/decide_begin
    --- a/src/core/decide_begin.c
    ...

The lines with a colon differ by the user: tests/sim/mutants.py and tools/mutants each
document their own. Those of tests/fuzz/fuzz.py have none.
"""

import re
import shutil
import subprocess

_DIFF = re.compile(r"^(?:diff |--- )", re.M)
_FIELD = re.compile(r"^([A-Z][a-z]+): (.+(?:\n .+)*)$", re.M)


def head(patch):
    """Return the lines above the diff of @patch, a path."""
    return _DIFF.split(patch.read_text(encoding="utf-8"), maxsplit=1)[0]


def fields(patch):
    """Return {name: value} of the lines "Name: value" above the diff; a line that
    begins with a space continues the one before it."""
    found = _FIELD.findall(head(patch))
    return {name: " ".join(value.split()) for name, value in found}


def sentence(patch):
    """Return what is wrong with the tree once @patch is applied."""
    return " ".join(_FIELD.sub("", head(patch)).split())


def names(patch):
    """Return the files that @patch changes."""
    return re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(encoding="utf-8"), re.M)


def apply(patch, tree, *options):
    """Apply @patch to @tree; return why it does not apply, or None.

    With "--dry-run" among @options nothing is changed.
    """
    command = ["patch", "-p1", "--batch", "--forward", "--silent", "--no-backup-if-mismatch"]
    command += ["-r", "-", "-d", tree, "-i", patch, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip() if done.returncode else None


def plant(patch, top, tree):
    """Copy the files below @top that @patch changes into @tree, and apply it there; return
    their names."""
    for name in names(patch):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(top / name, tree / name)
    why = apply(patch, tree)
    assert why is None, "it no longer applies:\n" + why
    return names(patch)
