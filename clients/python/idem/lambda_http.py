"""Events of HTTP as requests, and answers as Lambda takes them: API Gateway, load
balancers, function URLs, VPC Lattice."""

from __future__ import annotations

import base64
import json
from typing import Any, Dict, Optional, Tuple

from .http import Headers

Event = Dict[str, Any]


def pairs_of(headers: Optional[Dict[str, Any]]) -> Headers:
    lists = {name: v if isinstance(v, list) else [v] for name, v in (headers or {}).items()}
    return [(name, str(value)) for name, values in lists.items() for value in values]


def body_of(of: Event) -> bytes:
    text = of.get("body") or ""
    is_base64 = of.get("isBase64Encoded") or of.get("is_base64_encoded")
    return base64.b64decode(text) if is_base64 else text.encode()


def request_of(event: Event) -> Tuple[str, str, Headers, bytes]:
    """Method, target, headers and body."""
    http = (event.get("requestContext") or {}).get("http") or {}
    method = http.get("method") or event.get("httpMethod") or event.get("method") or ""
    path = event.get("rawPath") or event.get("path") or event.get("raw_path")
    query = event.get("rawQueryString")
    if query is None:
        names = ("multiValueQueryStringParameters", "queryStringParameters")
        given = [event.get(name) for name in (*names, "query_string_parameters")]
        query = json.dumps(next((one for one in given if one), {}))
    headers = pairs_of(event.get("multiValueHeaders") or event.get("headers"))
    return method, f"{path}?{query}", headers, body_of(event)


def whole(value: Any) -> Event:
    """What Lambda makes of any other value."""
    if isinstance(value, dict) and "statusCode" in value:
        return value
    kind = {"Content-Type": "application/json"}
    return {"statusCode": 200, "headers": kind, "body": json.dumps(value)}


def headers_of(response: Event) -> Headers:
    more = response.get("multiValueHeaders") or {}
    return pairs_of({**(response.get("headers") or {}), **more})


def marked(response: Event, name: str, text: str) -> Event:
    is_list = bool(response.get("multiValueHeaders"))
    place = "multiValueHeaders" if is_list else "headers"
    return {**response, place: {**(response.get(place) or {}), name: [text] if is_list else text}}


def response_of(answer: Tuple[int, Headers, bytes], event: Event) -> Event:
    status, headers, body = answer
    lists: Dict[str, Any] = {}
    for name, value in headers:
        lists.setdefault(name, []).append(value)
    try:
        text, is_base64 = body.decode(), False
    except UnicodeDecodeError:
        text, is_base64 = base64.b64encode(body).decode(), True
    found = {"statusCode": status, "body": text, "isBase64Encoded": is_base64}
    if event.get("multiValueHeaders") and not event.get("headers"):
        return {**found, "multiValueHeaders": lists}
    return {**found, "headers": {name: ", ".join(values) for name, values in lists.items()}}
