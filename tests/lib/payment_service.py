"""A stand-in for a payment service, on the loopback, with Stripe's rules for keys.

POST /v1/charges with amount and currency, and an Idempotency-Key:

- a key has 1 to 255 characters; without one, every request is a charge;
- the same key with the same parameters gets the first answer again, even a 500, with
  `Idempotent-Replayed: true`;
- the same key with other parameters gets 400, idempotency_error;
- the same key gets 409 while the first request is in work;
- the service does not keep refusals before the work (bad parameters, 409, 503);
- it forgets a key after 24 hours of service.now, which pass() moves on.

Faults are injected one at a time by service.next = "...", for the next charge
that is begun:

    "500"           it fails inside, after the charge; the answer is kept
    "503"           it is overloaded and begins nothing
    "cut"           it charges, and the connection breaks before the answer
    "cut early"     the connection breaks before it charges
    "slow"          it charges and answers when service.gate is set
    "declined"      402; nothing is charged, and the answer is kept
"""

import json
import threading
import urllib.parse

from patience import PATIENCE
import web

KEY_MAX = 255
KEY_LIFE_S = 24 * 3600


class Service:
    """`with Service() as service:` runs it, at service.url."""

    def __init__(self):
        self.now = 0
        self.next = None
        self.gate = threading.Event()
        self.charges = []  # (amount, currency) of every charge that was made.
        self.requests = []  # (key, status) of every answer; 0: cut.
        self.began = threading.Event()
        self._answers = {}  # key -> [params, time, (status, body) or None]
        self._lock = threading.Lock()

    def __enter__(self):
        handler = type("Bound", (_Handler,), {"service": self})
        self._server = web.Server(handler).__enter__()
        self.url = self._server.url
        return self

    def __exit__(self, *error):
        self.gate.set()
        self._server.__exit__()

    def pass_time(self, seconds):
        self.now += seconds

    def answer(self, key, params):
        """Return status, body and headers for one request; None: cut."""
        refused = self._refusal(key, params)
        if refused:
            return refused
        with self._lock:
            fault, self.next = self.next, None
            known = self._known(key, params)
            if known:
                self.next = fault  # Not used: a fault waits for a new charge.
                return known
            if fault == "503":
                return 503, error("api_error", "try again later"), {}
            if fault == "cut early":
                return None
            if key:
                self._answers[key] = [params, self.now, None]
        result = self._charge(params, fault)
        with self._lock:
            if key:
                self._answers[key][2] = result
        return None if fault == "cut" else (*result, {})

    def _refusal(self, key, params):
        if key is not None and not 1 <= len(key) <= KEY_MAX:
            text = f"Idempotency-Key: 1 to {KEY_MAX} characters"
            return 400, error("invalid_request_error", text), {}
        if not str(params.get("amount", "")).isdigit() or "currency" not in params:
            return 400, error("invalid_request_error", "amount, currency"), {}
        return None

    def _known(self, key, params):
        """Return the answer for a key that was seen in the last 24 hours."""
        seen = self._answers.get(key)
        if not key or not seen or self.now - seen[1] >= KEY_LIFE_S:
            return None
        if seen[0] != params:
            text = "this key was used with other parameters"
            return 400, error("idempotency_error", text), {}
        if seen[2] is None:
            return 409, error("idempotency_key_in_use", "it is at work"), {}
        return *seen[2], {"Idempotent-Replayed": "true"}

    def _charge(self, params, fault):
        if fault == "declined":
            return 402, error("card_error", "the card was declined")
        with self._lock:
            self.charges.append((params["amount"], params["currency"]))
            number = len(self.charges)
        self.began.set()
        if fault == "slow":
            self.gate.wait(PATIENCE)
        if fault == "500":
            return 500, error("api_error", "something went wrong")
        body = {"id": f"ch_{number}", "amount": int(params["amount"])}
        return 200, body | {"currency": params["currency"]}


def error(kind, message):
    return {"error": {"type": kind, "message": message}}


class _Handler(web.Handler):
    service = None

    def do_POST(self):
        params = dict(urllib.parse.parse_qsl(self.body().decode()))
        key = self.headers.get("Idempotency-Key")
        answer = self.service.answer(key, params)
        self.service.requests.append((key, answer[0] if answer else 0))
        self.close_connection = True
        if answer is None:
            return
        status, body, headers = answer
        more = [*headers.items(), ("Content-Type", "application/json")]
        self.say(status, json.dumps(body).encode() + b"\n", more)
