#!/bin/sh
# Bring a database up to date: run each file of a directory once, in their order.
#
#     migrate.sh app.db migrations
#
# Every host of a deployment may call this, at the same time too: one runs a
# migration, the others wait for it. It stops at the first migration that is not
# done, with the exit status of idem run:
#
#     65  a file was changed after it was run
#     75  another host is still at it after ten minutes
#     76  a migration was interrupted: find out how far it came, and record that
#     else that of the migration, which failed: mend it, and record that
#
# The command for that is: idem resolve --scope "migrate /path/to/app.db" 002-more
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
