#!/bin/sh
# Start one execution under a name made from the key of `idem run`, with the input from
# standard input. If the name is taken, this operation took it: idem compares the input.
set -eu

name=$(idem key -k "$IDEM_KEY" | awk '$1 == "id" { print $2 }')
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/input"

if aws stepfunctions start-execution --state-machine-arn "$STATE_MACHINE_ARN" \
    --name "$name" --input "file://$dir/input" 2>"$dir/error"; then
    exit
fi
grep -q ExecutionAlreadyExists "$dir/error" || { cat "$dir/error" >&2 && exit 1; }
execution=$(echo "$STATE_MACHINE_ARN" | sed 's/:stateMachine:/:execution:/')
printf '{"executionArn": "%s:%s"}\n' "$execution" "$name"
