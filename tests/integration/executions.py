"""idem stepfunctions: one execution for each key, whatever becomes of answers."""

import json
import os
import re
import uuid

from patience import PATIENCE, until
from step_functions import FAST, ORDERS, Service
from tap import PROGRAM, TOP, Idem, equal, kill_session, main, run, test

ORDER = '{"id":"order-42"}'


class Shop:
    """A shop that starts an execution for each order."""

    def __init__(self, service):
        self.service = service
        self.idem = Idem()

    def words(self, key="order-42", text=ORDER, machine=ORDERS, more=()):
        words = ["stepfunctions", "start", "-m", machine, "--input", text]
        return [*words, *(["-k", key] if key else []), *more]

    def start(self, *args, env=None, **more):
        return self.idem(*self.words(*args, **more), env={**self.service.env, **(env or {})})

    def spawn(self, *args, **more):
        return self.idem.start(*self.words(*args, **more), env=self.service.env)

    def record(self, key="order-42", *more):
        return json.loads(self.idem("show", "--json", *more, key).stdout)

    def start_when_free(self, **more):
        """Retry as cron would, while the lease of a killed process lasts."""

        def answered():
            got = self.start(**more)
            return got if got.status != 75 else None

        return until(answered, "the key is free")


def started(got):
    """The answer that @got printed."""
    equal((got.status, got.stderr), (0, b""))
    answer = json.loads(got.stdout)
    equal(sorted(answer), ["executionArn", "startDate"])
    return answer


@test
def the_service_has_the_rules_of_names():
    """The stand-in takes a name once, while it runs and for 90 days after."""
    with Service() as service:

        def begin(name="a", text="{}", machine=ORDERS):
            body = {"stateMachineArn": machine, "name": name, "input": text}
            return service.answer("StartExecution", body)

        first = begin()
        equal(first[0], 200)
        equal(begin(), first)
        equal(begin(text="[]")[1]["__type"], "ExecutionAlreadyExists")
        service.close_all()
        service.pass_time(89 * 86400)
        equal(begin()[1]["__type"], "ExecutionAlreadyExists")
        service.pass_time(86400)
        equal(begin()[0], 200)
        for name in ("", "x" * 81, "a b", "a:b", "a/b", "a\x7f"):
            equal(begin(name or "\n")[1]["__type"], "InvalidName")
        equal(len(service.executions), 2)
        assert begin(machine=FAST) != begin(machine=FAST)
        equal(len(service.executions), 4)


# ---- The name -------------------------------------------------------------------


@test
def the_first_call_starts_and_the_next_replays():
    """The name is the key; a second call prints the same, and sends no request."""
    with Service() as service:
        shop = Shop(service)
        first = shop.start()
        answer = started(first)
        equal(answer["executionArn"], ORDERS.replace("stateMachine", "execution") + ":order-42")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", answer["startDate"]), answer
        equal(shop.start(), first)
        equal(service.requests, ["StartExecution"])
        equal(service.executions[0]["input"], ORDER)
        equal(shop.record()["status"], "completed")
        told = json.loads(shop.start(more=["--json"]).stdout)
        equal((told["verdict"], told["name"]), ("replay", "order-42"))
        equal(json.loads(told["result"]), answer)


@test
def names_that_do_not_fit_are_derived():
    """A key that Step Functions does not take, or with a scope, has the record's id in
    its name, and two scopes never meet."""
    with Service() as service:
        shop = Shop(service)
        keys = ["order 42", "x" * 81, "order/42", "idem-1", "Stra\u00dfe", "a.b"]
        for key in keys:
            started(shop.start(key))
        for scope in ("shop-a", "shop-b"):
            started(shop.start("order-42", more=["-s", scope]))
        started(shop.start("order-42"))
        started(shop.start("x" * 80))
        ids = ["idem-" + shop.record(key)["id"] for key in keys]
        ids += ["idem-" + shop.record("order-42", "-s", s)["id"] for s in ("shop-a", "shop-b")]
        equal(service.names(), [*ids, "order-42", "x" * 80])
        equal(len(set(service.names())), 10)
        for name in ids:
            assert re.fullmatch("idem-[0-9a-f]{64}", name), name


@test
def the_key_comes_from_the_input():
    """--key-from selects the key, from standard input too."""
    with Service() as service:
        shop = Shop(service)
        words = shop.words(None, "-", more=["--key-from", ".id"])
        for _ in range(2):
            started(shop.idem(*words, env=service.env, input=ORDER.encode()))
        equal(service.names(), ["order-42"])
        equal(service.executions[0]["input"], ORDER)


# ---- Answers that are lost --------------------------------------------------------


@test
def lost_answers_start_no_second_execution():
    """Where the connection ends, or the answer is 500, after the execution began, the
    same name is asked for again."""
    for fault in ("cut", "500"):
        with Service() as service:
            shop = Shop(service)
            shop.idem.store = f"sqlite:{fault}.db"
            service.faults = [fault]
            started(shop.start())
            equal(service.names(), ["order-42"])
            equal(service.requests, ["StartExecution", "DescribeStateMachine", "StartExecution"])


@test
def without_idem_a_lost_answer_starts_two():
    """The control: a client that retries under a new name each time has two."""
    with Service() as service:
        service.faults = ["cut"]
        for _ in range(2):
            body = {"stateMachineArn": ORDERS, "name": str(uuid.uuid4()), "input": ORDER}
            if service.answer("StartExecution", body):
                break
        equal(len(service.executions), 2)


@test
def killed_before_the_record():
    """Killed after the execution began and before the record: the next caller finds it."""
    with Service() as service:
        shop = Shop(service)
        service.faults = ["hold"]
        lease = ["--lease", "2s"]
        with shop.spawn(more=lease) as process:
            assert service.began.wait(PATIENCE)
            kill_session(process)
        equal(len(service.executions), 1)
        equal(shop.record()["status"], "in_progress")
        started(shop.start_when_free(more=lease))
        equal(service.names(), ["order-42"])
        record = shop.record()
        equal((record["status"], record["attempts"]), ("completed", 2))


@test
def killed_and_closed_before_the_record():
    """The execution is over by the time that the next caller comes: it is found by its
    name, and recorded."""
    with Service() as service:
        shop = Shop(service)
        service.faults = ["hold"]
        lease = ["--lease", "2s"]
        with shop.spawn(more=lease) as process:
            assert service.began.wait(PATIENCE)
            kill_session(process)
        service.close_all()
        got = shop.start_when_free(more=[*lease, "--json"])
        equal(got.status, 0)
        told = json.loads(got.stdout)
        equal(told["verdict"], "found")
        equal(json.loads(told["result"])["executionArn"], service.executions[0]["arn"])
        equal(len(service.executions), 1)
        equal(service.requests[-1], "DescribeExecution")
        equal(shop.record()["status"], "completed")


@test
def no_answer_at_all():
    """Where no try is answered the record waits for another run, which finds the one
    execution."""
    with Service() as service:
        shop = Shop(service)
        service.faults = ["cut"] * 100
        got = shop.start(more=["--lease", "2s"])
        equal((got.status, got.stdout), (69, b""))
        assert b"may have been started: run the same command again" in got.stderr, got
        equal(shop.record()["status"], "retry")
        service.faults = []
        started(shop.start())
        equal(service.names(), ["order-42"])


@test
def a_store_that_is_gone_loses_no_start():
    """Where the store is away when the execution has begun, its ARN is printed all the same,
    and kept in the journal until it is recorded."""
    with Service() as service:
        shop = Shop(service)
        service.faults = ["hold"]
        with shop.spawn() as process:
            assert service.began.wait(PATIENCE)
            os.rename("idem.db", "away")
            service.gate.set()
            out, told = process.communicate(timeout=PATIENCE)
        equal(process.returncode, 80)
        equal(json.loads(out)["executionArn"], service.executions[0]["arn"])
        assert b"idem reconcile" in told, told
        os.rename("away", "idem.db")
        equal(shop.idem("reconcile").status, 0)
        equal(shop.start().stdout, out)
        equal(service.requests, ["StartExecution"])


# ---- Refusals ------------------------------------------------------------------------


@test
def throttling_is_waited_for():
    """A request that was throttled is sent again, after a pause."""
    with Service() as service:
        service.faults = ["throttle"] * 3
        started(Shop(service).start())
        equal(service.requests, ["StartExecution"] * 4)
        equal(len(service.executions), 1)


@test
def refusals_start_nothing_and_may_be_mended():
    """Access denied, a machine that is not there, an input that is not JSON: nothing was
    started, and the next call starts it."""
    with Service() as service:
        shop = Shop(service)
        service.faults = ["deny"]
        got = shop.start("a")
        equal((got.status, got.stdout), (77, b""))
        assert b"states:StartExecution; nothing was started" in got.stderr, got
        got = shop.start("b", machine=ORDERS + "2")
        equal((got.status, got.stdout), (78, b""))
        assert b"StateMachineDoesNotExist" in got.stderr, got
        got = shop.start("c", text="{")
        equal((got.status, got.stdout), (78, b""))
        assert b"InvalidExecutionInput" in got.stderr, got
        service.faults = ["throttle"] * 100
        got = shop.start("d", more=["--lease", "2s"])
        equal((got.status, got.stdout), (69, b""))
        assert b"ThrottlingException: Rate exceeded; nothing was started" in got.stderr, got
        service.faults = []
        equal(service.executions, [])
        for key in "abcd":
            equal(shop.record(key)["status"], "released")
            started(shop.start(key))
        equal(service.names(), list("abcd"))


@test
def another_input_is_a_mismatch():
    """The same key with another input, or another machine, is refused: by the record, and
    where there is no record, by the name."""
    with Service() as service:
        shop = Shop(service)
        started(shop.start())
        for more in ({"text": "[]"}, {"machine": FAST}):
            got = shop.start(**more)
            equal((got.status, got.stdout), (65, b""))
        equal(service.requests, ["StartExecution"])

        shop.idem.store = "sqlite:other.db"
        got = shop.start(text="[]")
        equal((got.status, got.stdout), (65, b""))
        assert b"the name order-42 was used for an execution with another input" in got.stderr, got
        equal(shop.record()["status"], "released")
        equal(len(service.executions), 1)
        started(shop.start())  # It is not taken for the one that was refused.
        equal(len(service.executions), 1)


@test
def callers_at_once():
    """Of eight that start together, on two stores, one execution comes."""
    with Service() as service:
        shop = Shop(service)
        stores = ["sqlite:" + os.path.abspath(name) for name in ("a.db", "b.db")]
        processes = []
        for i in range(8):
            shop.idem.store = stores[i % 2]
            processes.append(shop.spawn(more=["--wait", "30s"]))
        results = [(p.communicate(timeout=PATIENCE), p.returncode) for p in processes]
        equal({status for _, status in results}, {0})
        equal(len({out for (out, _), _ in results}), 1)
        equal(len(service.executions), 1)


# ---- EXPRESS -------------------------------------------------------------------------


@test
def express_is_started_and_said():
    """An EXPRESS state machine is started once, by the record; the answer says that its
    names protect nothing."""
    with Service() as service:
        shop = Shop(service)
        got = shop.start(machine=FAST)
        equal(got.status, 0)
        assert b"is EXPRESS" in got.stderr, got
        equal(shop.start(machine=FAST).stdout, got.stdout)
        equal(len(service.executions), 1)


@test
def express_in_doubt_is_left_to_a_person():
    """A lost answer of an EXPRESS state machine is not asked for again: the record is
    unknown, and nothing is started until a person decides."""
    with Service() as service:
        shop = Shop(service)
        service.faults = ["cut"]
        got = shop.start(machine=FAST)
        equal((got.status, got.stdout), (76, b""))
        assert b"the state machine is EXPRESS" in got.stderr, got
        equal(shop.start(machine=FAST).status, 76)
        equal(shop.record()["status"], "unknown")
        equal(service.requests, ["StartExecution", "DescribeStateMachine"])
        equal(len(service.executions), 1)


@test
def express_killed_is_left_to_a_person():
    """Killed after an EXPRESS execution began: the next caller asks for the type, starts no
    second one, and the record is unknown."""
    with Service() as service:
        shop = Shop(service)
        service.faults = ["hold"]
        lease = ["--lease", "2s"]
        with shop.spawn(machine=FAST, more=lease) as process:
            assert service.began.wait(PATIENCE)
            kill_session(process)
        got = shop.start_when_free(machine=FAST, more=lease)
        equal((got.status, got.stdout), (76, b""))
        assert b"the state machine is EXPRESS" in got.stderr, got
        equal(service.requests, ["StartExecution", "DescribeStateMachine"])
        equal(shop.record()["status"], "unknown")


@test
def a_right_that_is_missing_sends_no_second_request():
    """Where DescribeStateMachine is denied, a lost answer is not asked for again before
    it is allowed."""
    with Service() as service:
        shop = Shop(service)
        service.faults = ["cut"]
        service.describes = False
        got = shop.start()
        equal((got.status, got.stdout), (69, b""))
        assert b"states:DescribeStateMachine" in got.stderr, got
        equal(shop.record()["status"], "retry")
        service.describes = True
        started(shop.start())
        equal(len(service.executions), 1)


# ---- The example -----------------------------------------------------------------------

EXAMPLE = os.path.join(TOP, "examples/stepfunctions/start.sh")


@test
def the_example_starts_one_for_each_order():
    """examples/stepfunctions/start.sh: a directory of orders, started twice, once cut off."""
    with Service() as service:
        os.makedirs("orders")
        for n in range(3):
            with open(f"orders/{n}.json", "w", encoding="ascii") as f:
                json.dump({"order": n, "total": 4200}, f)
        os.makedirs("bin")
        os.symlink(PROGRAM, "bin/idem")
        env = {**service.env, "STATE_MACHINE_ARN": ORDERS, "IDEM_STORE": Idem().store}
        env["PATH"] = os.path.abspath("bin") + ":" + os.environ["PATH"]
        service.faults = [None, "deny"]
        equal(run([EXAMPLE, "orders"], env).status, 77)
        equal(len(service.executions), 1)
        for _ in range(2):
            got = run([EXAMPLE, "orders"], env)
            equal(got.status, 0)
            equal(len(got.stdout.splitlines()), 3)
        equal(service.names(), ["order-0", "order-1", "order-2"])


if __name__ == "__main__":
    main()
