"""Check AWS Signature Version 4 from the bytes of a request, as a service would.

It shares no code with aws/client/sigv4.c, and starts from the bytes on the socket.
"""

import hashlib
import hmac
import re
import urllib.parse

CREDENTIAL = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/\s]+)/(\d{8})/([^/\s]+)/([^/\s]+)/aws4_request"
    r", SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)
# The signature must cover these headers: they state who asks for what.
MUST_SIGN = ("host", "content-type")


def parse(head):
    """Split the @head of a request; return (method, target, [(name, value)])."""
    lines = head.decode("latin-1").split("\r\n")
    method, target, version = lines[0].split(" ")
    assert version == "HTTP/1.1", lines[0]
    headers = []
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        assert colon and re.fullmatch(r"[A-Za-z0-9-]+", name), line
        headers.append((name.lower(), value.strip(" \t")))
    return method, target, headers


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signing_key(secret, date, region, service):
    key = ("AWS4" + secret).encode()
    for part in (date, region, service, "aws4_request"):
        key = mac(key, part)
    return key


def canonical(method, target, headers, signed, body):
    """Return the canonical request, from headers as they were received."""
    path, _, query = target.partition("?")
    path = urllib.parse.quote(path, safe="/-_.~") if path != "/" else path
    pairs = sorted(query.split("&")) if query else []
    lines = [method, path, "&".join(p if "=" in p else p + "=" for p in pairs)]
    for name in signed:
        values = [v for n, v in headers if n == name]
        lines.append(name + ":" + ",".join(re.sub(" +", " ", v) for v in values))
    lines += ["", ";".join(signed), hashlib.sha256(body).hexdigest()]
    return "\n".join(lines)


def check(head, body, secrets, region=None, service=None):
    """Return what is wrong with the signature of a request, or None.

    @secrets maps access keys to secret keys.
    """
    method, target, headers = parse(head)
    names = [n for n, _ in headers]
    values = dict(headers)
    for name in set(names):
        if names.count(name) > 1:
            return f"{name} is there {names.count(name)} times"
    match = CREDENTIAL.fullmatch(values.get("authorization", ""))
    if not match:
        return f"no good Authorization: {values.get('authorization')!r}"
    access, date, its_region, its_service, signed, signature = match.groups()
    signed = signed.split(";")
    if signed != sorted(set(signed)):
        return f"signed headers are not in order: {signed}"
    for name in signed:
        if name not in values:
            return f"{name} is signed and was not sent"
    for name in names:
        if (name in MUST_SIGN or name.startswith("x-amz-")) and name not in signed:
            return f"{name} was sent and is not signed"
    if "host" not in signed or "x-amz-date" not in signed:
        return f"host and x-amz-date must be signed: {signed}"
    stamp = values["x-amz-date"]
    if not re.fullmatch(date + r"T\d{6}Z", stamp):
        return f"the time {stamp} is not of the day {date}"
    if region not in (None, its_region) or service not in (None, its_service):
        return f"signed for {its_region}/{its_service}"
    if access not in secrets:
        return f"no such access key: {access}"
    text = canonical(method, target, headers, signed, body)
    digest = hashlib.sha256(text.encode("latin-1")).hexdigest()
    scope = f"{date}/{its_region}/{its_service}/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"
    key = signing_key(secrets[access], date, its_region, its_service)
    if not hmac.compare_digest(mac(key, to_sign).hex(), signature):
        return "the signature does not match:\n" + text
    return None
