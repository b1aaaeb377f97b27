#!/bin/sh
# A function that calls somebody else's API once for each order, an API that takes no
# idempotency keys, and what can become of a call that failed.
#
#     zip -j order.zip order.sh ../bootstrap "$IDEM"
#
# Handler: order.sh, with
#
#     IDEM_LAMBDA_KEY='"order/create/" + .orderId'
#     IDEM_LAMBDA_OUTCOME='Rejected=complete Unclear=fail NotReached=release'
#     IDEM_LAMBDA_ON_EXPIRED_LEASE=hold
#     IDEM_LAMBDA_RETENTION=30d
#     API_URL=...                     the API
#
# Rejected: the API said no, which is the outcome, and nobody needs to look. Unclear: it
# may have happened, and a person must look. NotReached: nothing happened, and the next
# delivery tries again.
#
# After any other error, such as one of this script, and after a crash, nobody knows: a
# person must look. It writes no file, and needs curl, which provided.al2023 has.
set -eu

fail() {
    printf '{"errorType": "%s", "errorMessage": "%s"}\n' "$1" "$2"
    exit 1
}

code=0
answer=$(curl --silent --max-time 20 --write-out '\n%{http_code}' \
    --header 'Content-Type: application/json' --data-binary @- "$API_URL") || code=$?
status=${answer##*
}
body=${answer%
*}

case $code in
0) ;;
6 | 7) fail NotReached "the API was not reached" ;;
*) fail Unclear "the API did not answer: curl $code" ;;
esac
case $status in
2??) printf '%s\n' "${body:-null}" ;;
429 | 503) fail NotReached "the API is busy: $status" ;;
4??) fail Rejected "the API said $status" ;;
*) fail Unclear "the API said $status" ;;
esac
