#!/bin/sh
# A consumer of a queue of orders: each order is booked once, however often the queue
# delivers its message, and if several messages name it.
#
#     zip -j consume.zip consume.sh ../bootstrap "$IDEM"
#
# Handler: consume.sh, with
#
#     IDEM_LAMBDA_KEY='.body | fromjson | .orderId'
#     IDEM_LAMBDA_OUTCOME='Rejected=fail NotReached=release'
#     ORDERS_URL=...                  the service that books
#
# Rejected: the order is wrong, and ends in the dead-letter queue. NotReached: nothing
# happened, and the next delivery starts anew.
#
# The event has one message in it; idem claims, records and reports the messages of a
# batch one by one. After any other error, or a crash, the next delivery takes over and
# sends the same key, by which the service recognises the order.
#
# It writes no file (a function may write to /tmp alone), and needs curl, which
# provided.al2023 has, but no jq, which it lacks.
set -eu

fail() {
    printf '{"errorType": "%s", "errorMessage": "%s"}\n' "$1" "$2"
    exit 1
}

if [ "${IDEM_TAKEOVER:-0}" = 1 ]; then
    echo "order $IDEM_KEY: attempt $IDEM_ATTEMPTS, an earlier one may have booked it" >&2
fi

# 64 hex digits, so that no key can break a header; `idem show` prints the same id.
id=
if [ -n "${IDEM_KEY:-}" ]; then
    id=$(idem key --key "$IDEM_KEY")
    id=${id##* }
fi

code=0
answer=$(curl --silent --max-time 20 --write-out '\n%{http_code}' \
    --header "Idempotency-Key: $id" --header 'Content-Type: application/json' \
    --data-binary @- "$ORDERS_URL") || code=$?

case $code in
0) ;;
6 | 7) fail NotReached "$ORDERS_URL was not reached" ;;
*) fail Unclear "$ORDERS_URL gave no answer: curl ended with $code" ;;
esac
case ${answer##*
} in
2??) echo null ;; # Done: nobody reads the response to a message.
429 | 503) fail NotReached "the service is busy: ${answer##*
}" ;;
4??) fail Rejected "the service answered ${answer##*
}" ;;
*) fail Unclear "the service answered ${answer##*
}" ;;
esac
