"""Who is there, and whose child it is."""

import os


def stats():
    """{pid: (parent, name, state)} of all processes."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                before, _, after = f.read().rpartition(")")
        except OSError:
            continue
        state, parent = after.split()[:2]
        found[int(entry)] = (int(parent), before.partition("(")[2], state)
    return found


def below(pid):
    """{pid: name} of the children of @pid, and of theirs."""
    everybody = stats()
    family, found = {pid}, {}
    for _ in range(3):
        for child, (parent, name, _) in everybody.items():
            if parent in family and child not in family:
                family.add(child)
                found[child] = name
    return found


def is_stopped(pid):
    """True if @pid, or one below it, was stopped by a signal."""
    everybody = stats()
    return any(everybody.get(p, (0, "", ""))[2] == "T" for p in (pid, *below(pid)))


def marked(marker):
    """The processes with @marker in their environment, zombies left out."""
    found = []
    for pid, (_, name, state) in stats().items():
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if marker in f.read() and state != "Z":
                    found.append((pid, name))
        except OSError:
            continue
    return found
