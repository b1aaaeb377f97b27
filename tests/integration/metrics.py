"""Metrics: right across short processes, accepted by promtool, and all that rules,
alarms and dashboards name is there."""

import functools
import json
import os
import re
import shutil
import time

import dynamo
import files
from files import write
from patience import PATIENCE
from tap import PROGRAM, TOP, Idem, equal, kill_session, main, note, run, skip, start, test
import web

AWS = {name: value for name, value in dynamo.environment().items() if name.startswith("AWS_")}
METER = {**AWS, "IDEM_METER": "meter"}
PACKAGING = os.path.join(TOP, "packaging")
RULES = os.path.join(PACKAGING, "prometheus", "idem.rules.yml")


def promtool():
    found = shutil.which("promtool")
    return found or skip("promtool (Debian's package prometheus) is not installed")


read = functools.partial(files.read, PACKAGING)

def work(store, env):
    """Eleven processes, one operation each."""
    equal(store("run", "-k", "a", "--", "true", env=env).status, 0)
    for _ in range(3):
        equal(store("run", "-k", "a", "--", "true", env=env).status, 0)
    equal(store("run", "-k", "a", "--", "false", env=env).status, 65)
    token = store("begin", "-k", "b", "--lease", "1h", env=env).stdout
    equal(store("begin", "-k", "b", env=env).status, 75)
    equal(store("fail", "--token", "-", "--reason", "no", input=token, env=env).status, 0)
    equal(store("release", "--token", "-", input=token, env=env).status, 80)
    equal(store("begin", "-k", "c", "--lease", "1h", env=env).status, 0)
    equal(store("resolve", "b", "--release", "--reason", "x", env=env).status, 0)


def prometheus(text):
    """{name or name{labels but the store's}: value}"""
    found = {}
    for line in text.decode().splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            name = re.sub(r'store="[^"]*",?', "", name).replace("{}", "")
            found[name] = float(value)
    return found


WANTED = {"started": 3, "completed": 1, "replayed": 3, "mismatch": 1, "busy": 1, "failed": 1,
          "lost": 1, "resolved": 1, "takeovers": 0, "unknown": 0, "released": 0}


def counted(store, env=None):
    done = store("stats", "--format", "prometheus", env=env or METER)
    equal(done.status, 0)
    return prometheus(done.stdout)


@test
def short_processes_are_counted_in_a_file():
    """What eleven processes did is counted once each, by the store and by the meter."""
    store = Idem()
    work(store, METER)
    got = counted(store)
    equal({name: got[f"idem_{name}_total"] for name in WANTED}, WANTED)
    equal((got["idem_in_progress"], got["idem_overdue"], got["idem_up"]), (1, 0, 1))
    equal(got['idem_store_errors_total{kind="lost"}'], 1)
    calls = {c: got[f'idem_store_call_seconds_count{{call="{c}"}}'] for c in ("begin", "end")}
    equal(calls, {"begin": 8, "end": 3})
    note(f"11 processes: {sum(WANTED.values())} counted, {int(sum(calls.values()))} calls timed")


@test
def a_bad_meter_is_no_reason_not_to_work():
    """Where the meter cannot be used that is said, and the work is done."""
    write("letter", "dear aunt")
    for path in ("letter", "none/meter", "."):
        done = Idem()("run", "-k", path, "--", "echo", "done", env={"IDEM_METER": path})
        equal((done.status, done.stdout), (0, b"done\n"))
        assert b"IDEM_METER" in done.stderr, done
    with open("letter", encoding="ascii") as f:
        equal(f.read(), "dear aunt")


# ---- What is shipped ----


def all_metrics():
    """The text of every metric there is."""
    store = Idem()
    work(store, METER)
    return store("stats", "--format", "prometheus", "--missing", "k*", env=METER).stdout


def exported(text):
    """The names that a query may use."""
    names = set()
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text.decode(), re.M):
        parts = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        names |= {name + part for part in parts}
    return names


def queried(text, rules=""):
    """Names of metrics in @text; those of recording rules in @rules are given."""
    recorded = set(re.findall(r"record: (\S+)", rules))
    names = set(re.findall(r"\bidem[_:][a-z0-9_:]+", text))
    return {name for name in names if name not in recorded}


@test
def promtool_accepts_them():
    """promtool finds nothing to say of the metrics and of the rules, and the rules
    raise their alarms when they should; a defect of each is found."""
    tool = promtool()
    text = all_metrics()
    done = run([tool, "check", "metrics"], input=text)
    equal((done.status, done.stdout, done.stderr), (0, b"", b""))
    equal(run([tool, "check", "rules", RULES]).status, 0)
    tests = os.path.join(PACKAGING, "prometheus", "idem.rules.test.yml")
    equal(run([tool, "test", "rules", tests], timeout=60).status, 0)

    bad = run([tool, "check", "metrics"], input=text.replace(b"_total counter", b"_total gauge"))
    assert bad.status != 0, bad
    # The first of the stories looks for it; the last, a whole day, takes promtool seconds.
    write("idem.rules.test.yml", read("prometheus", "idem.rules.test.yml").partition("  # Three jobs of each night")[0])
    rules = read("prometheus", "idem.rules.yml")
    for text, is_right in (rules, True), (rules.replace("idem_overdue) > 0", "idem_overdue) > 2"), False):
        write("idem.rules.yml", text)
        equal(run([tool, "test", "rules", "idem.rules.test.yml"], timeout=60).status == 0, is_right)


@test
def rules_and_dashboard_name_what_is_there():
    """Each metric in the rules and in the Grafana dashboard is exported, and each
    that is exported is in one of them."""
    names = exported(all_metrics())
    rules = read("prometheus", "idem.rules.yml")
    grafana = read("grafana", "idem.json")
    board = json.loads(grafana)
    queries = "\n".join(t["expr"] for p in board["panels"] for t in p["targets"])
    used = queried("\n".join(re.findall(r"expr: (?:>-)?((?:.*\n)(?:          .*\n)*)", rules)), rules)
    shown = queried(queries, rules)
    assert len(used) > 12 and len(shown) > 20, (used, shown)
    equal((used - names, shown - names), (set(), set()))
    histogram = {"idem_store_call_seconds_sum", "idem_store_call_seconds_count"}
    equal(names - used - shown - histogram, set())
    equal(queried("rate(idem_no_such_total[5m])") - names, {"idem_no_such_total"})
    note(f"{len(names)} names, {len(used)} in {rules.count('alert:')} alerts, {len(shown)} in {len(board['panels'])} panels")


def emf_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith(b'{"_aws"')]


def emf_of_a_function():
    """The line of a function that ran once, with what it counted."""
    write("handler", "#!/bin/sh\ncat >/dev/null\necho 1\n", 0o755)
    done = Idem("sqlite:" + os.path.abspath("function.db"))(
        "lambda", "invoke", "--handler", "./handler", "-", input=b'{"id": 1}',
        env={"IDEM_METER": "emf", "IDEM_LAMBDA_KEY": ".id | tostring"})
    (line,) = emf_lines(done.stderr)
    return line


def check_emf(line):
    """The names of a line in the embedded metric format, which is as it should be."""
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    equal((directive["Namespace"], directive["Dimensions"]), ("idem", [["store"]]))
    assert abs(line["_aws"]["Timestamp"] / 1000 - time.time()) < 60
    names = [metric["Name"] for metric in directive["Metrics"]]
    assert len(set(names)) == len(names) <= 100 and set(names) <= set(line), names
    units = {metric["Unit"] for metric in directive["Metrics"]}
    assert units <= {"Bytes", "Count", "Milliseconds", "Microseconds"}, units
    assert all(isinstance(line[name], int) for name in names) and isinstance(line["store"], str)
    equal(set(line) - set(names), {"_aws", "store"})
    return set(names)


@test
def alarms_name_what_is_there():
    """The lines for CloudWatch have the form that they must have: what is on record is in
    that of a host, what was counted in that of a function. Between them they have each
    metric that an alarm or the dashboard names."""
    store = Idem()
    work(store, METER)
    (line,) = emf_lines(store("stats", "--format", "emf", env=METER).stdout)
    gauges = check_emf(line)
    assert "overdue" in gauges and "started" not in gauges, gauges
    counted = emf_of_a_function()
    equal(counted["started"], 1)
    names = gauges | check_emf(counted)

    template = read("cloudwatch", "alarms.yaml")
    alarms = re.findall(r"MetricName: (\S+)", template)
    body = json.loads(template.partition("DashboardBody: !Sub |\n")[2])
    shown = [m[1] for w in body["widgets"] for m in w["properties"]["metrics"] if len(m) > 1]
    assert len(alarms) == 14 and len(shown) > 20, (alarms, shown)
    equal((set(alarms) - names, set(shown) - names), (set(), set()))
    equal(names - set(alarms) - set(shown), set())
    equal({"overdueTask"} - names, {"overdueTask"})
    note(f"{len(names)} names, {len(set(alarms))} in alarms, {len(set(shown))} in {len(body['widgets'])} widgets")


@test
def a_scheduled_function_looks():
    """The function in packaging/cloudwatch looks at each event, and fails only if it
    cannot."""
    if shutil.which("curl") is None:
        skip("curl is not installed")
    told = []

    class Runtime(web.Handler):
        def do_GET(self):
            if len(told) >= 2:
                self.send_error(500)
                return
            if told:
                os.rename("idem.db", "gone.db")
            self.say(200, b"{}", [("Lambda-Runtime-Aws-Request-Id", f"id-{len(told)}")])

        def do_POST(self):
            told.append((self.path.split("/")[-2:], json.loads(self.body())))
            self.say(202)
            if len(told) == 2:
                process.kill()

    store = Idem()
    equal(store("begin", "-k", "k", "--expect", "1ms", "--lease", "1h").status, 0)
    time.sleep(0.05)
    os.symlink(PROGRAM, "idem")
    with web.Server(Runtime) as runtime:
        env = {"AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{runtime.server_port}", "IDEM_STORE": store.store,
               "LAMBDA_TASK_ROOT": os.getcwd()}
        process = start([os.path.join(PACKAGING, "cloudwatch", "bootstrap")], env)
        try:
            out, _ = process.communicate(timeout=PATIENCE)
        finally:
            kill_session(process)
    equal(told[0], (["id-0", "response"], {"status": 2}))
    equal(told[1][0], ["id-1", "error"])
    assert b'"event":"overdue"' in out, out
    equal(emf_lines(out)[0]["overdue"], 1)


if __name__ == "__main__":
    main()
