"""What is in a journal."""

import os


def kept(directory, *endings):
    """The names of its entries."""
    names = os.listdir(directory) if os.path.isdir(directory) else []
    return sorted(name for name in names if not endings or name.endswith(endings))


def written(directory):
    """Those that wait and have their bytes. The file is made first: who kills its writer has
    to wait for these."""
    return [n for n in kept(directory, ".idj") if os.path.getsize(os.path.join(directory, n))]
