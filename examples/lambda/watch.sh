#!/bin/sh
# The poller of overdue work: it looks at a table, and what is overdue, unknown or
# failed goes to its log, with the metrics overdue, unknownRecords and others.
#
#     zip -j watch.zip watch.sh bootstrap "$IDEM"
#
# Handler: watch.sh, invoked by a schedule, with
#
#     WATCH_STORE=dynamodb://TABLE     the table to look at
#     IDEM_STORE=memory:               that a look comes twice does no harm
#     IDEM_LAMBDA_CREDENTIALS=pass     it reads the table itself
#
# The package has the program idem in it, which the bootstrap puts in PATH.
set -eu

# 1 and 2 are a warning and a critical state: it did look.
status=0
idem watch --once --json --store "$WATCH_STORE" >&2 || status=$?
idem stats --format emf --store "$WATCH_STORE" >&2 || true
if [ "$status" -gt 2 ]; then
    printf '{"errorType": "CannotLook", "errorMessage": "the log says why"}\n'
    exit 1
fi
printf '{"status": %d}\n' "$status"
