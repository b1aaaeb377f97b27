"""What is shipped, started on each kind of store: the commands of images, units,
manifests, a crontab, a workflow, functions and examples, as their files have them. Other
are only the URL of the store, where programs and folders are, and ports."""

import contextlib
import glob
import http.client
import http.server
import json
import os
import re
import shlex
import shutil
import sys

import yaml

import dynamo
from files import read, write
import payment_service
import postgres
import serve_client
import sqs
from patience import until
from ports import free_port
from tap import PROGRAM, TOP, add, equal, kill_session, main, note, run, skip, start, test
import web

sys.path.append(os.path.join(TOP, "examples", "lambda"))
import stage  # noqa: E402

BUILT = os.path.dirname(PROGRAM)
KINDS = ("sqlite", "dynamodb", "postgres")


def server(kind):
    """The URL of the one server of @kind, up to what a store of its own adds."""
    return dynamo.shared("dynoxide") if kind == "dynamodb" else postgres.shared(fsync="on").url


class Host:
    """A host with idem and the work that is called, and a store of its own."""

    def __init__(self, kind, name):
        name = re.sub("[^a-z0-9]+", "_", name.lower())
        if kind == "sqlite":
            self.store = f"sqlite:{os.path.abspath('idem.db')}?create=no"
        elif kind == "dynamodb":
            self.store = f"dynamodb://{name}?endpoint={server(kind)}&region=eu-west-1"
        else:
            self.store = f"{server(kind)}&schema={name[-40:]}"
        self.kind, self.bin = kind, os.path.abspath("bin")
        os.makedirs("bin")
        os.makedirs("run")
        os.symlink(PROGRAM, "bin/idem")
        given = dynamo.environment()
        self.env = {n: given[n] for n in given if n.startswith("AWS_")}
        self.env.update({
            "HOME": os.getcwd(), "IDEM_STORE": self.store, "LD_LIBRARY_PATH": BUILT,
            "IDEM_JOURNAL_DIR": os.path.abspath("journal"),
            "PATH": self.bin + ":/usr/sbin:" + os.environ["PATH"],
        })  # fmt: skip

    def make_store(self):
        equal(self.run("idem", "store", "create")[::2], (0, b""))
        return self

    def work(self, *names):
        for name in names:
            write(f"bin/{name}", f"#!/bin/sh\necho {name} >>{os.path.abspath('ledger')}\n", 0o755)

    def effects(self):
        with contextlib.suppress(FileNotFoundError):
            return sorted(open("ledger", encoding="ascii").read().split())
        return []

    def run(self, *words, **env):
        return run(self.here(words), {**self.env, **env})

    def here(self, words):
        """@words, whose programs and folders are those of this test."""
        places = (("/usr/local/bin/", f"{self.bin}/"), ("/usr/bin/idem", f"{self.bin}/idem"))
        for old, new in places:
            words = [word.replace(old, new, 1) if word.startswith(old) else word for word in words]
        return words

    def twice(self, *words, status=0, **env):
        """Both times it ends with @status."""
        ends = [self.run(*words, **env) for _ in range(2)]
        equal(([end.status for end in ends], ends), ([status] * 2, ends))
        return ends


# ---- Gateways ----


class Service(web.Handler):
    """It answers 201, and counts."""

    effects = 0

    def do_POST(self):
        self.body()
        Service.effects += 1
        self.say(201)


def gateway(host, words, probe=None):
    """What @words start passes a request on once, and answers @probe(port)."""
    if not os.path.exists(f"{BUILT}/nginx/ngx_http_idempotency_module.so"):
        skip("the module was not built")
    if shutil.which("nginx", path=host.env["PATH"]) is None:
        skip("nginx is not installed: tools/deps test")
    service = web.Server(Service).__enter__()
    health = free_port()
    ours = {"http://127.0.0.1:3000": service.url,
            "127.0.0.1:8080": "0", "*:8080": "0", "*:8081": f"127.0.0.1:{health}"}  # fmt: skip
    words = [ours.get(word, word) for word in host.here(words)]
    words += ["--user", "root"] if os.getuid() == 0 else []
    before = Service.effects
    process = start(words, host.env)
    try:
        url = process.stdout.readline().decode().strip()
        assert url, process.communicate()[1].decode()
        for replayed in None, "true":
            client = http.client.HTTPConnection(url.partition("//")[2])
            client.request("POST", "/", b"42", {"Idempotency-Key": "k", "X-Client": "a"})
            answer = client.getresponse()
            equal((answer.status, answer.getheader("Idempotent-Replayed")), (201, replayed))
        equal(Service.effects - before, 1)
        if probe:
            probe(health)
    finally:
        kill_session(process)
        service.shutdown()
        service.server_close()


# ---- Images and manifests ----


def images():
    """{target: {instruction: its text}} of the recipe."""
    text = re.sub(r"^#.*\n", "", read(TOP, "packaging/container/Containerfile"), flags=re.M)
    found = {}
    for part in re.split("^FROM ", text.replace("\\\n", " "), flags=re.M)[1:]:
        lines = filter(None, map(str.strip, part.splitlines()[1:]))
        name = part.splitlines()[0].split(" AS ")[1]
        found[name] = dict(line.split(None, 1) for line in lines)
    return found


def command_of(image, instruction):
    return json.loads(images()[image][instruction].rpartition("CMD ")[2])


def image(host):
    """Both images: the entry point and the health check."""
    settings = dict(pair.split("=", 1) for pair in shlex.split(images()["idem"]["ENV"]))
    for name in "IDEM_AUDIT_LOG", "IDEM_JOURNAL_DIR":
        host.env[name] = settings[name].replace("/var/lib/idem", os.getcwd())
    entry = command_of("idem", "ENTRYPOINT")
    equal(host.run(*entry, "store", "create").status, 0)
    healthy = host.run(*command_of("idem", "HEALTHCHECK"))
    equal((healthy.status, healthy), (0, healthy))
    (check,) = command_of("idem-gateway", "HEALTHCHECK")
    equal(check, "/usr/lib/idem/probe")
    check = os.path.join(TOP, "packaging/container/probe")
    gateway(
        host,
        [*command_of("idem-gateway", "ENTRYPOINT"), "--upstream", "http://127.0.0.1:3000",
         "--global-scope"],
        lambda port: equal(host.run(check, str(port)).status, 0),
    )  # fmt: skip


def manifest(name):
    """Play a manifest: its containers that are of our images, or that start idem."""

    def probe(port):
        client = http.client.HTTPConnection("127.0.0.1", port)
        client.request("GET", "/")
        equal(client.getresponse().status, 204)

    def play(host):
        host.work("backup")
        played = 0
        for document in yaml.safe_load_all(read(TOP, name)):
            spec = document["spec"].get("jobTemplate", document)["spec"]
            for container in spec.get("template", {"spec": {"containers": []}})["spec"]["containers"]:
                kind = container["image"].partition("/")[2].partition(":")[0]
                words = container.get("command") or (
                    command_of(kind, "ENTRYPOINT") if kind in images() else None)
                if words is None or "idem" not in words[0]:
                    continue
                args = [re.sub("^sqlite:.*", lambda _: host.store, a) for a in container["args"]]
                words = [*words, *args]
                played += 1
                if kind == "idem-gateway":
                    host.make_store()
                    equal(container["readinessProbe"]["httpGet"], {"path": "/", "port": "probe"})
                    gateway(host, words, probe)
                elif kind == "idem":
                    equal(host.run(*words).status, 0)
                    equal(host.run("idem", "run", "-k", "k", "--", "true").status, 0)
                else:
                    host.make_store()
                    host.twice(*[word.replace("$(JOB_NAME)", "backup-29400") for word in words])
                    equal(host.effects(), ["backup"])
        equal(played, 1)

    return play


# ---- Units, cron, CI ----


def unit(name, status=0):
    """The commands of a service of systemd, twice."""

    def expand(word, env):
        """As systemd does: $NAME is words of its own, ${NAME} is a part of one."""
        if match := re.fullmatch(r"\$(\w+)", word):
            return env[match[1]].split()
        return [re.sub(r"\$\{(\w+)\}", lambda m: env[m[1]], word)]

    def play(host):
        host.make_store().work("backup")
        env = {"RUNTIME_DIRECTORY": os.path.abspath("run")}
        commands = []
        for line in read(TOP, name).splitlines():
            key, _, value = line.partition("=")
            if key == "Environment" and not value.startswith("IDEM_"):
                raise AssertionError(line)
            if key == "Environment":
                env.setdefault(*value.split("=", 1))
            elif key in ("ExecStart", "ExecStartPre"):
                commands.append(shlex.split(value.lstrip("-")))
        assert env.pop("IDEM_STORE").startswith("sqlite:/")
        env.pop("IDEM_JOURNAL_DIR", None)
        for words in commands:
            words = [part for word in words for part in expand(word, env)]
            if "gateway" in words:
                gateway(host, words)
            else:
                host.twice(*words, status=status)
        equal(host.effects(), ["backup"] if "backup" in name else [])

    return play


def served(host):
    """The command of a server: a client that asks twice is answered from the record."""
    host.make_store()
    line = re.search(r"^ExecStart=(.*)$", read(TOP, "packaging/systemd/idem-serve.service"), re.M)[1]
    sock = re.search(r"^ListenStream=(.*)$", read(TOP, "packaging/systemd/idem-serve.socket"), re.M)[1]
    words = [os.path.abspath("s") if word == sock else word for word in shlex.split(line)]
    process = start(host.here(words), host.env)
    try:
        client = until(lambda: serve_client.Client.reach(os.path.abspath("s")), "it listens")
        client.hello()
        got = client.begin("order-42")
        client("complete", token=got["token"], result={"json": {"charged": 42}})
        equal(client.begin("order-42")["result"]["json"], {"charged": 42})
        client.close()
    finally:
        kill_session(process)


def crontab(host):
    """Each line of the table, at three ticks of a clock that does everything each time."""
    host.make_store().work("backup", "send-invoices", "report")
    lines = re.findall(r"^[\d*](?:\S* +){5}(.*)$", read(TOP, "examples/cron/crontab"), re.M)
    equal(len(lines), 5)
    for line in lines * 3:
        equal((line, host.run("sh", "-c", line)), (line, (0, b"", b"")))
    equal(host.effects(), ["backup", "report", "send-invoices"])


def workflow(host):
    host.work("deploy")
    shutil.move("bin/deploy", "deploy")
    steps = yaml.safe_load(read(TOP, "examples/ci/workflow.yml"))["jobs"]["deploy"]["steps"]
    make, deploy = [step["run"] for step in steps if "run" in step]
    equal(host.run("bash", "-ec", make).status, 0)
    host.twice("bash", "-ec", deploy, GITHUB_SHA="c1")
    equal(host.effects(), ["deploy"])


# ---- Functions ----


def place(stack, host):
    """The sandboxes of the stories, with the settings of @host."""
    made = object.__new__(stage.Place)
    made.stack, made.contents, made.tasks = stack, {}, len(glob.glob("task*"))
    made.credentials = {n: v for n, v in host.env.items() if n not in ("HOME", "PATH")}
    return made


def event(name, **more):
    return {**json.loads(read(TOP, f"tests/lambda/events/{name}.json")), **more}


def message(order):
    told = event("sqs")
    told["Records"] = told["Records"][:1]
    told["Records"][0]["body"] = json.dumps({"orderId": order})
    return told


def charge():
    told = event("api-gateway-http", body='{"amount": 42}', isBase64Encoded=False)
    told["headers"]["idempotency-key"] = "k"
    told["requestContext"]["authorizer"] = {"jwt": {"claims": {"sub": "alice"}}}
    return told


# Of the three forms of an answer.
ANSWERS = ("statusCode", "batchItemFailures", "receipt")
FUNCTIONS = {
    "http-idempotency/charge": ("api-gateway-http", "PAYMENT_URL", charge),
    "event-consumer/consume": ("sqs", "ORDERS_URL", lambda: message("41")),
    "lock-token/order": ("direct", "API_URL", lambda: {"orderId": "41"}),
}


def function(name):
    """A function as a script and in C gets the same event twice, and calls once."""

    def play(host):
        host.make_store()
        source, url, make = FUNCTIONS[name]
        script = os.path.join(TOP, "examples/lambda", name + ".sh")
        env = {**stage.settings_in(script), "IDEM_LAMBDA_SOURCE": source}
        for handler in script, f"{BUILT}/examples/{os.path.basename(name)}":
            service = stage.Service()
            env |= {url: service.url, "AWS_LAMBDA_FUNCTION_NAME": os.path.basename(handler)}
            with contextlib.ExitStack() as stack:
                box = place(stack, host).box(handler, env)
                told = [box.invoke(make()) for _ in range(2)]
            equal(([t.kind for t in told], told), (["response"] * 2, told))
            first, again = [[t.json().get(name) for name in ANSWERS] for t in told]
            equal((first, len(service.calls)), (again, 1))
            assert first in ([201, None, None], [None, [], None], [None, None, "receipt-1"]), first

    return play


def limiter(host):
    """limit.sh and limit.c: the third of two requests is over the limit."""
    host.make_store()
    script = os.path.join(TOP, "examples/lambda/rate-limit/limit.sh")
    env = {**stage.settings_in(script), "LIMIT_STORE": host.store, "LIMIT_MAX": "8"}
    for handler in script, f"{BUILT}/examples/limit":
        env["IDEM_SCOPE"] = os.path.basename(handler)
        with contextlib.ExitStack() as stack:
            box = place(stack, host).box(handler, env)
            said = [box.invoke({"user": handler[-2:], "request": f"r{n}", "timestamp": 1510067704370})
                    for n in (*range(9), 0)]  # fmt: skip
        equal([answer.json()["limited"] for answer in said], [False] * 8 + [True, False])


def watcher(host):
    """Both functions that look at a store on a schedule: that of CloudWatch, and watch.sh
    under the runtime."""
    host.make_store()
    plain, script = [os.path.join(TOP, name) for name in (
        "packaging/cloudwatch/bootstrap", "examples/lambda/watch.sh")]  # fmt: skip
    under = {**stage.settings_in(script), "WATCH_STORE": host.store, "IDEM_STORE": "memory:",
             "IDEM_LAMBDA_SOURCE": "schedule"}  # fmt: skip
    for handler, env, command in (plain, {}, [plain]), (script, under, None):
        with contextlib.ExitStack() as stack:
            box = place(stack, host).box(handler, {**env, "TMPDIR": os.getcwd()}, command)
            os.symlink(PROGRAM, f"{box.task}/idem") if command else None
            equal(box.invoke(event("schedule")).json(), {"status": 0})


# ---- Programs and scripts ----


def program(name, *args, says=b""):
    """A program in C whose first argument is the store, twice."""

    def play(host):
        host.make_store()
        first, again = host.twice(f"{BUILT}/examples/{name}", host.store, *args)
        assert says in first.stdout and says in again.stdout, (first, again)

    return play


def consumer(host):
    """consume.c on a queue with three messages, two of which are one."""
    host.make_store()
    with sqs.server() as at:
        queue = sqs.Queue(at, "orders")
        queue.send(["a", "b"])
        env = {"AWS_ENDPOINT_URL_SQS": at}
        got = host.run(f"{BUILT}/examples/example-consume", queue.url, host.store, **env)
        equal((got.status, queue.count()), (0, (0, 0)))
    assert b"2" in got.stdout, got


def migrate(host):
    if not shutil.which("sqlite3"):
        skip("sqlite3 is not installed")
    host.make_store()
    os.mkdir("migrations")
    write("migrations/001-start.sql", "CREATE TABLE step (name);\n")
    host.twice(os.path.join(TOP, "examples/migrate/migrate.sh"), "app.db", "migrations")


def pay(host):
    host.make_store()
    with payment_service.Service() as service:
        words = re.search(r"^#     (idem run .*) -- \\$", read(TOP, "examples/payment/pay.sh"), re.M)[1]
        script = os.path.join(TOP, "examples/payment/pay.sh")
        host.twice(*shlex.split(words), "--", script, "4200", "eur", PAYMENT_URL=service.url)
        equal(service.charges, [("4200", "eur")])


def executions(host):
    host.make_store()
    host.work("aws")
    os.mkdir("orders")
    write("orders/1.json", '{"order": 1}\n')
    start_sh = os.path.join(TOP, "examples/stepfunctions/start.sh")
    host.twice(start_sh, "orders", STATE_MACHINE_ARN="arn:aws:states:eu-west-1:1:stateMachine:O")
    equal(host.effects(), ["aws"])


SHIPPED = {
    "packaging/container/Containerfile": image,
    "packaging/kubernetes/cronjob.yaml": manifest,
    "packaging/kubernetes/sidecar-dynamodb.yaml": manifest,
    "packaging/kubernetes/sidecar.yaml": manifest,
    "packaging/kubernetes/store.yaml": manifest,
    "packaging/systemd/idem-purge.service": unit,
    "packaging/systemd/idem-serve.service": served,
    "packaging/systemd/idem-watch.service": unit,
    "packaging/cloudwatch/bootstrap": watcher,
    "examples/systemd/backup.service": unit,
    "examples/systemd/idem-gateway.service": unit,
    "examples/systemd/idem-look.service": unit,
    "examples/systemd/idem-purge.service": unit,
    "examples/cron/crontab": crontab,
    "examples/ci/workflow.yml": workflow,
    "examples/lambda/http-idempotency/charge": function,
    "examples/lambda/event-consumer/consume": function,
    "examples/lambda/lock-token/order": function,
    "examples/lambda/rate-limit/limit": limiter,
    "examples/minimal.c": program("minimal", "order-1", says=b"receipt 7"),
    "examples/once.c": program("once", "order-1", says=b"receipt"),
    "examples/queue.c": program("queue", says=b"1000"),
    "examples/consume.c": consumer,
    "examples/migrate/migrate.sh": migrate,
    "examples/payment/pay.sh": pay,
    "examples/stepfunctions/start.sh": executions,
}

# Started with one of those above, or by the test that is named.
WITH = {
    "packaging/container/probe": "packaging/container/Containerfile",
    "examples/lambda/bootstrap": "examples/lambda/event-consumer/consume",
    "examples/lambda/watch.sh": "packaging/cloudwatch/bootstrap",
    "examples/stepfunctions/execution.sh": "examples/stepfunctions/start.sh",
}
BOUND_TO_ONE_STORE = {
    "examples/order.c": "tests/integration/test_dynamodb.py",
    "examples/transaction.c": "tests/integration/transaction.py",
    "examples/lambda/rate-limit/stream.c": "tests/lambda/stories.py",
}


@test
def nothing_that_is_shipped_is_left_out():
    """Each image, unit, manifest, function and example is in a table of this test, but for
    transfers in one transaction with a database, and templates, which start nothing."""
    there = set()
    for folder in "packaging", "examples":
        for path in glob.glob(f"{TOP}/{folder}/**/*", recursive=True):
            name = os.path.relpath(path, TOP)
            if re.search(r"(\.service|\.c|\.sh|/bootstrap|/probe|crontab|Containerfile|workflow\.yml|"
                         r"kubernetes/.*\.yaml)$", name):  # fmt: skip
                there.add(name)
    named = {*SHIPPED, *WITH, *BOUND_TO_ONE_STORE}
    listed = {name for name in there if name in named or re.sub(r"\.(c|sh)$", "", name) in named}
    left = {n for n in there - listed if "/transfer/" not in n and "/completion/" not in n}
    equal(left, set())
    equal({w for w in WITH.values() if w not in SHIPPED}, set())
    equal([w for w in BOUND_TO_ONE_STORE.values() if not os.path.exists(f"{TOP}/{w}")], [])
    note(f"{len(SHIPPED)} on {len(KINDS)} stores")


def play_of(name):
    made = SHIPPED[name]
    if made in (unit, manifest):
        return made(name)
    return function(name.removeprefix("examples/lambda/")) if made is function else made


for shipped in SHIPPED:
    for store in KINDS:
        def case(name=shipped, kind=store):
            play_of(name)(Host(kind, name))

        case.__name__ = f"{shipped} on {store}"
        add(case.__name__, case)

if __name__ == "__main__":
    main()
