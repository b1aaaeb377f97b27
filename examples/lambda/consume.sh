#!/bin/sh
# A consumer of a queue of orders: each order is processed once, however often its
# message comes and whichever queue it comes through.
#
#     idem lambda package -o consume.zip consume.sh
#
# Handler: consume.sh, with
#
#     IDEM_LAMBDA_KEY='.body | fromjson | .orderId'
#
# The event has one message in it; idem claims, records and reports the messages of a
# batch one by one. What fails is reported, comes again, and ends in the dead-letter
# queue.
set -eu

cat >event.json

if [ "$IDEM_TAKEOVER" = 1 ]; then
    echo "order $IDEM_KEY: attempt $IDEM_ATTEMPTS, the one before it stopped" >&2
fi

# The work. What it calls gets the key, and the fence where it can take one.
echo "processed $IDEM_KEY" >>"${ORDERS:-/tmp/orders}"

printf '{"status": "success", "order": "%s"}\n' "$IDEM_KEY"
