"""Write units by the rules of the service, for what its stand-ins do not say.

    units.of_refusal(item)      # of a conditional write that @item stood against

An item's size is the sum of the lengths of its names and values; a write takes a
unit for each KB of it, begun ones whole. A refused write is billed by the item
that stands in its way, and takes one unit where there is none.
"""

import base64
import math


def number_size(text):
    """A byte for each two digits that count, and one."""
    digits = text.lstrip("-").replace(".", "").strip("0")
    return (len(digits) + 1) // 2 + 1


def value_size(value):
    ((kind, inner),) = value.items()
    if kind == "S":
        return len(inner.encode())
    if kind == "B":
        return len(base64.b64decode(inner))
    if kind == "N":
        return number_size(inner)
    if kind in ("NULL", "BOOL"):
        return 1
    if kind == "L":
        return 3 + sum(1 + value_size(each) for each in inner)
    if kind == "M":
        return 3 + sum(
            1 + len(name.encode()) + value_size(each) for name, each in inner.items()
        )
    raise ValueError(f"no size of {kind} is known")


def item_size(item):
    return sum(len(name.encode()) + value_size(v) for name, v in item.items())


def of_refusal(item):
    return max(1, math.ceil(item_size(item) / 1024))
