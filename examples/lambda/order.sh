#!/bin/sh
# A function that calls somebody else's API once for each order, and the three things
# that can become of a call that failed.
#
#     idem lambda package -o order.zip order.sh
#
# Handler: order.sh, with
#
#     IDEM_LAMBDA_KEY='"order/create/" + .orderId'
#     IDEM_LAMBDA_KEEP=Rejected      the API said no: the outcome, nobody needs to look
#     IDEM_LAMBDA_FAIL=Unclear       it may have happened: a person must look
#     IDEM_LAMBDA_RELEASE=NotReached  nothing happened: the next delivery tries again
#     IDEM_LAMBDA_ON_EXPIRED_LEASE=hold
#
# After any other error, such as one of this script, nobody knows: a person must look.
set -eu

fail() {
    printf '{"errorType": "%s", "errorMessage": "%s"}\n' "$1" "$2"
    exit 1
}

cat >/tmp/order.$$
trap 'rm -f /tmp/order.$$ /tmp/answer.$$' EXIT

code=0
status=$(curl --silent --max-time 20 --output /tmp/answer.$$ \
    --write-out '%{http_code}' --header "Idempotency-Key: $IDEM_KEY" \
    --data-binary @/tmp/order.$$ "$API_URL") || code=$?

case $code in
0) ;;
6 | 7) fail NotReached "the API was not reached" ;;
*) fail Unclear "the API did not answer: curl $code" ;;
esac
case $status in
2??) cat /tmp/answer.$$ ;;
429 | 503) fail NotReached "the API is busy: $status" ;;
4??) fail Rejected "the API said $status" ;;
*) fail Unclear "the API said $status" ;;
esac
