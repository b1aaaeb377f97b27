"""idem doctor: each thing that is wrong is found, with what to do; mended, it is gone."""

import glob
import json
import os
import re
import shutil
import subprocess
import time

import dynamo
from checks import grades, server
from files import read, write
from tap import PROGRAM, TOP, Idem, environment, equal, main, note, test

AWS = {name: value for name, value in dynamo.environment().items() if name.startswith("AWS_")}
HOST = {"clock"}  # Of the machine that runs the tests.


def doctor(store, env=None):
    done = subprocess.run(
        [PROGRAM, "doctor", "--json"],
        env=environment({"IDEM_STORE": store.store, **AWS, **(env or {})}),
        capture_output=True,
    )
    answer = json.loads(done.stdout)
    equal(answer["usable"], done.returncode == 0)
    found = {}
    for each in answer["findings"]:
        found.setdefault(each["about"], []).append((each["grade"], each["text"], each.get("mend", "")))
        assert each["grade"] == "ok" or each["about"] in ("audit", "backups", "store") or each.get("mend"), each
    wrong = {about: each for about, each in grades(found).items() if about not in HOST}
    return done.returncode, wrong, found


@test
def a_kind_without_a_check_is_skipped():
    """A kind of store that has no check is no fault of what doctor looks at; the check
    alone is a usage error."""
    store = Idem("memory:")
    status, wrong, found = doctor(store)
    equal((status, list(wrong)), (0, ["store"]))
    equal(found["store"], [("skip", "memory: stores have no check of their own", "")])
    alone = store("store", "check")
    equal((alone.status, alone.stdout), (64, b""))
    equal(alone.stderr, b"idem: memory: stores have no check of their own; idem doctor checks all else\n")


@test
def nothing_is_wrong_with_a_sound_store():
    """A store that is as it should be has no complaint but the host's own."""
    store = Idem()
    equal(store("run", "-k", "a", "--", "true").status, 0)
    status, wrong, found = doctor(store, {"IDEM_MESSAGE_ID": "1", "IDEM_FENCE": "2"})
    equal((status, wrong), (0, {}))
    assert {"version", "clock", "environment", "journal", "audit", "file", "time", "work"} <= set(found)


@test
def what_is_wrong_is_found():
    """Each planted defect is found, in the place it is in, and nothing else."""
    store = Idem()
    equal(store("run", "-k", "a", "--", "true").status, 0)
    equal(store("begin", "-k", "late", "--expect", "1ms", "--lease", "1h").status, 0)
    time.sleep(0.05)
    late = {"work": ["warn"]}
    equal(doctor(store)[:2], (0, late))
    equal(store("resolve", "late", "--force", "--release", "--reason", "x").status, 0)

    os.chmod("idem.db", 0o644)
    equal(doctor(store)[:2], (0, {"mode": ["warn"]}))
    os.chmod("idem.db", 0o600)
    plants = [
        ({"IDEM_STROE": "x"}, {"environment": ["warn"]}, 0),
        ({"IDEM_AUDIT_LOG": "letter/audit.log"}, {"audit": ["bad"]}, 78),
        ({"IDEM_AUDIT_LOG": "gone/audit.log"}, {"audit": ["bad"]}, 78),
        ({"IDEM_AUDIT_LOG": "gone/deep/audit.log"}, {"audit": ["bad"]}, 78),
        ({"IDEM_AUDIT_LOG": "torn"}, {"audit": ["bad"]}, 78),
        ({"IDEM_AUDIT_LOG": "link"}, {"audit": ["bad"]}, 78),
        ({"IDEM_AUDIT_LOG": "off"}, {"audit": ["warn"]}, 0),
        ({"IDEM_METER": "letter"}, {"meter": ["warn"]}, 0),
        ({"IDEM_METER": "gone/meter"}, {"meter": ["warn"]}, 0),
        ({"IDEM_METER": "gone/deep/meter"}, {"meter": ["warn"]}, 0),
        ({"IDEM_JOURNAL_DIR": "letter"}, {"journal": ["bad"]}, 78),
        ({"IDEM_JOURNAL_DIR": "torn"}, {"journal": ["warn"]}, 0),
    ]
    write("letter", "dear aunt")
    os.mkdir("torn", 0o700)
    write("torn/x.idj", "torn")
    os.symlink("elsewhere", "link")
    for env, wanted, status in plants:
        got = doctor(store, env)
        equal((env, got[0], got[1]), (env, status, wanted))
        if wanted == {"audit": ["bad"]}:
            decided = store("resolve", "late", "--force", "--release", "--reason", "x", env=env)
            equal((env, decided.status), (env, 77))
    # The directories of the usual log are made with it.
    usual = {"XDG_STATE_HOME": os.path.abspath("gone/deep"), "IDEM_AUDIT_LOG": ""}
    equal(doctor(store, usual)[:2], (0, {}))
    equal(store("begin", "-k", "usual", "--lease", "1h").status, 0)
    equal(store("resolve", "usual", "--force", "--release", "--reason", "x", env=usual).status, 0)
    shutil.rmtree("gone")
    lost = {"IDEM_AUDIT_LOG": os.path.abspath("gone/audit.log")}
    said = f"cannot write {lost['IDEM_AUDIT_LOG']}: its directory does not exist; no decision can be made"
    equal(doctor(store, lost)[2]["audit"][0][1], said)
    _, _, found = doctor(store, {"IDEM_STROE": "x"})
    equal(found["environment"][0][2], "Did you mean IDEM_STORE.")
    equal(doctor(store)[:2], (0, {}))
    os.rename("idem.db", "gone.db")
    status, wrong, _ = doctor(store)
    equal((status, wrong), (78, {"file": ["bad"]}))
    note(f"{len(plants) + 3} defects, each found and nothing else")


@test
def a_table_is_looked_at_too():
    """On a table of DynamoDB it looks at table and rights as well as at this host."""
    with server("dynoxide") as (_, url):
        store = Idem(url)
        status, wrong, _ = doctor(store)
        assert status != 0 and wrong["table"] == ["bad"], wrong
        equal(store("store", "create", env=AWS).status, 0)
        status, _, found = doctor(store)
        equal((status, found["work"][0][0], found["journal"][0][0]), (0, "ok", "ok"))


@test
def variables_that_are_read_are_known():
    """Each variable that the source of the commands reads, those that idem sets for others,
    and that of the clients are none that nothing reads; another is, and that is said."""
    names = set()
    for path in glob.glob(os.path.join(TOP, "cli", "**", "*.c"), recursive=True):
        names |= set(re.findall(r'getenv\("(IDEM_\w+)"', read(path)))
    assert len(names) > 8 and "IDEM_METER" in names, names
    names |= {"IDEM_KEY", "IDEM_LAMBDA_WAIT", "IDEM_MESSAGE_ID", "IDEM_PROGRAM"}
    values = {"IDEM_LOG_KEYS": "clear", "IDEM_STORE_TIMEOUT": "5s"}
    env = {name: values.get(name, os.path.abspath("x")) for name in names - {"IDEM_STORE", "IDEM_TOKEN"}}
    store = Idem()
    equal(store("store", "create").status, 0)
    said = store("doctor", env=env).stdout.decode()
    assert "ok    environment: " in said, said
    odd = store("doctor", env={"IDEM_QQQQQQQQQQQQ": "1"}).stdout.decode()
    assert "IDEM_QQQQQQQQQQQQ is set, but no program reads it; mend: Unset it" in odd, odd


if __name__ == "__main__":
    main()
