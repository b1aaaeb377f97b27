#!/bin/sh
# A rate limit that counts a request once, however often it is retried.
#
#     zip -j limit.zip limit.sh ../bootstrap "$IDEM"
#
# Handler: limit.sh, with
#
#     IDEM_LAMBDA_KEY='[.user, .request]'
#     IDEM_LAMBDA_CREDENTIALS=pass  idem limit asks the table itself
#     LIMIT_STORE=dynamodb://TABLE  where it is counted
#     LIMIT_MAX=8                   so many requests of a user on a day
#
# The event is {"user": "u1", "request": "r1", "timestamp": 1510067704370}. The day is
# the event's, so that a retry after midnight hears what it heard before.
set -eu

fail() {
    printf '{"errorType": "%s", "errorMessage": "%s"}\n' "$1" "$2"
    exit 1
}

# "scope - key USER REQUEST TIMESTAMP id ...": names without spaces come through.
words='"\(.user) \(.request) \(.timestamp)"
    | select(test("^[0-9A-Za-z_.@-]{1,64} [0-9A-Za-z_.@-]{1,64} [0-9]{1,15}$"))'
told=$(idem key --scope - --input - --key-from "$words" 2>/dev/null) ||
    fail Invalid "the event needs user, request and timestamp"
# shellcheck disable=SC2086 # Its words.
set -- $told

status=0
decision=$(idem limit --json --store "$LIMIT_STORE" --name requests --subject "$4" \
    --request "$5" --at "$6" --late 36525d --max "$LIMIT_MAX" --per day) || status=$?
case $status in
0) printf '{"limited": false, "decision": %s}\n' "$decision" ;;
75) printf '{"limited": true, "decision": %s}\n' "$decision" ;;
*) fail NotCounted "idem limit ended with $status" ;;
esac
