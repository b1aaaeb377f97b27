"""Credentials from every source that AWS users know, against scripted ones."""

import json
import os
import stat
import time

import tap
from aws_server import SECRETS, Connection, Server
from tap import equal, test

CLIENT = os.path.join(
    os.path.dirname(tap.PROGRAM), "tests", "integration", "aws_client"
)
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


def write(path, text):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def keys(key, token=None):
    """The lines of a profile that has its own keys."""
    lines = f"aws_access_key_id = {key}\naws_secret_access_key = {secret_of(key)}\n"
    return lines + (f"aws_session_token = {token}\n" if token else "")


def when(seconds):
    """A time from now, as it is written in answers."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def document(key, token="Token", expires=3600, **more):
    """Keys as endpoints and programs give them."""
    text = {"AccessKeyId": key, "SecretAccessKey": secret_of(key), **more}
    text[token] = f"canary-token-of-{key}"
    if expires is not None:
        text["Expiration"] = when(expires)
    return json.dumps(text)


def client(url, script, env=None, timeout=60, **options):
    """What aws_client says to @script, one JSON object for each line."""
    done = tap.run(
        [CLIENT, url, *(f"{name}={value}" for name, value in options.items())],
        {**BARE, **(env or {})},
        input="".join(f"{line}\n" for line in script).encode(),
        timeout=timeout,
    )
    for text in (done.stdout, done.stderr):
        assert b"canary" not in text, text
    return [json.loads(line) for line in done.stdout.splitlines()]


def post(env=None, answers=None, posts=("ok",), timeout_ms=20000, pause_ms=0):
    """Send one request after the other to a server; (what came of them, server)."""
    script = []
    for action in posts:
        script += [f"post x {timeout_ms} - Test.{action} ={{}}", "go 1"]
        script += [f"pause {pause_ms}"] if pause_ms else []
    with Server(answers or {}) as server:
        return client(server.url, script, env), server


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


def expire_always(connection, request):
    connection.answer(EXPIRED, "400 Bad Request")


# ---- Files -----------------------------------------------------------------


@test
def a_profile_gives_its_keys():
    """Keys of the credentials file sign, those of AWS_PROFILE before the default."""
    write(".aws/credentials", "[default]\n" + keys("AKIDFILE") + "[w]\n" + keys("AKIDW", "canary-w"))
    (result,), server = post()
    equal((result["outcome"], used(server)), ("ANSWERED", ["AKIDFILE"]))
    assert "x-amz-security-token" not in server.seen[0].headers
    (result,), server = post({"AWS_PROFILE": "w"})
    equal((result["outcome"], used(server)), ("ANSWERED", ["AKIDW"]))
    equal(server.seen[0].headers["x-amz-security-token"], "canary-w")


@test
def the_environment_comes_first():
    """Keys in the environment win over a profile; half of them are an error."""
    write(".aws/credentials", "[w]\n" + keys("AKIDW"))
    env = {"AWS_ACCESS_KEY_ID": "AKIDENV", "AWS_SECRET_ACCESS_KEY": secret_of("AKIDENV")}
    _, server = post({**env, "AWS_PROFILE": "w"})
    equal(used(server), ["AKIDENV"])
    (result,) = client("http://127.0.0.1:1", [], {"AWS_ACCESS_KEY_ID": "AKIDENV"})
    equal(result["failed"], "CONFIG")
    assert "AWS_SECRET_ACCESS_KEY is not set" in result["text"], result


@test
def files_are_where_the_variables_say():
    """AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name other files."""
    write("here/keys", "[default]\n" + keys("AKIDHERE"))
    write("here/config", "[profile c]\n" + keys("AKIDCONF"))
    where = {"AWS_SHARED_CREDENTIALS_FILE": "here/keys", "AWS_CONFIG_FILE": "~/here/config"}
    equal(used(post(where)[1]), ["AKIDHERE"])
    equal(used(post({**where, "AWS_PROFILE": "c"})[1]), ["AKIDCONF"])


@test
def what_is_wrong_is_said_in_a_sentence():
    """Without credentials, or with what we do not do, the sentence says what to do."""
    text = refused()
    for part in ("there are no AWS credentials", "AWS_PROFILE", "aws configure"):
        assert part in text, text
    write(".aws/config", "[default]\nsso_session = corp\n")
    text = refused()
    assert "aws configure export-credentials --profile default" in text, text
    write(".aws/config", "[default]\nregion\n")
    (result,) = client("http://127.0.0.1:1", [])
    assert "line 2 of" in result["text"] and "no =" in result["text"], result
    (result,) = client("http://127.0.0.1:1", [], {"AWS_PROFILE": "nobody", "AWS_CONFIG_FILE": "x"})
    assert '"nobody", which is neither in x nor in' in result["text"], result


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
    write(name, "#!/bin/sh\n" + text)
    os.chmod(name, stat.S_IRWXU)
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
def a_program_that_fails_is_named():
    """A credential_process that fails or prints nonsense is named, not quoted."""
    for text, says in (
        ("echo canary-nonsense", "credential_process gave no JSON object"),
        ("echo '{}'", "credential_process gave no AccessKeyId"),
    ):
        write(".aws/config", f"[default]\ncredential_process = {script('bad', text)}\n")
        assert says in refused(), says


@test
def closing_does_not_wait_for_a_program():
    """A client that is closed while a program runs ends it, and is gone at once."""
    write(".aws/config", f"[default]\ncredential_process = {script('hang', 'echo $$ > pid; exec sleep 60')}\n")
    started = time.monotonic()
    (result,), _ = post(timeout_ms=1500)
    equal(result["outcome"], "NOT_SENT")
    assert time.monotonic() - started < 20
    with open("pid", encoding="ascii") as file:
        equal(os.path.exists(f"/proc/{int(file.read())}"), False)


if __name__ == "__main__":
    tap.main()
