"""examples/payment/pay.sh against a service that has Stripe's rules for keys."""

import contextlib
import functools
import json
import os
import shutil

from files import read, write
from patience import PATIENCE, until
from payment_service import Service
from tap import PROGRAM, TOP, Idem, equal, main, run, skip, test

PAY = os.path.join(TOP, "examples/payment/pay.sh")
RERUN = ("--on-expired-lease", "rerun", "--retention", "never", "--lease", "60s")


class Shop:
    """A shop that charges orders: with idem, and by other ways."""

    def __init__(self, service):
        if not shutil.which("curl"):
            skip("curl is not installed")
        self.service = service
        self.idem = Idem()
        self.script = PAY
        os.makedirs("bin", exist_ok=True)
        if not os.path.lexists("bin/idem"):
            os.symlink(PROGRAM, "bin/idem")
        self.env = {
            "PATH": os.path.abspath("bin") + ":" + os.environ["PATH"],
            "PAYMENT_URL": service.url,
            "PAYMENT_TIMEOUT": "10",
            "PAYMENT_PAUSE": "0.1",
        }

    def command(self, key="order-42", amount=4200, policy=RERUN, scope="shop"):
        options = ["-k", key, "-s", scope, *policy]
        return ["run", *options, "--", self.script, str(amount), "eur"]

    def pay(self, *args, env=None, **more):
        env = {**self.env, **(env or {})}
        return self.idem(*self.command(*args, **more), env=env)

    def start(self, *args, **more):
        return self.idem.start(*self.command(*args, **more), env=self.env)

    def record(self, key="order-42"):
        return json.loads(self.idem("show", "-s", "shop", "--json", key).stdout)

    def pay_until_answered(self, **more):
        """Retry as cron would, while somebody else is said to be at work."""

        def answered():
            got = self.pay(**more)
            return got if got.status != 75 else None

        return until(answered, "the key is free")

    def do_not_pass_the_key_on(self):
        """The control: the same script, with a header that has no key."""
        text = read(PAY)
        without = text.replace("Idempotency-Key: $key", "X-No-Key: 1")
        assert without != text
        self.script = os.path.abspath("pay-without-key.sh")
        write(self.script, without, 0o755)

    def pay_without_idem(self):
        """The control: curl in a loop, as people write it."""
        curl = ["curl", "-sS", "--fail", "--retry-connrefused", "-d", "amount=4200"]
        return run([*curl, "-d", "currency=eur", self.service.url + "/v1/charges"])


@contextlib.contextmanager
def open_shop():
    with Service() as service:
        yield Shop(service)


in_shop = functools.partial(test, given=open_shop)
RECEIPT = {"id": "ch_1", "amount": 4200, "currency": "eur"}


def receipt(got):
    equal(got.status, 0)
    return json.loads(got.stdout)


# ---- One charge --------------------------------------------------------------


@in_shop
def a_charge_is_made_once(shop):
    """The second run of an order prints the first receipt, and asks nobody."""
    first = shop.pay()
    equal(receipt(first), RECEIPT)
    equal(shop.pay(), first)
    equal(len(shop.service.requests), 1)
    other = shop.pay(amount=1)
    equal((other.status, len(shop.service.charges)), (65, 1))
    key = shop.service.requests[0][0]
    equal(key, shop.record()["id"])


@in_shop
def a_lost_answer_is_one_charge(shop):
    """Charged, and the answer lost: asked again, the service tells it. One charge."""
    shop.service.next = "cut"
    equal(receipt(shop.pay()), RECEIPT)
    equal(receipt(shop.pay()), RECEIPT)
    equal([status for _, status in shop.service.requests], [0, 200])
    equal(shop.service.charges, [("4200", "eur")])


@in_shop
def no_answer_at_all_is_for_a_person(shop):
    """Charged, and no answer to be had: unknown, for a later run may be too late."""
    shop.service.next = "cut"
    equal(shop.pay(env={"PAYMENT_TRIES": "1"}).status, 76)
    equal(shop.record()["status"], "unknown")
    equal((shop.pay().status, len(shop.service.charges)), (76, 1))


@in_shop
def an_interrupted_payment_is_seen_to_its_end(shop):
    """SIGTERM while the service is at work: its answer is waited for and kept."""
    shop.service.next = "slow"
    with shop.start() as process:
        assert shop.service.began.wait(PATIENCE), "the service never charged"
        process.terminate()
        shop.service.gate.set()
        output, _ = process.communicate(timeout=PATIENCE)
    equal((process.returncode, json.loads(output)), (0, RECEIPT))
    equal((receipt(shop.pay()), len(shop.service.charges)), (RECEIPT, 1))


@in_shop
def busy_services_are_tried_again(shop):
    """Nothing charged, and told so: the key is released, and the next run charges."""
    shop.service.next = "503"
    equal(shop.pay(env={"PAYMENT_TRIES": "1"}).status, 75)
    equal((shop.record()["status"], shop.service.charges), ("released", []))
    equal((receipt(shop.pay()), len(shop.service.charges)), (RECEIPT, 1))
    shop.env["PAYMENT_URL"] = "http://127.0.0.1:1"
    equal(shop.pay("other", env={"PAYMENT_TRIES": "2"}).status, 75)
    equal(shop.record("other")["status"], "released")


@in_shop
def a_declined_card_is_an_outcome(shop):
    """What the service refused is replayed like a receipt, and not tried again."""
    shop.service.next = "declined"
    first = shop.pay()
    equal((first.status, b"declined" in first.stdout), (1, True))
    equal(shop.pay(), first)
    equal((len(shop.service.requests), shop.service.charges), (1, []))


@in_shop
def an_error_inside_is_for_a_person(shop):
    """After a 500 nobody knows: the record is unknown, and nothing runs again."""
    shop.service.next = "500"
    first = shop.pay()
    equal((first.status, shop.record()["status"]), (76, "unknown"))
    equal(shop.record()["note"], "the service answered 500")
    equal(shop.pay().status, 76)
    equal((len(shop.service.requests), len(shop.service.charges)), (1, 1))


# ---- Killed between the charge and the record --------------------------------


def pay_and_be_killed(shop, key="order-42"):
    """Kill the runner and its command when the service has charged."""
    shop.service.next = "slow"
    with shop.start(key) as process:
        assert shop.service.began.wait(PATIENCE), "the service never charged"
        process.kill()
    shop.service.gate.set()
    equal(shop.record(key)["status"], "in_progress")
    equal(len(shop.service.charges), 1)


@in_shop(rows=[3])
def killed_after_the_charge_is_one_charge(shop):
    """Killed between charge and record, under rerun: run again, charged once."""
    pay_and_be_killed(shop)
    equal(receipt(shop.pay_until_answered()), RECEIPT)
    equal(receipt(shop.pay()), RECEIPT)
    equal((shop.record()["attempts"], len(shop.service.charges)), (2, 1))


@test
def an_old_key_is_for_a_person():
    """Once the service may have forgotten the key, nothing is charged again."""
    with Service() as service:
        shop = Shop(service)
        pay_and_be_killed(shop)
        service.pass_time(25 * 3600)
        old = shop.pay_until_answered(env={"PAYMENT_KEY_LIFE": "0"})
        equal((old.status, shop.record()["status"]), (76, "unknown"))
        equal(len(service.charges), 1)

    with Service() as service:  # The control: whoever does not look, pays twice.
        shop = Shop(service)
        pay_and_be_killed(shop, "k")
        service.pass_time(25 * 3600)
        equal(shop.pay_until_answered(key="k").status, 0)
        equal(len(service.charges), 2)


@in_shop
def killed_after_the_charge_without_the_key_is_two(shop):
    """The control: the same without passing the key on charges twice."""
    shop.do_not_pass_the_key_on()
    pay_and_be_killed(shop)
    equal(shop.pay_until_answered().status, 0)
    equal(len(shop.service.charges), 2)


@in_shop
def a_lost_answer_without_idem_is_two(shop):
    """The control: curl alone, tried again after a lost answer, charges twice."""
    shop.service.next = "cut"
    assert shop.pay_without_idem().status != 0
    equal(shop.pay_without_idem().status, 0)
    equal(len(shop.service.charges), 2)


@test
def two_hosts_at_once_are_one_charge():
    """Two stores know nothing of each other; the service tells one 409, and then
    gives both the same receipt."""
    with Service() as service:
        here, there = Shop(service), Shop(service)
        there.idem = Idem("sqlite:" + os.path.abspath("there.db"))
        service.next = "slow"
        with here.start() as process:
            assert service.began.wait(PATIENCE), "the service never charged"
            with there.start() as other:
                until(lambda: service.requests, "the other is told to wait")
                service.gate.set()
                equal(json.loads(other.communicate()[0]), RECEIPT)
            equal(json.loads(process.communicate()[0]), RECEIPT)
        equal({status for _, status in service.requests}, {409, 200})
        equal(len(service.charges), 1)


if __name__ == "__main__":
    main()
