"""The programs of three articles on idempotency with DynamoDB, unchanged, on the part of
boto3's resource that they use.

    table = Table(url, "IdempotencyStore")
    LockTokens(table).begin("order_12345")                  # lock tokens
    with EventHandler(table, "message-1") as handler: ...   # event consumer
    idempotent(table)(handler)(event)                       # HTTP
"""

import functools
import json
import time
import urllib.error
from decimal import Decimal

import dynamo


class ConditionFailed(Exception):
    """ConditionalCheckFailedException; item: the old item, if the request asked for it."""

    def __init__(self, item=None):
        super().__init__("ConditionalCheckFailedException")
        self.item = item


def wire(value):
    """A value as boto3 writes it."""
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, (int, Decimal)):
        return {"N": str(value)}
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, list):
        return {"L": [wire(v) for v in value]}
    return {"M": {k: wire(v) for k, v in value.items()}}


def plain(value):
    """A value as boto3 reads it."""
    ((kind, inner),) = value.items()
    if kind == "N":
        return Decimal(inner)
    if kind == "NULL":
        return None
    if kind == "L":
        return [plain(v) for v in inner]
    if kind == "M":
        return {k: plain(v) for k, v in inner.items()}
    return inner


def item_of(answer):
    return {k: plain(v) for k, v in answer["Item"].items()} if "Item" in answer else None


class Table:
    """boto3.resource("dynamodb").Table(name)"""

    def __init__(self, url, name):
        self.url, self.name = url, name

    def call(self, operation, body):
        try:
            return dynamo.call(self.url, operation, {"TableName": self.name, **body})
        except urllib.error.HTTPError as error:
            answer = json.load(error)
            if answer["__type"].endswith("ConditionalCheckFailedException"):
                raise ConditionFailed(item_of(answer)) from None
            raise AssertionError(answer) from None

    def put_item(self, Item, **rest):  # pylint: disable=invalid-name
        self.call("PutItem", {"Item": {k: wire(v) for k, v in Item.items()}, **rest})

    def get_item(self, Key):  # pylint: disable=invalid-name
        answer = self.call("GetItem", {"Key": {k: wire(v) for k, v in Key.items()}})
        return {"Item": item_of(answer)} if "Item" in answer else {}

    def delete_item(self, Key):  # pylint: disable=invalid-name
        self.call("DeleteItem", {"Key": {k: wire(v) for k, v in Key.items()}})

    def update_item(self, Key, ExpressionAttributeValues, **rest):  # pylint: disable=invalid-name
        self.call(
            "UpdateItem",
            {
                "Key": {k: wire(v) for k, v in Key.items()},
                "ExpressionAttributeValues": {
                    k: wire(v) for k, v in ExpressionAttributeValues.items()
                },
                **rest,
            },
        )


def create(url, name, key, ttl, index=None):
    """Create the table of an article's template. Without @ttl it deletes nothing, like a
    table whose deletions take days. @index: the key of the index of the lock tokens."""
    more = {}
    attributes = [{"AttributeName": key, "AttributeType": "S"}]
    if index is not None:
        attributes.append({"AttributeName": index, "AttributeType": "S"})
        more["GlobalSecondaryIndexes"] = [
            {
                "IndexName": f"by-{index}",
                "KeySchema": [
                    {"AttributeName": index, "KeyType": "HASH"},
                    {"AttributeName": key, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ]
    dynamo.call(
        url,
        "CreateTable",
        {
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
            "AttributeDefinitions": attributes,
            **more,
        },
    )
    if ttl is not None:
        on = {"AttributeName": ttl, "Enabled": True}
        body = {"TableName": name, "TimeToLiveSpecification": on}
        dynamo.call(url, "UpdateTimeToLive", body)
    return Table(url, name)


def iso(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


# ---- Idempotency in Lambda, part 2: lock tokens ----


class LockTokens:
    """The program that the article describes in words. It writes null for what is missing,
    but for the status, because the index takes no null."""

    def __init__(self, table):
        self.table = table

    def begin(self, token, by="order_update_lambda/1", seconds=60, ttl=None, at=None):
        """Return None if the lock is ours, and otherwise the item."""
        now = time.time() if at is None else at
        item = {
            "lockToken": token,
            "lockedBy": by,
            "created": iso(now),
            "expectedCompletion": iso(now + seconds),
            "actualCompletion": None,
            "result": None,
            "ttl": ttl,
            "status": "inProgress",
        }
        try:
            self.table.put_item(
                Item=item,
                ConditionExpression="attribute_not_exists(lockToken)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ConditionFailed as refused:
            return refused.item
        return None

    def success(self, token, result):
        self.table.update_item(
            Key={"lockToken": token},
            UpdateExpression="SET actualCompletion = :now, #r = :result REMOVE #s",
            ExpressionAttributeNames={"#r": "result", "#s": "status"},
            ExpressionAttributeValues={":now": iso(time.time()), ":result": json.dumps(result)},
        )

    def failure(self, token, error):
        self.table.update_item(
            Key={"lockToken": token},
            UpdateExpression="SET actualCompletion = :now, #r = :result, #s = :status",
            ExpressionAttributeNames={"#r": "result", "#s": "status"},
            ExpressionAttributeValues={
                ":now": iso(time.time()),
                ":result": json.dumps(error),
                ":status": "error",
            },
        )


# ---- DynamoDB Idempotency: Conditional Writes for Resilient Event Consumers ----


class IdempotencyException(Exception):
    pass


class DuplicateInProgressException(IdempotencyException):
    pass


class DuplicateCompletedException(IdempotencyException):
    def __init__(self, response_data=None):
        super().__init__("already completed")
        self.response_data = response_data


class EventHandler:
    """IdempotencyHandler of b_two_phase_handler.py, which stores @result."""

    def __init__(self, table, key, timeout_seconds=30, result=None):
        self.table, self.idempotency_key = table, key
        self.timeout_seconds = timeout_seconds
        self.result = result if result is not None else {}

    def _check_existing_record(self):
        item = self.table.get_item(Key={"idempotencyKey": self.idempotency_key}).get("Item")
        if not item:
            raise IdempotencyException("Record disappeared unexpectedly.")
        status = item.get("status")
        if status == "COMPLETED":
            raise DuplicateCompletedException(item.get("responseData"))
        if status == "IN_PROGRESS":
            if item.get("expiryTimestamp", 0) < int(time.time()):
                raise IdempotencyException("Expired IN_PROGRESS record found. Retrying.")
            raise DuplicateInProgressException("already in progress")

    def __enter__(self):
        in_progress_expiry = int(time.time()) + int(self.timeout_seconds * 0.9)
        try:
            self.table.put_item(
                Item={
                    "idempotencyKey": self.idempotency_key,
                    "status": "IN_PROGRESS",
                    "expiryTimestamp": in_progress_expiry,
                },
                ConditionExpression="attribute_not_exists(idempotencyKey)",
            )
            return self
        except ConditionFailed:
            self._check_existing_record()

    def __exit__(self, exc_type, exc_val, exc_tb):
        if exc_type is not None:
            return
        try:
            self.table.update_item(
                Key={"idempotencyKey": self.idempotency_key},
                UpdateExpression="SET #status = :status, #expiry = :expiry, #resp = :resp",
                ExpressionAttributeNames={
                    "#status": "status",
                    "#expiry": "expiryTimestamp",
                    "#resp": "responseData",
                },
                ConditionExpression="#status = :in_progress_status",
                ExpressionAttributeValues={
                    ":status": "COMPLETED",
                    ":expiry": int(time.time()) + 24 * 3600,
                    ":resp": self.result,
                    ":in_progress_status": "IN_PROGRESS",
                },
            )
        except ConditionFailed:
            raise IdempotencyException("Failed to persist completion state.") from None


def first_pass(table, key):
    """a_first_pass_handler.py. Return False for a duplicate, which it skips."""
    try:
        table.put_item(
            Item={"idempotencyKey": key, "expiryTimestamp": int(time.time()) + 60},
            ConditionExpression="attribute_not_exists(idempotencyKey)",
        )
    except ConditionFailed:
        return False
    return True


# ---- Advanced Idempotency Patterns for Serverless APIs with DynamoDB ----


def answer_409():
    return {"statusCode": 409, "body": json.dumps({"error": "Request in progress"})}


def http_begin(table, key, ttl_seconds=3600, lock_seconds=10):
    """Do steps 1 and 2 of the decorator. Return None if the work is ours, or the answer."""
    now = int(time.time())
    try:
        table.put_item(
            Item={
                "idempotencyKey": key,
                "status": "IN_PROGRESS",
                "expiry": now + ttl_seconds,
                "lockExpiry": now + lock_seconds,
            },
            ConditionExpression="attribute_not_exists(idempotencyKey)",
        )
        return None
    except ConditionFailed:
        pass
    item = table.get_item(Key={"idempotencyKey": key})["Item"]
    if item.get("status") in ["COMPLETED", "FAILED"]:
        return json.loads(item["responsePayload"])
    if now < item.get("lockExpiry", 0):
        return answer_409()
    return http_take(table, key, item["lockExpiry"], now + lock_seconds)


def http_take(table, key, current, new):
    """take_over_lock(). Return None if the lock is ours."""
    try:
        table.update_item(
            Key={"idempotencyKey": key},
            UpdateExpression="SET lockExpiry = :new_expiry",
            ConditionExpression="lockExpiry = :current_expiry",
            ExpressionAttributeValues={":new_expiry": new, ":current_expiry": current},
        )
    except ConditionFailed:
        return answer_409()
    return None


def http_finish(table, key, response, is_success=True):
    """finalize_operation()"""
    table.update_item(
        Key={"idempotencyKey": key},
        UpdateExpression="SET #s = :status, responsePayload = :payload",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={
            ":status": "COMPLETED" if is_success else "FAILED",
            ":payload": json.dumps(response),
        },
    )


def idempotent(table, **limits):
    """The decorator of the article."""

    def decorator(fn):
        @functools.wraps(fn)
        def wrapper(key):
            answer = http_begin(table, key, **limits)
            if answer is not None:
                return answer
            try:
                result, is_success = fn(key), True
            except Exception as e:  # pylint: disable=broad-except
                body = json.dumps({"error": "Internal Server Error", "message": str(e)})
                result, is_success = {"statusCode": 500, "body": body}, False
            http_finish(table, key, result, is_success)
            return result

        return wrapper

    return decorator
