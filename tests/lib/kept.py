"""What is in a journal."""

import os


def kept(directory, *endings):
    """The names of its entries."""
    names = os.listdir(directory) if os.path.isdir(directory) else []
    return sorted(name for name in names if not endings or name.endswith(endings))
