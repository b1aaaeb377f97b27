#!/bin/sh
# Bring a database up to date: run each file of a directory once, in their order.
#
#     migrate.sh app.db migrations
#
# Every host that is deployed to may call this, at the same time too: one runs a
# migration, the others wait for it. It stops at the first that is not done, with
# the exit status of idem run:
#
#     65  a file was changed after it was run
#     76  one was interrupted: look how far it came, and say so
#     else that of the migration, which failed: mend it, and say so
#
# Saying so is: idem resolve --scope "migrate /path/to/app.db" 002-more
#     --release (run it again) or --complete "" (it is done) --reason WHY
set -eu

db=$(realpath "${1:?usage: migrate.sh DATABASE DIRECTORY}")
directory=${2:?usage: migrate.sh DATABASE DIRECTORY}

# The database is the scope, so that each has migrations of its own. The file is
# the input, and so part of what the key stands for. hold: half a migration must
# not be run again. fail: one that failed is not forgotten after a day.
for file in "$directory"/*.sql; do
    idem run --quiet --scope "migrate $db" --key "$(basename "$file" .sql)" \
        --on-expired-lease hold --outcome '0=complete 75=release *=fail' --retention never \
        --lease "${MIGRATE_LEASE:-60s}" --wait 10m --input "@$file" \
        -- sqlite3 -batch -bail "$db"
done
