"""The entries of a journal."""

import os


def kept(directory, *endings):
    """Return the names of the entries."""
    names = os.listdir(directory) if os.path.isdir(directory) else []
    return sorted(name for name in names if not endings or name.endswith(endings))


def written(directory):
    """Return the entries that wait and have their bytes. A writer makes the file first, so a
    test that kills the writer has to wait for the bytes."""
    return [n for n in kept(directory, ".idj") if os.path.getsize(os.path.join(directory, n))]
