"""A transfer and its record in one transaction, from several languages, under kills."""

import signal

from accounts import Accounts
from languages import LANGUAGES, environment
from tap import LONG, each, equal, main, note, run, test

KILLS = 1000 if LONG else 5
AMOUNT = 3


class Bank(Accounts):
    """A bank, and the programs that transfer money in it."""

    def __init__(self, program, name, fresh=True):
        super().__init__(fresh=fresh)
        self.command = lambda kill_at: program(name, kill_at)
        # better-sqlite3 shows fewer steps than a program that SQLite itself tells.
        self.stride = 1 if name.endswith(".js") else 2

    def transfer(self, key, kill_at=0, amount=AMOUNT):
        """Run the program; it dies at its @kill_at-th step."""
        command = self.command(kill_at) + [self.path, key, "ann", "bob", str(amount)]
        return run(command, environment(kill_at))


def killed_everywhere(bank, look):
    """Transfer with one key after the other, killed a step further each time until the
    program reaches its end, and again from the start until there were KILLS. @look is
    told of each key. Return the keys, each of which has its receipt then."""
    keys, kills, step = [], 0, 0
    equal(bank.transfer("first").status, 0)
    while step > 0 or kills < KILLS:
        step += 1 if LONG else bank.stride
        key = f"k{len(keys)}"
        keys.append(key)
        got = bank.transfer(key, kill_at=step)
        look(key)
        if got.status == -signal.SIGKILL:
            kills += 1
        else:
            equal((key, got.status, got.stderr), (key, 0, b""))
            assert step > 8, f"only {step} steps"
            step = 0
        equal(bank.transfer(key).status, 0)
    note(f"killed {kills} times")
    return ["first", *keys]


@each(LANGUAGES)
def kills_double_nothing(language):
    """Killed between any two statements, the example leaves transfer and record, or neither,
    and transfers nothing twice."""
    program, example, _ = LANGUAGES[language]
    bank = Bank(program, example)
    there = {}

    def look(key):
        """Effect and record are both there, or neither is."""
        effects, (completed, others) = bank.effects(), bank.completed()
        equal((effects, others), (completed, 0))
        there[key] = effects[key]

    keys = killed_everywhere(bank, look)
    bank.assert_once(keys)
    again = bank.transfer(keys[-1])
    equal(again.stdout, bank.transfer(keys[-1]).stdout)
    equal(bank.transfer("first").stdout, b"transfer 1: 3 from ann to bob\n")
    equal(bank.transfer("first", amount=4).status, 65)
    bank.assert_once(keys)
    without = list(there.values()).count(0)
    assert without > 0 and without < len(there), there
    note(f"{without} left neither, {len(there) - without} left both")


@each(LANGUAGES)
def control_doubles(language):
    """The control: a table of keys in a commit of its own drifts from the ledger."""
    program, _, control = LANGUAGES[language]
    bank = Bank(program, control)
    killed_everywhere(bank, lambda key: None)
    twice = [key for key, n in bank.effects().items() if n > 1]
    assert twice, "nothing was transferred twice"
    note(f"{len(twice)} keys were transferred twice")


@test
def one_language_replays_the_other():
    """A key that one language has transferred with is replayed by the others."""
    receipts = set()
    for writer in LANGUAGES:
        for reader in writer, *LANGUAGES:
            bank = Bank(*LANGUAGES[reader][:2], fresh=not receipts)
            got = bank.transfer(f"key of {writer}")
            equal((got.status, got.stderr), (0, b""))
            receipts.add(got.stdout)
    equal(len(receipts), len(LANGUAGES))
    bank.assert_once([f"key of {writer}" for writer in LANGUAGES])


if __name__ == "__main__":
    main()
