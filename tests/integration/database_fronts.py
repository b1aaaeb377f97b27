"""Each front end on a PostgreSQL store: all that changes is the URL."""

import json
import os
import sys
import urllib.request

from files import write
import postgres
from lambda_api import Sandbox
from patience import PATIENCE
from tap import PROGRAM, TOP, Idem, equal, kill_session, main, test

BUILT = os.path.dirname(PROGRAM)
os.environ.setdefault(
    "IDEM_NGINX_MODULE", os.path.join(BUILT, "nginx/ngx_http_idempotency_module.so")
)
sys.path.append(os.path.join(TOP, "tests", "queues"))
import nginx  # noqa: E402
import rig  # noqa: E402

# Where the module finds libidem-postgres, which is not installed.
LIBRARIES = {"LD_LIBRARY_PATH": BUILT}
AS_USER = ["--user", "root"] if os.getuid() == 0 else []


def here(schema):
    """The program on a new schema."""
    idem = Idem(f"{postgres.shared().url}&schema={schema}")
    equal(idem("store", "create").status, 0)
    return idem


def records(idem):
    """How many records of each status."""
    counts = {}
    for line in idem("list", "--all", "--json").stdout.splitlines():
        status = json.loads(line)["status"]
        counts[status] = counts.get(status, 0) + 1
    return counts


@test
def the_gateway_answers_a_retry_from_the_record():
    """idem gateway in front of a service: 201, the same 201 as a replay, and one
    execution, which idem show shows. What libpq reads in the environment reaches nginx."""
    nginx.need()
    idem = here("gateway")
    short = Idem(f"postgres:///{postgres.DATABASE}?schema=gateway")
    libpq = {"PGHOST": postgres.shared().folder, "PGUSER": postgres.USER}
    with nginx.Upstream() as up:
        service = f"http://127.0.0.1:{up.port}"
        args = ("gateway", "-u", service, "-l", "0", "--global-scope", *AS_USER)
        process = short.start(*args, env={**LIBRARIES, **libpq, "TMPDIR": os.getcwd()})
        try:
            url = process.stdout.readline().decode().strip()
            assert url, process.stderr.read()
            answers = []
            for _ in range(2):
                ask = urllib.request.Request(
                    url + "/pay", b"x", {"Idempotency-Key": "order-42"}, method="POST"
                )
                with urllib.request.urlopen(ask, timeout=PATIENCE) as got:
                    replayed = got.headers.get("Idempotent-Replayed")
                    answers.append((got.status, got.read(), replayed))
        finally:
            process.terminate()
            process.wait(PATIENCE)
            kill_session(process)
            process.stdout.close()
            process.stderr.close()
        equal([a[2] for a in answers], [None, "true"])
        equal(answers[0][:2], answers[1][:2])
        equal(answers[0][0], 201)
        equal(up.executions(), 1)
    equal(json.loads(idem("show", "--json", "order-42").stdout)["status"], "completed")


@test
def an_event_is_handled_once():
    """idem lambda: the response to an event that comes again is the one on record, also
    after a freeze in which the server ended the connection."""
    idem = here("lambda")
    write("handler", "#!/bin/sh\ncat\necho effect >>ledger\n", 0o755)
    with Sandbox("handler", env={"IDEM_STORE": idem.store}) as box:
        event = {"idempotencyKey": "a", "text": "Grüße"}
        first = box.invoke(event)
        equal((first.kind, first.json()), ("response", event))
        again = box.invoke(event)
        equal((again.kind, again.body), ("response", first.body))
        assert box.idle.wait(PATIENCE)
        postgres.shared().psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'idem'"
        )
        other = {"idempotencyKey": "b"}
        equal([box.invoke(e).json() for e in (other, event, other)], [other, event, other])
        equal((box.starts, box.kills), (1, 0))
    equal(rig.ledger(), ["effect"] * 2)
    equal(records(idem), {"completed": 2})


if __name__ == "__main__":
    main()
