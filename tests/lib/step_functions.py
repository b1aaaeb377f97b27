"""A stand-in for AWS Step Functions, on the loopback: it keeps executions.

The service runs nowhere but at AWS, and its image for local use is not to be had as a
package. So this follows the reference of its API, for what idem asks:

- StartExecution of a STANDARD state machine, under a name that is in use: the same
  executionArn and startDate where that execution is open and has the same input, else
  400 ExecutionAlreadyExists. A name is free again 90 days after it was closed.
- StartExecution of an EXPRESS one: a new execution each time, whatever the name.
- DescribeExecution shows the input; DescribeStateMachine the type.
- A name has 1 to 80 characters, none of them from a list: 400 InvalidName. An input is
  JSON: 400 InvalidExecutionInput.

Every request's signature is checked. Faults are injected with service.faults, a list of
which each StartExecution takes one:

    None             it is answered
    "throttle"       400 ThrottlingException; nothing is started
    "deny"           400 AccessDeniedException; nothing is started
    "500"            it is started, and the answer is 500
    "cut"            it is started, and the connection ends before the answer
    "hold"           it is started, and answered when service.gate is set
"""

import http.server
import json
import re
import threading
import time
import uuid

import sigv4
from patience import PATIENCE

KEY, SECRET = "AKIDSTEPS", "steps/secret"
MACHINES = "arn:aws:states:eu-west-1:123456789012:stateMachine:"
ORDERS = MACHINES + "Orders"
FAST = MACHINES + "Fast"  # It is EXPRESS.
ENV = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_SESSION_TOKEN": None,
    "AWS_PROFILE": None,
    "AWS_EC2_METADATA_DISABLED": "true",
}
BAD_NAME = re.compile(r'[\s<>{}\[\]?*"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]')
NAME_LIFE_S = 90 * 86400


class Service:
    """`with Service() as service:` runs it; service.env tells a client of it."""

    def __init__(self):
        self.now = 0  # Seconds that were passed with pass_time().
        self.faults = []
        self.gate = threading.Event()
        self.began = threading.Event()
        self.executions = []  # {"arn", "name", "input", "start", "closed"}
        self.requests = []  # The operation of each request.
        self.describes = True  # DescribeStateMachine is allowed.
        self._lock = threading.Lock()

    def __enter__(self):
        handler = type("Bound", (_Handler,), {"service": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        url = f"http://127.0.0.1:{self._server.server_port}"
        self.env = {**ENV, "AWS_ENDPOINT_URL_SFN": url}
        threading.Thread(target=self._server.serve_forever, args=[0.05]).start()
        return self

    def __exit__(self, *error):
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()

    def pass_time(self, seconds):
        self.now += seconds

    def close_all(self):
        for execution in self.executions:
            execution["closed"] = self.now

    def names(self):
        return [execution["name"] for execution in self.executions]

    def answer(self, operation, body):
        """Return status and body; None: the connection ends."""
        self.requests.append(operation)
        if operation == "StartExecution":
            return self._start(body)
        if operation == "DescribeExecution":
            return self._describe(body["executionArn"])
        if operation == "DescribeStateMachine":
            if not self.describes:
                return refusal("AccessDeniedException", "states:DescribeStateMachine")
            kind = "EXPRESS" if body["stateMachineArn"] == FAST else "STANDARD"
            return 200, {"stateMachineArn": body["stateMachineArn"], "type": kind}
        return refusal("UnknownOperationException", operation)

    def _start(self, body):
        fault = self.faults.pop(0) if self.faults else None
        if fault == "throttle":
            return refusal("ThrottlingException", "Rate exceeded")
        if fault == "deny":
            return refusal("AccessDeniedException", "not authorized to perform: states:StartExecution")
        with self._lock:
            result = self._begin(body)
        self.began.set()
        if fault == "cut":
            return None
        if fault == "500":
            return 500, {"__type": "InternalFailure"}
        if fault == "hold":
            self.gate.wait(PATIENCE)
        return result

    def _begin(self, body):
        machine = re.match(r"((?:[^:]*:){6}[^:]*)", body["stateMachineArn"])[1]
        name = body.get("name") or str(uuid.uuid4())
        if machine not in (ORDERS, FAST):
            return refusal("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{machine}'")
        if not 1 <= len(name) <= 80 or BAD_NAME.search(name):
            return refusal("InvalidName", f"Invalid Name: '{name}'")
        try:
            json.loads(body["input"])
        except ValueError:
            return refusal("InvalidExecutionInput", "Invalid State Machine Execution Input")
        arn = machine.replace(":stateMachine:", ":execution:") + ":" + name
        if machine == FAST:
            arn = machine.replace(":stateMachine:", ":express:") + f":{name}:{uuid.uuid4()}"
        same = self._known(arn)
        if same and (same["closed"] is not None or same["input"] != body["input"]):
            return refusal("ExecutionAlreadyExists", f"Execution Already Exists: '{arn}'")
        if not same:
            same = {"arn": arn, "name": name, "input": body["input"], "closed": None}
            same["start"] = round(time.time() + self.now, 3)
            self.executions.append(same)
        return 200, {"executionArn": same["arn"], "startDate": same["start"]}

    def _known(self, arn):
        for e in self.executions:
            if e["arn"] == arn and (e["closed"] is None or self.now - e["closed"] < NAME_LIFE_S):
                return e
        return None

    def _describe(self, arn):
        e = self._known(arn)
        if not e:
            return refusal("ExecutionDoesNotExist", f"Execution Does Not Exist: '{arn}'")
        status = "RUNNING" if e["closed"] is None else "SUCCEEDED"
        return 200, {"executionArn": arn, "startDate": e["start"], "status": status, "input": e["input"]}


def refusal(kind, message):
    return 400, {"__type": kind, "message": message}


class _Handler(http.server.BaseHTTPRequestHandler):
    service = None
    protocol_version = "HTTP/1.1"

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        lines = [self.requestline, *(f"{n}: {v}" for n, v in self.headers.items())]
        flaw = sigv4.check("\r\n".join(lines).encode(), body, {KEY: SECRET}, "eu-west-1", "states")
        target = self.headers["X-Amz-Target"]
        self.close_connection = True
        if flaw or not target.startswith("AWSStepFunctions."):
            answer = refusal("InvalidSignatureException", flaw or target)
        else:
            answer = self.service.answer(target.split(".")[1], json.loads(body))
        if answer is None:
            return
        text = json.dumps(answer[1]).encode()
        self.send_response(answer[0])
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        try:
            self.wfile.write(text)
        except OSError:
            pass  # The client was killed.

    def log_message(self, *args):
        pass
