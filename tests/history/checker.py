"""The checker explains histories that are right, and finds those that are wrong.

Usage: checker.py CHECK SIM
"""

import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

import histories  # noqa: E402
import tap  # noqa: E402

CHECK, SIM = (Path(arg).resolve() for arg in tap.arguments())

PLANTED, WRONG = histories.written(HERE / "planted.txt")


def all_of(found):
    return "".join(line + "\n" for lines in found.values() for line in lines)


@tap.test
def right_ones_are_explained():
    """The checker explains histories that are right."""
    good, _ = histories.written(HERE / "good.txt")
    count, _, _ = histories.explained(CHECK, text=all_of(good))
    tap.equal(count, len(good))
    assert count >= 20, count


@tap.test
def planted_ones_are_found():
    """The checker finds each planted defect, at the wrong answer and not before."""
    assert len(PLANTED) >= 30, len(PLANTED)
    status, output = histories.check(CHECK, text=all_of(PLANTED))
    tap.equal(status, 1)
    print(f"{len(PLANTED)} planted defects")
    pattern = r"^BAD history (\S+), key \S+: no order explains (\S+),"
    found = dict(re.findall(pattern, output, re.M))
    tap.equal((found, set(WRONG)), (WRONG, set(PLANTED)))


@tap.test
def an_explanation_is_short():
    """The explanation of a long history has only the answers that contradict each other."""
    lines = ["history long"]
    for n in range(200):
        lines.append(f"call g{n} {n} k get\nret g{n} {n}.5 NOTFOUND")
    for line in PLANTED["stale-completion-accepted"][1:]:
        kind, name, time, rest = line.split(" ", 3)
        lines.append(f"{kind} {name} {int(time) + 1000} {rest}")
    status, output = histories.check(CHECK, text="\n".join(lines) + "\n")
    tap.equal(status, 1)
    shown = re.findall(r"^    [\d.]+ \.\.\. [\d.]+  (\S+):", output, re.M)
    assert "c" in shown and len(shown) <= 3, output


@tap.test
def parts_are_merged():
    """Files of several processes make one history; a line that was cut short is skipped."""
    Path("1").write_text(
        "call a 0 k begin policy=rerun lease=2000 retention=9000\n"
        "ret a 1 STARTED fence=7\n"
        "call c 9 k complete nonce=a fence=7 content=x\n"
        "ret c 9.5 LO"
    )
    Path("2").write_text("call b 10 k get\nret b 11 OK status=completed content=x\n")
    tap.equal(histories.explained(CHECK, "--merge", "1", "2")[:2], (1, 3))
    tap.equal(histories.check(CHECK, "--merge", "2")[0], 1)


@tap.test
def what_cannot_be_read_is_refused():
    """The checker refuses a line that is not an event, and prints its number."""
    for line in (
        "jump a 0 k begin",
        "call a 0 k",
        "call a 0 k dance",
        "call a zero k get",
        "call a 0 - get",
        "call a 0 k purge",
        "call a 0 k begin lease=long",
        "call a 0 k begin what=1",
        "call a 0 k begin lease",
        "ret z 1 OK",
        "call a 0 k get\nret a 1 STARTED",
        "call a 0 k begin\nret a 1 OK",
        "call a 5 k get\nret a 1 OK",
        "call a 0 k get\ncall a 1 k get",
        "call a 0 k get\nret a 1 OK\nret a 2 OK",
        "history h slow=1",
    ):
        status, output = histories.check(CHECK, text=line + "\n")
        number = str(line.count("\n") + 1)
        tap.equal((status, output.split(":")[:2]), (64, ["-", number]))


# ---- Random mistakes ----


def fields(line):
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def with_field(line, name, value):
    return re.sub(rf"\b{name}=\S+", f"{name}={value}", line)


class Story:
    """One history, in which a test changes one place."""

    def __init__(self, text):
        self.head, *self.lines = text.splitlines()
        self.calls = {l.split()[1]: l for l in self.lines if l.startswith("call ")}

    def answers(self, *words, verbs=None):
        """Return the places of answers that are one of @words, to @verbs."""
        return [
            at
            for at, line in enumerate(self.lines)
            if line.startswith("ret ")
            and line.split()[3] in words
            and (not verbs or self.calls[line.split()[1]].split()[4] in verbs)
        ]


def pick(rng, places):
    return rng.choice(places) if places else None


def forget_claim(story, rng):
    """A claim that was STARTED was never made."""
    at = pick(rng, story.answers("STARTED"))
    if at is not None:
        name = story.lines[at].split()[1]
        keep = lambda line: line.split()[1] != name  # noqa: E731
        story.lines = list(filter(keep, story.lines))
    return at


def change_fence(story, rng):
    """An answer shows the fence before or after."""
    at = pick(rng, story.answers("STARTED", "REPLAY", "BUSY"))
    if at is not None:
        fence = int(fields(story.lines[at])["fence"]) + rng.choice((-1, 1))
        story.lines[at] = with_field(story.lines[at], "fence", fence)
    return at


def change_attempts(story, rng):
    """An answer counts one attempt more or less."""
    at = pick(rng, story.answers("STARTED", "REPLAY", "BUSY"))
    if at is not None:
        attempts = int(fields(story.lines[at])["attempts"]) + rng.choice((-1, 1))
        story.lines[at] = with_field(story.lines[at], "attempts", attempts)
    return at


def change_content(story, rng):
    """A replay brings other bytes."""
    at = pick(rng, [a for a in story.answers("REPLAY") if "content=" in story.lines[a]])
    if at is not None:
        story.lines[at] = with_field(story.lines[at], "content", "other")
    return at


def change_left(story, rng):
    """BUSY shows that the lease ends a second sooner or later."""
    if "clock=none" in story.head:
        return None  # Then the mistake cannot show.
    places = story.answers("BUSY")
    at = pick(rng, [a for a in places if fields(story.lines[a])["left"].isdigit()])
    if at is not None:
        left = int(fields(story.lines[at])["left"])
        left += rng.choice((-1000, 1000)) if left >= 1000 else 1000
        story.lines[at] = with_field(story.lines[at], "left", left)
    return at


def change_word(story, rng):
    """An answer reports success for loss, or loss for success."""
    at = pick(rng, story.answers("OK", "LOST", verbs=("complete", "fail", "release")))
    if at is not None:
        old = story.lines[at].split()[3]
        new = {"OK": "LOST", "LOST": "OK"}[old]
        story.lines[at] = story.lines[at].replace(f" {old}", f" {new}", 1)
    return at


def change_verdict(story, rng):
    """An answer has another verdict."""
    at = pick(rng, story.answers("STARTED", "REPLAY", "BUSY", "UNKNOWN", "FAILED"))
    if at is not None:
        words = story.lines[at].split()
        others = {"STARTED", "REPLAY", "BUSY", "UNKNOWN", "FAILED", "MISMATCH"}
        words[3] = rng.choice(sorted(others - {words[3]}))
        shown = [w for w in words if w.split("=")[0] in ("fence", "store")]
        story.lines[at] = " ".join(words[:4] + shown)
    return at


def swap_answers(story, rng):
    """Two callers get each other's answer."""
    first = pick(rng, story.answers("STARTED", "REPLAY", "BUSY"))
    if first is None:
        return None
    key = story.calls[story.lines[first].split()[1]].split()[3]
    word = story.lines[first].split()[3]
    others = [
        at
        for at in story.answers("STARTED", "REPLAY", "BUSY")
        if story.calls[story.lines[at].split()[1]].split()[3] == key
        and story.lines[at].split()[3] != word
    ]
    second = pick(rng, others)
    if second is not None:
        one, two = (story.lines[at].split() for at in (first, second))
        keep = lambda w: w.split("=")[0] == "store"  # noqa: E731
        for at, mine, other in ((first, one, two), (second, two, one)):
            told = [w for w in other[3:] if not keep(w)]
            times = [w for w in mine[3:] if keep(w)]
            story.lines[at] = " ".join(mine[:3] + told + times)
    return second


# Each kind of mistake, and how many of a hundred the checker must find at least.
MISTAKES = {
    forget_claim: 85,
    change_fence: 98,
    change_attempts: 98,
    change_content: 98,
    change_left: 85,
    change_word: 95,
    change_verdict: 95,
    swap_answers: 95,
}


@tap.test
def random_mistakes_are_found():
    """The checker finds most of the mistakes that are made at random in right histories."""
    rng = random.Random(1)
    schedules = 20000 if tap.LONG else 2000
    args = ["--mode", "embedded", "--schedules", str(schedules), "--history", "h"]
    subprocess.run([SIM, *args], check=True, capture_output=True)
    text = Path("h.0").read_text()
    made = Counter()
    with open("changed", "w", encoding="utf-8") as out:
        for story in map(Story, text.split("history ")[1:]):
            mistake = rng.choice(list(MISTAKES))
            if mistake(story, rng) is not None:
                made[mistake] += 1
                seed, rest = story.head.split(" ", 1)
                out.write(f"history {mistake.__name__}.{seed} {rest}\n")
                out.writelines(line + "\n" for line in story.lines)
    status, output = histories.check(CHECK, "--quiet", "--budget", 50000, "changed")
    tap.equal(status, 1)
    names = (name.split(".")[0] for name in histories.bad_names(output))
    found = Counter(names)
    low = []
    for mistake, least in MISTAKES.items():
        rate = 100 * found[mistake.__name__] / made[mistake]
        counts = f"{found[mistake.__name__]} of {made[mistake]}"
        print(f"{mistake.__doc__} {counts} found, {rate:.1f} %")
        if rate < least:
            low.append(mistake.__name__)
    everything = sum(made.values())
    rate = 100 * sum(found.values()) / everything
    print(f"All: {sum(found.values())} of {everything} found, {rate:.1f} %")
    tap.equal(low, [])


if __name__ == "__main__":
    tap.main()
