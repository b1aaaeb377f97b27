#!/bin/sh
# An API behind API Gateway that charges a card once for each Idempotency-Key.
#
#     zip -j charge.zip charge.sh ../bootstrap "$IDEM"
#
# Handler: charge.sh, with
#
#     IDEM_LAMBDA_SCOPE=.requestContext.authorizer.jwt.claims.sub
#     IDEM_LAMBDA_OUTCOME=NotReached=release    nothing happened: a retry starts anew
#     PAYMENT_URL=...                           the service that charges
#
# The scope is the caller, as API Gateway has authenticated it: another caller with the
# same key never gets its response. A request without a key gets 400, one that comes
# while the first is at work 409, another request under the same key 422, and a retry
# the first response.
#
# It writes no file (a function may write to /tmp alone). provided.al2023 has curl and
# base64, but no jq, so the idem of the package reads the request.
set -eu

fail() {
    printf '{"errorType": "%s", "errorMessage": "%s"}\n' "$1" "$2"
    exit 1
}

# Respond with a status and a body of JSON, which base64 makes safe in a string.
respond() {
    printf '{"statusCode": %d, "headers": {"Content-Type": "application/json"}, ' "$1"
    printf '"isBase64Encoded": true, "body": "%s"}\n' "$(printf '%s' "$2" | base64 -w 0)"
    exit 0
}

# The line "key AMOUNT": only a positive whole number comes through. A body in base64 is
# not JSON.
told=$(idem key --scope - --input - --key-from '.body | fromjson | .amount' 2>/dev/null) ||
    told=
amount=${told#*key          }
amount=${amount%%
*}
case $amount in
'' | 0* | *[!0-9]* | ??????????*)
    respond 400 '{"error": "the body needs an amount, a whole number above 0"}'
    ;;
esac

# 64 hex digits for caller and key, so that neither can break a header, and the
# service keeps callers apart; `idem show` prints the same id.
id=
if [ -n "${IDEM_KEY:-}" ]; then
    id=$(idem key --key "$IDEM_KEY")
    id=${id##* }
fi

code=0
answer=$(curl --silent --max-time 10 --write-out '\n%{http_code}' \
    --header "Idempotency-Key: $id" --header 'Content-Type: application/json' \
    --data "{\"amount\": $amount}" "$PAYMENT_URL") || code=$?
status=${answer##*
}
body=${answer%
*}

case $code in
0) ;;
6 | 7) fail NotReached "the payment service was not reached" ;;
*) fail Unclear "the payment service gave no answer: curl ended with $code" ;;
esac
case $status in
2??) respond 201 "$body" ;;
402) respond 402 "$body" ;;
429 | 503) fail NotReached "the payment service is busy: $status" ;;
*) fail Unclear "the payment service answered $status" ;;
esac
