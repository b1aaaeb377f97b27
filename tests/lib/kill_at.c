/* Preloaded into a program: kills it between two steps of its SQLite.
 *
 * The library counts the beginnings and the ends of all statements, over all connections.
 * At the step that KILL_AT names it kills the process with SIGKILL. */
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

static long left;

static int count(unsigned what, void *ctx, void *p, void *x)
{
    (void)what;
    (void)ctx;
    (void)p;
    (void)x;
    if (left > 0 && --left == 0) {
        (void)kill(getpid(), SIGKILL);
        (void)pause();
    }
    return 0;
}

static int watch(sqlite3 *db)
{
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, count,
                            NULL);
}

__attribute__((constructor)) static void start(void)
{
    const char *at = getenv("KILL_AT");

    left = at == NULL ? 0 : strtol(at, NULL, 10);
    (void)sqlite3_auto_extension((void (*)(void))watch);
}
