"""Who is whose child, as /proc has it."""


def children(pid):
    """The processes that @pid has started; none, where it has ended."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


def descendants(pid):
    """Its children, and theirs."""
    own = children(pid)
    return own + [below for child in own for below in descendants(child)]
