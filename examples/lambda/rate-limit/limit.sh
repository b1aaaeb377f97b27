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
#     LIMIT_MAX=8                   requests of a user per day
#
# The event is {"user": "u1", "request": "r1", "timestamp": 1510067704370}. The day is
# the event's, so that a retry after midnight gets the same decision.
set -eu

fail() {
    printf '{"errorType": "%s", "errorMessage": "%s"}\n' "$1" "$2"
    exit 1
}

# The line "key USER/REQUEST/TIMESTAMP": names without spaces and slashes come through.
names='"\(.user)/\(.request)/\(.timestamp)"'
told=$(idem key --scope - --input - --key-from "$names" 2>/dev/null) || told=
names=${told#*key          }
names=${names%%
*}
user= request= at=
case $names in
*[!0-9A-Za-z_.@/-]* | */*/*/*) ;;
*/*/*)
    user=${names%%/*} at=${names##*/}
    request=${names#*/} request=${request%/*}
    ;;
esac
case $at in
'' | *[!0-9]* | ????????????????*) user= ;;
esac
if [ -z "$user" ] || [ -z "$request" ] || [ ${#user} -gt 64 ] || [ ${#request} -gt 64 ]; then
    fail Invalid "the event needs user, request and timestamp"
fi

status=0
decision=$(idem limit --json --store "$LIMIT_STORE" --name requests --subject "$user" \
    --request "$request" --at "$at" --late 36525d --max "$LIMIT_MAX" --per day) || status=$?
case $status in
0) printf '{"limited": false, "decision": %s}\n' "$decision" ;;
75) printf '{"limited": true, "decision": %s}\n' "$decision" ;;
*) fail NotCounted "idem limit ended with $status" ;;
esac
