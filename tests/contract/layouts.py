"""The contract on a table of another library's, which cannot hold all of it.

Usage: layouts.py CONTRACT LAYOUT

docs/layouts.md lists which tests of the contract a layout gives up, and why. Exactly these
must fail: a test that fails without being listed fails here, and so does one that is listed
and holds.
"""

import os
import re
import subprocess
import sys

import tap

# Layouts that resemble others, so that only --long runs them.
LONG_ONLY = {
    "powertools-python": "named",
    "powertools-typescript": "named",
}
# powertools-typescript, with another name for each of its attributes.
SECTION = {"named": "powertools-typescript"}

DOCUMENT = os.path.join(tap.TOP, "docs", "layouts.md")


def given_up(layout):
    """Return the tests in the list of the section whose heading names @layout."""
    with open(DOCUMENT, encoding="utf-8") as f:
        sections = re.split(r"^## ", f.read(), flags=re.M)
    found = [s for s in sections if f"`layout={layout}`" in s.splitlines()[0]]
    assert len(found) == 1, f"{DOCUMENT} has {len(found)} sections for {layout}"
    rows = re.findall(r"^\|.*\|([^|]*)\|$", found[0], flags=re.M)
    return {name for row in rows for name in re.findall(r"`(\w+/\w+)`", row)}


def results_of(output):
    """Return [(name, True or False, why it was skipped or None)] of the TAP in @output."""
    found = []
    for line in output.splitlines():
        told = re.match(r"(not )?ok \d+ - (\w+/\w+)(?: # SKIP (.*))?", line)
        if told:
            found.append((told[2], told[1] is None, told[3]))
    return found


def main():
    program, layout = sys.argv[1:]
    if layout in LONG_ONLY and not tap.LONG:
        print(f"1..0 # SKIP it is much like {LONG_ONLY[layout]}: see --long")
        return
    exceptions = given_up(SECTION.get(layout, layout))
    command = tap.watched([program, f"dynamodb-{layout}"])
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    results = results_of(done.stdout)
    print(f"1..{len(results) + 1}")
    failures = 0
    for number, (name, held, skipped) in enumerate(results, 1):
        why = None
        if not held and name not in exceptions:
            why = "it fails, and docs/layouts.md does not say that it is given up"
        if held and not skipped and name in exceptions:
            why = "it holds, and docs/layouts.md says that it is given up"
        tap.report(sys.stdout, number, f"{layout}: {name}", why, skipped)
        failures += why is not None
    unknown = exceptions - {name for name, *_ in results}
    why = f"there are no such tests: {sorted(unknown)}" if unknown else None
    tap.report(sys.stdout, len(results) + 1, "what is given up is in the contract", why)
    print(f"# {len(results)} tests, {len(exceptions)} of them given up")
    if failures or why:
        print(done.stdout, file=sys.stderr)
    sys.exit(1 if failures or why or len(results) < 50 else 0)


main()
