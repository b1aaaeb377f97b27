#!/bin/sh
# The poller of overdue work: it reads a table, and logs what is overdue, unknown or
# failed, with the metrics overdue, unknownRecords and others.
#
#     zip -j watch.zip watch.sh bootstrap "$IDEM"
#
# Handler: watch.sh, invoked by a schedule, with
#
#     WATCH_STORE=dynamodb://TABLE     the table that it reads
#     IDEM_STORE=memory:               it may run twice for one event
#     IDEM_LAMBDA_CREDENTIALS=pass     it reads the table itself
#
# The package has the program idem in it, which the bootstrap puts in PATH.
set -eu

# 1 and 2 are a warning and a critical state: the table was read.
status=0
idem watch --once --json --store "$WATCH_STORE" >&2 || status=$?
idem stats --format emf --store "$WATCH_STORE" >&2 || true
if [ "$status" -gt 2 ]; then
    printf '{"errorType": "CannotLook", "errorMessage": "idem watch failed: see the log"}\n'
    exit 1
fi
printf '{"status": %d}\n' "$status"
