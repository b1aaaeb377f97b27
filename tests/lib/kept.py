"""What is in a journal."""

import os


def kept(directory, *endings):
    """The names of its entries, as idem says them: paths below @directory."""
    names = []
    for where, _, files in os.walk(directory):
        for name in files:
            path = os.path.relpath(os.path.join(where, name), directory)
            if path != "usage" and (not endings or name.endswith(endings)):
                names.append(path)
    return sorted(names)
