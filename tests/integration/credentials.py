"""Credentials from every source that AWS users know, against scripted ones."""

import contextlib
import json
import os
import pathlib
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from email.utils import formatdate

import dynamo
from files import write
from kept import kept
from patience import PATIENCE, in_time
import tap
from aws_server import SECRETS, Server
from tap import equal, test
import web

HERE = os.path.join(os.path.dirname(tap.PROGRAM), "tests", "integration")
CLIENT = os.path.join(HERE, "aws_client")
SHIM = os.path.join(HERE, "libaws_shim.so")
EXPIRED = b'{"__type":"com.amazon.coral.service#ExpiredTokenException","message":"over"}'

# Nothing of the machine that runs the tests; files are below the test's folder.
BARE = {
    name: None
    for name in (*os.environ, "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")
    if name.startswith("AWS_") or name.lower().endswith("_proxy")
}
BARE["AWS_EC2_METADATA_DISABLED"] = "true"


def secret_of(key):
    """Each key has a secret of its own; none of them may ever be shown."""
    return SECRETS.setdefault(key, f"canary/{key}+secret")


def keys(key, token=None):
    """The lines of a profile that has its own keys."""
    lines = f"aws_access_key_id = {key}\naws_secret_access_key = {secret_of(key)}\n"
    return lines + (f"aws_session_token = {token}\n" if token else "")


def when(seconds):
    """A time from now, as it is written in answers."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def document(key, token="Token", **more):
    """Keys as endpoints and programs give them."""
    text = {"AccessKeyId": key, "SecretAccessKey": secret_of(key), **more}
    text[token] = f"canary-token-of-{key}"
    return json.dumps({**text, "Expiration": when(3600)})


class Source(web.Server):
    """An HTTP server that plays a source: @answer(request) gives a status and a
    text. It keeps what it saw."""

    def __init__(self, answer):
        source = self
        self.seen = []
        self.answer = answer

        class Handler(web.Handler):
            """One request."""

            def handle_one(self):
                self.body = web.Handler.body(self)
                source.seen.append(self)
                status, text = source.answer(self)
                self.send_response = self.send_response_only
                self.say(status, text.encode(), [("Date", formatdate(time.time(), usegmt=True))])

            do_GET = do_PUT = do_POST = handle_one

        super().__init__(Handler)
        self.port = self.server_port

    def lines(self):
        return [f"{request.command} {request.path}" for request in self.seen]


def in_turn(*answers):
    """The answers one after the other, and the last one for ever."""
    left = list(answers)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


def client(url, script, env=None, timeout=60, **options):
    """What aws_client says to @script, one JSON object for each line."""
    done = tap.run(
        [CLIENT, url, *(f"{name}={value}" for name, value in options.items())],
        {**BARE, **(env or {})},
        input="".join(f"{line}\n" for line in script).encode(),
        timeout=timeout,
    )
    assert b"canary" not in done.stdout, done.stdout
    equal(done.stderr, b"")
    return [json.loads(line) for line in done.stdout.splitlines()]


def post(env=None, answers=None, posts=("ok",), timeout_ms=20000, pause_ms=0):
    """Send one request after the other to a server; (what came of them, server)."""
    script = []
    for action in posts:
        script += [f"post x {timeout_ms} - Test.{action} ={{}}", "go 1"]
        script += [f"pause {pause_ms}"] if pause_ms else []
    with Server(answers or {}) as server:
        results = client(server.url, script, env)
    # A port is used again: somebody else's client may still look for its server.
    server.seen = [r for r in server.seen if r.headers.get("x-amz-target", "").startswith("Test.")]
    return results, server


def used(server):
    """The access keys of the requests, which are all signed as they should be."""
    assert server.all_signed() > 0
    heads = (request.head.decode() for request in server.seen)
    return [head.partition("Credential=")[2].partition("/")[0] for head in heads]


def refused(env=None):
    """The sentence with which a request ends that nobody could sign."""
    (result,), server = post(env)
    equal((result.get("outcome"), result.get("code")), ("NOT_SENT", "CONFIG"))
    equal(server.seen, [])
    return result["text"]


def expire_once():
    """A server's answer: the first credentials that it sees have expired."""
    first = []

    def answer(connection, request):
        head = request.head.partition(b"Credential=")[2].partition(b"/")[0]
        first.append(head)
        if head == first[0]:
            connection.answer(EXPIRED, "400 Bad Request")
        else:
            connection.crc_answer()

    return answer


# ---- Files -----------------------------------------------------------------


@test
def region_and_endpoint_come_from_the_profile():
    """A profile names region and endpoint, for one service or for all; variables win."""
    with Server({}) as server, Server({}) as other:
        write(
            ".aws/config",
            "[default]\nregion = eu-north-1\nservices = mine\nendpoint_url = http://127.0.0.1:1\n"
            + keys("AKIDFILE")
            + f"[services mine]\ndynamodb =\n  endpoint_url = {server.url}\n",
        )
        script = ["post x 5000 - Test.ok ={}", "go 1"]
        equal(client("", script)[0]["outcome"], "ANSWERED")
        assert b"/eu-north-1/dynamodb/" in server.seen[0].head
        env = {"AWS_ENDPOINT_URL_DYNAMODB": other.url, "AWS_REGION": "eu-west-3"}
        equal(client("", script, env)[0]["outcome"], "ANSWERED")
        assert b"/eu-west-3/dynamodb/" in other.seen[0].head


@test
def a_file_that_was_written_anew_is_read_anew():
    """When the service says that a profile's keys have expired, its file is read again."""
    write(".aws/credentials", "[default]\n" + keys("AKIDOLD", "canary-old"))

    def answer(connection, request):
        if b"AKIDOLD" in request.head:
            write(".aws/credentials", "[default]\n" + keys("AKIDNEW", "canary-new"))
            connection.answer(EXPIRED, "400 Bad Request")
        else:
            connection.crc_answer()

    (result,), server = post(answers={"ok": answer})
    equal((result["outcome"], result["status"], result["signed_anew"]), ("ANSWERED", 200, 1))
    equal(used(server), ["AKIDOLD", "AKIDNEW"])


# ---- Programs --------------------------------------------------------------


def script(name, text):
    write(name, "#!/bin/sh\n" + text, 0o700)
    return os.path.abspath(name)


@test
def a_program_gives_keys_and_is_run_again():
    """credential_process is run once for many requests, and again when they end."""
    for number in 1, 2:
        write(f"{number}.json", document(f"AKIDRUN{number}", token="SessionToken", Version=1))
    run = script("give", 'echo x >> runs; cat "$(wc -l < runs).json"\n')
    write(".aws/config", f'[default]\ncredential_process = "{run}" --flag\n')
    results, server = post(posts=["ok", "ok"], answers={"late": expire_once()})
    equal([r["outcome"] for r in results], ["ANSWERED"] * 2)
    equal(used(server), ["AKIDRUN1"] * 2)
    os.unlink("runs")
    (_, result), server = post(posts=["ok", "late"], answers={"late": expire_once()})
    equal((result["status"], result["signed_anew"]), (200, 1))
    equal(used(server), ["AKIDRUN1", "AKIDRUN1", "AKIDRUN2"])


@test
def closing_does_not_wait_for_a_program():
    """A client that is closed while a program runs ends it, and is gone at once."""
    write(".aws/config", f"[default]\ncredential_process = {script('hang', 'echo $$ > pid; exec sleep 60')}\n")
    started = time.monotonic()
    (result,), _ = post(timeout_ms=4000)
    equal(result["outcome"], "NOT_SENT")
    in_time(time.monotonic() - started, 40)
    with open("pid", encoding="ascii") as file:
        equal(os.path.exists(f"/proc/{int(file.read())}"), False)


# ---- Containers --------------------------------------------------------------

FULL = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
RELATIVE = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
TOKEN = "AWS_CONTAINER_AUTHORIZATION_TOKEN"


@test
def a_container_gives_keys():
    """The container's endpoint is asked once, with its token, and again when keys end."""
    answers = in_turn((200, document("AKIDBOX1")), (200, document("AKIDBOX2")))
    write("token", "canary-first\n")
    with Source(answers) as source:
        env = {FULL: f"{source.url}/get?a=1", f"{TOKEN}_FILE": "token", TOKEN: "not this one"}
        _, server = post(env, {"late": expire_once()}, ["ok", "ok", "late"])
        equal(used(server), ["AKIDBOX1"] * 3 + ["AKIDBOX2"])
        equal(server.seen[0].headers["x-amz-security-token"], "canary-token-of-AKIDBOX1")
        equal(source.lines(), ["GET /get?a=1"] * 2)
        equal([r.headers["Authorization"] for r in source.seen], ["canary-first"] * 2)
        env = {FULL: f"{source.url}/get", TOKEN: "Basic abcd"}
        equal(used(post(env)[1]), ["AKIDBOX2"])
        equal(source.seen[-1].headers["Authorization"], "Basic abcd")


@test
def a_container_is_found_at_its_usual_address():
    """The relative variable asks 169.254.170.2, and wins over the full one."""
    if tap.SANITIZED:
        tap.skip("a sanitizer wants to be loaded first")
    with Source(in_turn((200, document("AKIDECS")))) as source:
        env = {RELATIVE: "/v2/credentials/x", FULL: "http://127.0.0.1:1/"}
        _, server = post({**env, "LD_PRELOAD": SHIM, "SHIM_LINK_LOCAL": source.port})
        equal(used(server), ["AKIDECS"])
        equal(source.lines(), ["GET /v2/credentials/x"])
        equal(source.seen[0].headers["Host"], "169.254.170.2")


@test
def a_container_that_fails_is_named():
    """A container's endpoint that fails is tried twice and named; nobody else is asked."""
    for answer, asked, says in (
        ((403, "canary-no"), 1, "credentials endpoint answered with status 403"),
        ((500, ""), 2, "credentials endpoint answered with status 500"),
        ((200, "canary {"), 1, "credentials endpoint gave no JSON object"),
        ((200, "{}"), 1, "gave no AccessKeyId and SecretAccessKey"),
        ((200, document("AKID X")), 1, "AccessKeyId contains an invalid character"),
        ((200, "x" * 70000), 2, "the answer is too long"),
    ):
        with Source(in_turn(answer)) as source:
            (result,), server = post({FULL: source.url}, timeout_ms=3000)
            equal((result["outcome"], server.seen), ("NOT_SENT", []))
            assert says in result["text"], result
            equal(len(source.seen), asked)
    with Source(in_turn((503, ""), (200, document("AKIDOK")))) as source:
        equal(used(post({FULL: source.url})[1]), ["AKIDOK"])


@test
def not_everybody_is_a_container():
    """Over plain http only this machine and AWS's own addresses are asked."""
    for url, says in (
        ("http://example.com/x", "names example.com, which may not be asked over plain"),
        ("http://169.254.170.22/", "may not be asked"),
        ("http://[fd00:ec2::254]/", "may not be asked"),
        ("http://user@127.0.0.1/", "is not a URL"),
        ("ftp://127.0.0.1/", "is not a URL"),
    ):
        text = refused({FULL: url})
        assert says in text, text
    assert "does not begin with a /" in refused({RELATIVE: "x"})
    text = refused({FULL: "http://127.0.0.1:1/", f"{TOKEN}_FILE": "nowhere"})
    assert f"cannot read nowhere, which {TOKEN}_FILE names" in text, text


@test
def a_slow_source_keeps_nobody():
    """While a source takes its time the client works on, and deadlines hold."""

    def answer(request):
        time.sleep(2.5)
        return 200, document("AKIDSLOW")

    with Source(answer) as source:
        (result,), _ = post({FULL: source.url}, timeout_ms=300)
        equal(result["outcome"], "NOT_SENT")
        assert result["ms"] >= 250, result
        in_time(result["ms"] / 1000, 2.4, "the deadline of 0.3 s")
        assert "timed out waiting for AWS credentials from the container's endpoint" in result["text"], result
        script = ["post a 300 - Test.ok ={}", "post b 20000 - Test.ok ={}", "go 2"]
        with Server({}) as server:
            first, second = client(server.url, script, {FULL: source.url})
            equal((first["name"], first["outcome"]), ("a", "NOT_SENT"))
            equal((second["name"], second["outcome"]), ("b", "ANSWERED"))
        equal(len(source.seen), 2)


# ---- STS ---------------------------------------------------------------------


def lent(key):
    """What STS answers."""
    action = "AssumeRoleWithWebIdentity"
    return f"""<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <{action}Result>
    <Audience>x</Audience>
    <AssumedRoleUser><Arn>arn</Arn><AssumedRoleId>id</AssumedRoleId></AssumedRoleUser>
    <Credentials>
      <SessionToken>canary-token-of-{key}</SessionToken>
      <SecretAccessKey>{secret_of(key)}</SecretAccessKey>
      <Expiration>{when(3600)}</Expiration>
      <AccessKeyId>{key}</AccessKeyId>
    </Credentials>
  </{action}Result>
  <ResponseMetadata><RequestId>r</RequestId></ResponseMetadata>
</{action}Response>"""


def denial(code, message):
    return f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"


def form(request):
    return dict(urllib.parse.parse_qsl(request.body.decode(), strict_parsing=True))


ROLE = "arn:aws:iam::123456789012:role/work"


@test
def a_web_identity_is_changed_for_a_role():
    """The token of a web identity is sent to STS, unsigned, and read anew each time."""
    write("jwt", "canary.jwt+one/=\n")

    def answer(request):
        write("jwt", "canary.jwt+two")
        return 200, lent(f"AKIDWEB{len(source.seen)}")

    with Source(answer) as source:
        env = {
            "AWS_WEB_IDENTITY_TOKEN_FILE": "jwt",
            "AWS_ROLE_ARN": ROLE,
            "AWS_ROLE_SESSION_NAME": "me@here",
            "AWS_ENDPOINT_URL_STS": source.url,
        }
        _, server = post(env, {"late": expire_once()}, ["ok", "late"])
        equal(used(server), ["AKIDWEB1"] * 2 + ["AKIDWEB2"])
        wanted = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": ROLE,
            "RoleSessionName": "me@here",
        }
        equal(form(source.seen[0]), {**wanted, "WebIdentityToken": "canary.jwt+one/="})
        equal(form(source.seen[1]), {**wanted, "WebIdentityToken": "canary.jwt+two"})
        equal(source.seen[0].headers["Authorization"], None)
        del env["AWS_ROLE_SESSION_NAME"]
        equal(used(post(env)[1]), ["AKIDWEB3"])
        equal(form(source.seen[2])["RoleSessionName"], "idem")


@test
def a_web_identity_that_fails_is_named():
    """What STS says when it refuses is told, with the role; nothing is told of the token."""
    write("jwt", "canary.jwt")
    env = {"AWS_WEB_IDENTITY_TOKEN_FILE": "jwt"}
    assert "AWS_ROLE_ARN" in refused(env)
    env["AWS_ROLE_ARN"] = ROLE
    for status, text, says in (
        (403, denial("AccessDenied", "Not authorized"), f"{ROLE}: status 403, AccessDenied: Not authorized"),
        (400, "canary <nonsense>", f"{ROLE}: status 400"),
        (500, "", "status 500"),
        (200, "<canary/>", "without credentials"),
        (200, lent("AKIDX").replace("AccessKeyId", "Other"), "without AccessKeyId"),
        (200, lent("AKIDX").replace("Z<", "<"), "without an Expiration"),
        (200, lent("AKID&amp;"), "without AccessKeyId"),
    ):
        with Source(in_turn((status, text))) as source:
            env["AWS_ENDPOINT_URL_STS"] = source.url
            (result,), _ = post(env, timeout_ms=3000)
            equal(result["outcome"], "NOT_SENT")
            assert says in result["text"], result
            equal(len(source.seen), 2 if status == 500 else 1)
    write("jwt", "\n")
    assert "is empty" in refused(env)


CLI = """test "$*" = "configure export-credentials --profile work" || exit 2
cat given.json
"""


@test
def a_role_of_another_profile_comes_from_the_cli():
    """A profile that takes a role is refused by a line that gives its credentials: the
    AWS CLI assumes the role, and idem runs it."""
    for lines in (
        "source_profile = base\n",
        "source_profile = base\nmfa_serial = 1\n",
        "credential_source = Ec2InstanceMetadata\n",
        "web_identity_token_file = jwt\n",
        "source_profile = work\n" + keys("AKIDBASE"),
        "",
    ):
        write(".aws/config", f"[profile work]\nrole_arn = {ROLE}\n{lines}[profile base]\n{keys('AKIDBASE')}")
        text = refused({"AWS_PROFILE": "work"})
        assert text.startswith('the profile "work" has role_arn'), text
        said = re.search("to a profile with (credential_process = .*)", text)
        assert said, text
        with open(".aws/config", "a", encoding="utf-8") as file:
            file.write(f"[profile idem]\n{said[1]}\n")
        os.makedirs("bin", exist_ok=True)
        script("bin/aws", CLI)
        write("given.json", document("AKIDROLE", token="SessionToken", Version=1))
        path = f"{os.path.abspath('bin')}:{os.environ['PATH']}"
        _, server = post({"AWS_PROFILE": "idem", "PATH": path})
        equal(used(server), ["AKIDROLE"])


# ---- Instances ---------------------------------------------------------------

ROLES = "/latest/meta-data/iam/security-credentials/"


def instance(role="web+1", key="AKIDEC2"):
    """A metadata service that wants its token."""

    def answer(request):
        if request.command == "PUT" and request.path == "/latest/api/token":
            ttl = request.headers["X-aws-ec2-metadata-token-ttl-seconds"]
            return (200, "session==") if ttl == "21600" else (400, "")
        if request.headers["X-aws-ec2-metadata-token"] != "session==":
            return 401, ""
        paths = {
            ROLES: role,
            ROLES + str(role): document(key, Code="Success"),
        }
        text = paths.get(request.path)
        return (200, text) if text else (404, "canary")

    return answer


def enabled(**env):
    return {"AWS_EC2_METADATA_DISABLED": "false", **env}


@test
def an_instance_gives_keys():
    """The metadata service is asked for a token, a role, and its keys."""
    with Source(instance()) as source:
        env = enabled(AWS_EC2_METADATA_SERVICE_ENDPOINT=source.url + "/")
        equal(used(post(env)[1]), ["AKIDEC2"])
        equal(source.lines(), ["PUT /latest/api/token", f"GET {ROLES}", f"GET {ROLES}web+1"])
        refused({"AWS_EC2_METADATA_SERVICE_ENDPOINT": source.url})
        equal(len(source.seen), 3)


@test
def an_instance_is_found_at_its_usual_address():
    """169.254.169.254 is asked where no variable names another address."""
    if tap.SANITIZED:
        tap.skip("a sanitizer wants to be loaded first")
    metadata = instance()
    with Source(lambda r: (200, "{}") if r.command == "POST" else metadata(r)) as source:
        env = enabled(LD_PRELOAD=SHIM, SHIM_LINK_LOCAL=source.port, AWS_REGION="eu-south-2")
        script = ["post x 20000 - Test.ok ={}", "go 1"]
        (result,) = client("http://169.254.9.9/", script, env, insecure=1)
        equal(result["outcome"], "ANSWERED")
        equal(source.seen[0].headers["Host"], "169.254.169.254")
        assert "/eu-south-2/dynamodb/" in source.seen[-1].headers["Authorization"]


@test
def an_instance_that_fails_is_named():
    """A metadata service that fails, or has no role, is named, with what to do."""
    for answer, says in (
        (instance(role=None), "lists no role: attach an instance profile"),
        (instance(role="../x"), "lists no role: attach an instance profile"),
        (lambda r: (403, ""), "no AWS credentials in the environment, the profile "
         '"default" or a container; the instance metadata service answered PUT '
         '/latest/api/token with status 403; set AWS_PROFILE'),
        (lambda r: (200, "two words"), "session token of the instance metadata service contains a"),
    ):
        with Source(answer) as source:
            text = refused(enabled(AWS_EC2_METADATA_SERVICE_ENDPOINT=source.url))
            assert says in text, text
    text = refused(enabled(AWS_EC2_METADATA_SERVICE_ENDPOINT="http://127.0.0.1:1"))
    for part in ("no AWS credentials", "the instance metadata service: ", "aws configure"):
        assert part in text, text
    with Source(lambda r: (500, "") if len(source.seen) % 2 else instance()(r)) as source:
        env = enabled(AWS_EC2_METADATA_SERVICE_ENDPOINT=source.url)
        equal(used(post(env)[1]), ["AKIDEC2"])
        equal(len(source.seen), 6)


# ---- In the middle of work ---------------------------------------------------


@contextlib.contextmanager
def table(box):
    """A table behind a service for which keys in dead have expired as soon as
    there is a file named over; @box gives the keys. (Its environment, dead)"""
    dead = set()
    with dynamo.server("dynoxide") as url:

        def answer(request):
            key = request.headers["Authorization"].partition("Credential=")[2].partition("/")[0]
            if key in dead and os.path.exists("over"):
                return 400, EXPIRED.decode()
            headers = {k: v for k, v in request.headers.items() if k.lower() != "host"}
            sent = urllib.request.Request(url, request.body, headers)
            try:
                with urllib.request.urlopen(sent, timeout=PATIENCE) as got:
                    return got.status, got.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        with Source(answer) as service, Source(box) as source:
            env = {
                **BARE,
                FULL: source.url,
                "AWS_REGION": "eu-west-1",
                "IDEM_STORE": f"dynamodb://orders?endpoint={service.url}",
            }
            done = tap.run([tap.PROGRAM, "store", "create"], env)
            equal(done.status, 0)
            source.seen.clear()
            yield env, dead, source


def idem(env, *args):
    done = tap.run([tap.PROGRAM, *args], env, timeout=60)
    for text in (done.stdout, done.stderr):
        assert b"canary" not in text, text
    return done


WORK = ("run", "-k", "pay-1", "--lease", "30s", "--", "sh", "-c", "echo x >> ran; touch over; echo paid")


def ran():
    return pathlib.Path("ran").read_text(encoding="ascii").count("x")


@test(rows=[20])
def credentials_that_expire_in_mid_work_are_renewed():
    """Credentials that end while the work goes on are fetched anew, and its outcome is
    recorded; without new ones the journal keeps it until there are some."""
    box = in_turn((200, document("AKIDOLD")), (200, document("AKIDOLD")), (200, document("AKIDNEW")))
    with table(box) as (env, dead, source):
        dead.add("AKIDOLD")
        done = idem(env, *WORK)
        equal((done.status, done.stdout, done.stderr), (0, b"paid\n", b""))
        equal(len(source.seen), 2)
        equal(kept("journal"), [])
        again = idem(env, *WORK)
        equal((again.status, again.stdout, ran()), (0, b"paid\n", 1))

        source.answer = in_turn((200, document("AKIDLATE")))
        dead.add("AKIDLATE")
        os.unlink("over")
        late = ("run", "-k", "pay-2", *WORK[3:])
        done = idem(env, *late)
        equal((done.status, done.stdout, len(kept("journal"))), (80, b"paid\n", 1))
        dead.clear()
        equal(idem(env, "reconcile").status, 0)
        again = idem(env, *late)
        equal((again.status, again.stdout, ran()), (0, b"paid\n", 2))


if __name__ == "__main__":
    tap.main()
