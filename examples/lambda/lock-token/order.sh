#!/bin/sh
# A function that calls an API once for each order. The API takes no idempotency keys, so
# the function tells idem what a failed call may have done.
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
# Rejected: the API refused the order, which is the outcome. Unclear: the API may have
# made the order, and a person must find out. NotReached: nothing happened, and the next
# delivery tries again.
#
# After any other error, such as one of this script, and after a crash, the outcome is
# unknown, and a person must find out. The function writes no file, and needs curl, which
# provided.al2023 has.
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
4??) fail Rejected "the API answered $status" ;;
*) fail Unclear "the API answered $status" ;;
esac
