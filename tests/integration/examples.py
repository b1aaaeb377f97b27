"""The examples for cron, systemd, CI and migrations, run as they stand."""

import functools
import glob
import json
import os
import re
import shlex
import shutil
import sqlite3

import files
from files import write
from patience import PATIENCE, until
from tap import PROGRAM, TOP, Idem, each, equal, kill_session, main, run, skip, start, test

EXAMPLES = os.path.join(TOP, "examples")


read = functools.partial(files.read, EXAMPLES)

def ledger(name="ledger"):
    """The lines that work wrote: one for each effect."""
    try:
        with open(name, encoding="utf-8") as f:
            return f.read().split()
    except FileNotFoundError:
        return []


class Host:
    """A host with idem and the work that the examples call, in ./bin."""

    def __init__(self, *works):
        self.bin = os.path.abspath("bin")
        self.idem = Idem()
        os.makedirs(self.bin)
        os.symlink(PROGRAM, os.path.join(self.bin, "idem"))
        for work in works:
            self.work(work, f"echo {work} >>{os.path.abspath('ledger')}")

    def work(self, name, script):
        write(os.path.join(self.bin, name), f"#!/bin/sh\n{script}\n", 0o755)

    def env(self, **more):
        path = self.bin + ":" + os.environ["PATH"]
        return {"PATH": path, "IDEM_STORE": self.idem.store, **more}

    def run(self, *command, **more):
        return run(command, self.env(**more))

    def start(self, *command, **more):
        return start(command, self.env(**more))

    def at_once(self, n, *command):
        """The results of @n processes that start together."""
        processes = [self.start(*command) for _ in range(n)]
        outputs = [process.communicate(timeout=PATIENCE) for process in processes]
        return [(p.returncode, *o) for p, o in zip(processes, outputs)]


# ---- cron --------------------------------------------------------------------

FIELD = r"(?:\*|\d+(?:-\d+)?)(?:/\d+)?"


def crontab():
    """Return the variables and [schedule, command] of the example."""
    variables, jobs = {}, []
    for line in read("cron/crontab").splitlines():
        if not line or line.startswith("#"):
            continue
        if match := re.fullmatch(r"(\w+)=(.*)", line):
            variables[match[1]] = match[2]
            continue
        match = re.fullmatch(rf"((?:{FIELD} +){{5}})(.*)", line)
        assert match, line
        # cron takes a plain % for a newline, and hands on what is escaped.
        assert not re.search(r"(?<!\\)%", match[2]), line
        jobs.append([match[1].split(), match[2].replace(r"\%", "%")])
    return variables, jobs


def cron_command(word):
    (command,) = [command for _, command in crontab()[1] if word in command.partition(" --missing")[0]]
    return command


@test
def cron_tries_again_what_did_not_begin():
    """A backup that exits with 75 is tried at the next hour, and then no more."""
    host = Host("backup")
    effect = f"echo backup >>{os.path.abspath('ledger')}"
    host.work("backup", f"test -e up || exit 75; {effect}")
    host.run("sh", "-c", cron_command("backup"))
    equal(ledger(), [])
    write("up", "")
    for _ in range(2):
        equal(host.run("sh", "-c", cron_command("backup")).status, 0)
    equal(ledger(), ["backup"])


@test
def cron_says_what_needs_a_person():
    """An interrupted sending of invoices is not repeated, and is listed."""
    host = Host("send-invoices")
    host.work("send-invoices", "kill -9 $$")
    host.run("sh", "-c", cron_command("send-invoices"))
    equal(host.run("sh", "-c", cron_command("send-invoices")).status, 76)
    assert b"invoices@" in mailed(host), "an interrupted job is told"
    equal(mailed(host), b"")


def mailed(host):
    """What cron would mail of the line that looks."""
    done = host.run("sh", "-c", cron_command("watch"))
    equal(done.stdout, b"")
    return done.stderr


@test
def cron_mails_what_failed():
    """A job that failed at night is in one mail, whatever follows its failure: none
    ends with a zero status and no word."""
    host = Host()
    for job in ("backup", "send-invoices", "report"):
        host.work(job, "exit 3")
        equal(host.run("sh", "-c", cron_command(job)), (3, b"", b""))
    mail = mailed(host)
    told = sorted(re.sub(r"@20[-\d]+", "", line) for line in mail.decode().splitlines())
    show = f"see: idem show --store={host.idem.store}"
    equal(told, [f'"invoices" failed and waits for a person; {show} invoices',
                 f'"report" ended with exit status 3; {show} report',
                 *(f"no success of {job}@* within 30h; the last: none on record; "
                   f"see: idem list --store={host.idem.store} --match '{job}@*'" for job in ("backup", "report"))])
    equal(mailed(host), b"")

    # The backup is tried again, and told of once its half hour is over.
    equal(host.run("sh", "-c", cron_command("backup").replace("30m", "1s")).status, 3)
    until(lambda: b"@20" in (mail := mailed(host)) and b" is due for a retry, and no caller has retried it in time" in mail)
    for job in ("backup", "send-invoices", "report"):
        host.work(job, f"echo {job} >>{os.path.abspath('ledger')}")
        host.run("sh", "-c", cron_command(job))
    equal(ledger(), ["backup"])

    # A person mends the others.
    keys = [json.loads(line)["key"] for line in host.idem("list", "--failed", "--json").stdout.splitlines()]
    equal(len(keys), 2)
    for key in keys:
        equal(host.idem("reopen", key, "--reason", "mended").status, 0)
    for job in ("backup", "send-invoices", "report"):
        equal(host.run("sh", "-c", cron_command(job)).status, 0)
    equal(sorted(ledger()), ["backup", "report", "send-invoices"])
    equal(mailed(host), b"")


@test
def the_block_of_the_readme_mails_what_failed():
    """The lines of the README: a report fails without a word, and one mail says so, with
    a command that can be typed where IDEM_STORE is not set; the backup is made by the
    next hour."""
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as f:
        block = f.read().partition("### cron\n\n")[2].partition("\n\n")[0]
    lines = [line.strip() for line in block.splitlines()]
    assert lines[0].startswith("IDEM_STORE="), lines
    jobs = [re.fullmatch(rf"((?:{FIELD} +){{5}})(.*)", line)[2] for line in lines[1:]]
    backup, report, look, purge = [job.replace(r"\%", "%") for job in jobs]
    host = Host()
    for job, line in (("backup", backup), ("report", report)):
        host.work(job, "exit 3")
        equal(host.run("sh", "-c", line), (3, b"", b""))
    mail = host.run("sh", "-c", look).stderr.decode()
    key = re.search(r"report@[-\d]+", mail)[0]
    show = f"idem show --store={host.idem.store} {key}"
    missing = f"idem list --store={host.idem.store} --match 'backup@*'"
    equal(mail, f'"{key}" ended with exit status 3; see: {show}\n'
          f"no success of backup@* within 30h; the last: none on record; see: {missing}\n")
    equal(len(host.run("sh", "-c", missing, IDEM_STORE="").stdout.splitlines()), 1)
    shown = host.run("sh", "-c", show, IDEM_STORE="").stdout
    assert f"idem reopen --store={host.idem.store} --fence ".encode() in shown, shown
    for job, line, status in (("backup", backup, 0), ("report", report, 3)):
        host.work(job, "exit 0")
        equal(host.run("sh", "-c", line).status, status)
    equal(host.run("sh", "-c", look).stderr, b"")
    equal(host.run("sh", "-c", purge).status, 0)


# ---- systemd -----------------------------------------------------------------

UNITS = sorted(glob.glob(os.path.join(EXAMPLES, "systemd/*")))


def exec_start(unit):
    """The command line of a service, as systemd reads it."""
    (line,) = re.findall(r"^ExecStart=(.*)$", read("systemd/" + unit), re.M)
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line)]


@test
def units_are_understood():
    """systemd-analyze verify has nothing to say about the units."""
    if not shutil.which("systemd-analyze"):
        skip("systemd-analyze is not installed: the units are not verified")
    host = Host("backup")
    for unit in UNITS:
        name = os.path.basename(unit)
        text = read("systemd/" + name).replace("/usr/local/bin", host.bin)
        write("units/" + name, text)
    paths = [os.path.abspath(path) for path in sorted(glob.glob("units/*"))]
    equal(len(paths), 7)
    got = run(["systemd-analyze", "verify", "--man=no", *paths])
    complaints = got.stderr.decode().splitlines()
    ours = [line for line in complaints if any(p in line for p in names_of(paths))]
    if got.status != 0 and not ours:
        skip(f"systemd-analyze cannot work here: {complaints}")
    equal((ours, got.status), ([], 0))

    write("units/backup.service", read("systemd/backup.service") + "Tpye=oneshot\n")
    got = run(["systemd-analyze", "verify", "--man=no", paths[0]])
    assert b"Tpye" in got.stderr, got  # The control.


def names_of(paths):
    return [os.path.basename(path) for path in paths]


@test
def timers_start_services():
    """Each timer has a service of its name, and a calendar that can be read."""
    names = names_of(UNITS)
    timers = [name for name in names if name.endswith(".timer")]
    for name in timers:
        assert name.replace(".timer", ".service") in names, name
        (when,) = re.findall(r"^OnCalendar=(.*)$", read("systemd/" + name), re.M)
        if shutil.which("systemd-analyze"):
            got = run(["systemd-analyze", "calendar", when])
            equal((when, got.status), (when, 0))
    equal(len(timers), 3)


@test
def a_backup_that_failed_is_made_by_the_next_start():
    """The unit fails, and is started again: the backup is made."""
    host = Host()
    host.work("backup", "exit 3")
    line = [w.replace("/usr/local/bin", host.bin) for w in exec_start("backup.service")]
    equal(host.run(*line).status, 3)
    host.work("backup", f"echo backup >>{os.path.abspath('ledger')}")
    equal(host.run(*line).status, 0)
    equal(ledger(), ["backup"])


# ---- CI ----------------------------------------------------------------------


def steps_of(text):
    """Return [name, script or None] of the steps of the workflow."""
    found = []
    steps = text.partition("    steps:\n")[2]
    for part in re.split(r"^      - ", steps, flags=re.M)[1:]:
        name = re.match(r"(?:name|uses): (.*)", part)[1]
        block = re.search(r"^        run: \|\n((?: {10}.*\n|\n)*)", part, re.M)
        script = block and "".join(line[10:] for line in block[1].splitlines(True))
        found.append([name, script])
    return found


class Runner:
    """A CI system: each job has a new workspace, and a cache of one directory."""

    def __init__(self):
        self.host = Host()
        self.jobs = 0
        self.effect = None  # What ./deploy does, instead of deploying.
        steps = steps_of(read("ci/workflow.yml"))
        scripts = dict(step for step in steps if step[1])
        self.make, self.script = scripts["Make the store"], scripts["Deploy"]

    def job(self, commit, cached=True, create=False):
        self.jobs += 1
        space = os.path.abspath(f"job{self.jobs}")
        effect = f"echo $1 >>{os.path.abspath('ledger')}; echo deployed $1 in $PWD"
        write(f"{space}/deploy", f"#!/bin/sh\n{self.effect or effect}\n", 0o755)
        if cached and os.path.exists("cache"):
            shutil.copytree("cache", f"{space}/.idem")
        write(f"{space}/step.sh", (self.make if create else "") + self.script)
        store = f"sqlite:{space}/.idem/idem.db?create=no"
        env = {"GITHUB_SHA": commit, "IDEM_STORE": store}
        got = run(["env", "-C", space, "bash", "-e", "step.sh"], self.host.env(**env))
        if os.path.exists(f"{space}/.idem"):
            shutil.rmtree("cache", ignore_errors=True)
            shutil.copytree(f"{space}/.idem", "cache")
        return got


@test
def a_commit_is_deployed_once():
    """A job that is run again replays its deployment; a new commit is deployed. The
    store is made by hand, so that a cache that is lost deploys nothing."""
    runner = Runner()
    equal(runner.job("c1").status, 78)
    first = runner.job("c1", create=True)
    output = f"deployed c1 in {os.path.abspath('job2')}\n".encode()
    equal(first.status, 0)
    assert first.stdout.endswith(output), first
    first = runner.job("c1")
    equal(first[:2], (0, output))
    again = runner.job("c1")
    equal(again[:2], first[:2])
    assert b"replayed" in again.stderr, again
    equal(runner.job("c2").status, 0)
    equal(runner.job("c1")[:2], first[:2])
    equal(ledger(), ["c1", "c2"])

    equal(runner.job("c1", cached=False).status, 78)
    equal(ledger(), ["c1", "c2"])
    runner.job("c1", cached=False, create=True)  # The control.
    equal(ledger(), ["c1", "c2", "c1"])


@test
def a_deployment_that_failed_is_made_again():
    """A deployment that failed is made by the next job, which is told that it takes
    over; one that was made is not."""
    runner = Runner()
    runner.effect = "echo takeover $IDEM_TAKEOVER; exit 1"
    equal(runner.job("c1", create=True).status, 1)
    runner.effect = None
    again = runner.job("c1")
    equal(again.status, 0)
    equal(runner.job("c1")[:2], again[:2])
    equal(ledger(), ["c1"])


@test
def the_workflow_is_well_formed():
    """The workflow is YAML, with the store in the directory that is cached."""
    text = read("ci/workflow.yml")
    equal(len(steps_of(text)), 5)
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        skip("PyYAML is not installed: the workflow is not parsed")
    job = yaml.safe_load(text)["jobs"]["deploy"]
    fetch, make, _, keep = job["steps"][1:]
    equal(make["if"], "inputs.create")
    equal(fetch["with"]["path"], keep["with"]["path"])
    equal(fetch["with"]["key"], keep["with"]["key"])
    equal(keep["if"], "always()")
    assert f"}}}}/{fetch['with']['path']}/" in job["env"]["IDEM_STORE"], job["env"]


# ---- Migrations --------------------------------------------------------------

MIGRATE = os.path.join(EXAMPLES, "migrate/migrate.sh")


class Migrations:
    """A database, and two migrations that would show if they were run twice."""

    def __init__(self):
        if not shutil.which("sqlite3"):
            skip("sqlite3 is not installed")
        self.host = Host()
        self.add("001-start", "CREATE TABLE IF NOT EXISTS step (name);")
        self.add("002-more", "")

    def add(self, name, more):
        text = f"BEGIN;\n{more}\nINSERT INTO step VALUES ('{name}');\nCOMMIT;\n"
        write(f"migrations/{name}.sql", text)

    def run(self, **env):
        return self.host.run(MIGRATE, "app.db", "migrations", **env)

    def steps(self):
        db = sqlite3.connect("app.db", timeout=10)
        names = [name for name, in db.execute("SELECT name FROM step ORDER BY rowid")]
        db.close()
        return names

    def resolve(self, key, *how):
        scope = "migrate " + os.path.realpath("app.db")
        got = self.host.idem("resolve", "-s", scope, key, *how, "--reason", "looked")
        equal(got.status, 0)


@test
def migrations_of_two_hosts_run_once():
    """Two at once: one runs them, the other waits, and both succeed."""
    m = Migrations()
    results = m.host.at_once(2, MIGRATE, "app.db", "migrations")
    equal(results, [(0, b"", b"")] * 2)
    equal(m.steps(), ["001-start", "002-more"])


@test
def a_changed_migration_is_refused():
    """A file that was changed after it was run answers 65, and stops the rest."""
    m = Migrations()
    equal(m.run().status, 0)
    m.add("001-start", "-- changed")
    m.add("003-new", "")
    equal(m.run().status, 65)
    equal(m.steps(), ["001-start", "002-more"])


@test
def a_failed_migration_waits_for_a_person():
    """One that failed stops the rest; once it is mended and released, all run."""
    m = Migrations()
    m.add("002-more", "INSERT INTO nowhere VALUES (1);")
    m.add("003-new", "")
    first = m.run()
    assert first.status == 1 and b"nowhere" in first.stderr, first
    equal((m.run().status, m.steps()), (1, ["001-start"]))
    assert b"002-more" in m.host.idem("list", "--status", "failed").stdout

    m.add("002-more", "")
    m.resolve("002-more", "--release")
    equal(m.run().status, 0)
    equal(m.steps(), ["001-start", "002-more", "003-new"])


@test
def an_interrupted_migration_waits_for_a_person():
    """Killed in the middle of one: 76 until a person has looked."""
    m = Migrations()
    real = shutil.which("sqlite3")
    m.host.work("sqlite3", f'{real} "$@"; echo >done; sleep 20')
    with m.host.start(MIGRATE, "app.db", "migrations", MIGRATE_LEASE="2s") as process:
        until(lambda: os.path.exists("done"))
        kill_session(process)
    os.unlink(os.path.join(m.host.bin, "sqlite3"))
    equal(m.run(MIGRATE_LEASE="2s").status, 76)
    equal(m.steps(), ["001-start"])
    m.resolve("001-start", "--complete", "")
    equal(m.run().status, 0)
    equal(m.steps(), ["001-start", "002-more"])


# ---- idem serve, from other languages ------------------------------------------

SERVED = {
    "charge.rb": ["ruby"],
    "charge.php": ["php"],
    "charge.go": ["go", "run"],
    # It compiles the program each time: the second compiler costs more than it gains.
    "Charge.java": ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
}


@each(SERVED)
def a_charge_of_another_language_is_made_once(name):
    """Each program charges once for a key, and prints the first receipt again; what may
    have happened is not run again. The control is another key."""
    if not shutil.which(SERVED[name][0]):
        skip(f"{SERVED[name][0]} is not installed: {name} is not run")
    host = Host()
    charge = [*SERVED[name], os.path.join(EXAMPLES, "serve", name)]
    first = host.run(*charge, "k1", "42")
    equal((first.status, json.loads(first.stdout)["amount"]), (0, 42))
    equal(host.run(*charge, "k1", "42")[:2], first[:2])
    equal(ledger(), ["k1"])
    assert host.run(*charge, "k2", "42").stdout != first.stdout
    assert host.run(*charge, "k3", "none").status != 0
    again = host.run(*charge, "k3", "42")
    assert again.status != 0 and b"UNKNOWN" in again.stdout + again.stderr, again
    equal(ledger(), ["k1", "k2"])


# ---- The clients of Node.js and Python -----------------------------------------


@each([os.path.relpath(path, EXAMPLES) for path in sorted(glob.glob(EXAMPLES + "/clients/*/try"))])
def holds_what_it_promises(name):
    """A story is played by the handlers of both languages, and by their controls without idem."""
    got = run([os.path.join(EXAMPLES, name)], {"IDEM_PROGRAM": PROGRAM})
    equal((got.status, got.stderr), (0, b""))
    played = set(re.findall(r"^    (\S+\.(?:js|py)) ", got.stdout.decode(), re.M))
    there = {os.path.basename(path) for path in glob.glob(os.path.join(EXAMPLES, os.path.dirname(name), "*.*"))}
    missing = set() if shutil.which("node") else {path for path in there if path.endswith(".js")}
    equal((played, len(there)), (there - missing, 4))
    if missing:
        skip("Node.js is not installed: its handlers are not played")


# ---- The page ----------------------------------------------------------------


@test
def every_example_is_on_the_page():
    """examples/README.md names every file beside it."""
    page = read("README.md")
    for path in glob.glob(EXAMPLES + "/**/*", recursive=True):
        name = os.path.relpath(path, EXAMPLES)
        if os.path.isfile(path) and name not in ("README.md", "meson.build"):
            assert name in page or os.path.dirname(name) + "/)" in page, name
    for link in re.findall(r"\]\(([^)#:]+)\)", page):
        assert os.path.exists(os.path.join(EXAMPLES, link)), link


if __name__ == "__main__":
    main()
