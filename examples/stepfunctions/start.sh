#!/bin/sh
# Start the state machine once for each order in a directory, however often this is run
# and whatever interrupts it:
#
#     STATE_MACHINE_ARN=arn:aws:states:... ./start.sh orders
#
# The key is made from the order, and the name of the execution from the key. After a
# lost answer the next run requests that name again, which starts no second execution.
set -u

orders=${1:?usage: start.sh DIRECTORY}
: "${STATE_MACHINE_ARN:?the ARN of a STANDARD state machine}"
export STATE_MACHINE_ARN

for order in "$orders"/*.json; do
    idem run --key-from '"order-\(.order)"' --input "@$order" \
        --on-expired-lease rerun --outcome jobs -- "${0%/*}/execution.sh" || exit
done
