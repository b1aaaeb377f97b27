/* Implements idem_complete() and the other endings, as SQL functions that return a
 * value. */
#include "core/error.h"
#include "extension/extension.h"

#include <idem/sqlite.h>
#include <string.h>

/* The arguments of a call. */
struct call {
    sqlite3_context *ctx;
    int argc;
    sqlite3_value **argv;
    const char *name; /* Of the function, for errors. */
};

static void fail(const struct call *call, int code,
                 const struct idem_error *error)
{
    char *text = sqlite3_mprintf("%s(): %s: %s", call->name,
                                 idem_error_name(code), error->text);

    if (text == NULL || code == IDEM_ENOMEM) {
        sqlite3_result_error_nomem(call->ctx);
    } else {
        sqlite3_result_error(call->ctx, text, -1);
        sqlite3_result_error_code(call->ctx, idem__argument_result_of(code));
    }
    sqlite3_free(text);
}

/* Returns the bytes of argument @n; none if it was left out. */
static struct idem_slice bytes_of(const struct call *call, int n,
                                  char digits[IDEM__DIGITS_MAX])
{
    return n < call->argc ? idem__argument_bytes(call->argv[n], digits)
                          : idem_bytes(NULL, 0);
}

/* Makes the attempt from its token, the first argument. */
static int take_attempt(const struct call *call,
                        struct idem_attempt **ret_attempt,
                        struct idem_error *error)
{
    const char *token = (const char *)sqlite3_value_text(call->argv[0]);

    if (token == NULL) {
        return idem__error(
            error, IDEM_EINVALID,
            "the token is NULL: idem_begin() returns one with the verdict "
            "STARTED only");
    }
    if (strlen(token) != (size_t)sqlite3_value_bytes(call->argv[0])) {
        return idem__error(error, IDEM_EINVALID,
                           "not an idem token: it contains a NUL byte");
    }
    return idem_attempt_from_token(/* store= */ NULL, token, ret_attempt,
                                   error);
}

/* Ends the attempt, and returns the status that is on record then. */
static void end(const struct call *call, const struct idem_outcome *outcome)
{
    struct idem_attempt *attempt = NULL;
    struct idem_error error;
    int rc = take_attempt(call, &attempt, &error);

    if (rc != 0) {
        goto done;
    }
    rc = idem_sqlite_end_in(sqlite3_context_db_handle(call->ctx), attempt,
                            outcome, &error);
    if (rc != 0) {
        goto done;
    }
    sqlite3_result_text(call->ctx,
                        idem_status_name(idem_record_status(attempt->record)),
                        -1, SQLITE_STATIC);

done:
    if (rc != 0) {
        fail(call, rc, &error);
    }
    idem_attempt_destroy(attempt);
}

/* Ends the attempt with the result, content type and meta from argument @n on. */
static void end_with_result(const struct call *call, int n,
                            struct idem_outcome *outcome)
{
    char digits[3][IDEM__DIGITS_MAX];

    outcome->result.bytes = bytes_of(call, n, digits[0]);
    outcome->result.content_type = bytes_of(call, n + 1, digits[1]);
    outcome->result.meta = bytes_of(call, n + 2, digits[2]);
    end(call, outcome);
}

static void end_with_text(const struct call *call, enum idem_status status)
{
    char digits[IDEM__DIGITS_MAX];
    struct idem_outcome outcome = {
        .status = status,
        .text = bytes_of(call, 1, digits),
    };

    end(call, &outcome);
}

/* idem_complete(token [, result [, content_type [, meta]]]) */
static void complete(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct call call = {ctx, argc, argv, "idem_complete"};
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};

    end_with_result(&call, 1, &outcome);
}

/* idem_fail(token [, text [, result [, content_type [, meta]]]]) */
static void fail_attempt(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct call call = {ctx, argc, argv, "idem_fail"};
    char digits[IDEM__DIGITS_MAX];
    struct idem_outcome outcome = {
        .status = IDEM_STATUS_FAILED,
        .text = bytes_of(&call, 1, digits),
    };

    end_with_result(&call, 2, &outcome);
}

/* idem_release(token [, text]) */
static void release(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct call call = {ctx, argc, argv, "idem_release"};

    end_with_text(&call, IDEM_STATUS_RELEASED);
}

/* idem_retry(token [, text [, max_failures [, retry_after_ms]]]) */
static void retry(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct call call = {ctx, argc, argv, "idem_retry"};
    char digits[IDEM__DIGITS_MAX];
    struct idem_outcome outcome = {
        .status = IDEM_STATUS_RETRY,
        .text = bytes_of(&call, 1, digits),
    };
    struct idem_error error;
    int64_t failures_max = 0;
    int rc;

    if (argc > 2) {
        rc =
            idem__argument_ms("max_failures", argv[2],
                              /* may_be_never= */ false, &failures_max, &error);
        if (rc != 0) {
            goto failed;
        }
    }
    if (failures_max > UINT32_MAX) {
        rc = idem__error(&error, IDEM_EINVALID, "max_failures: too large");
        goto failed;
    }
    if (argc > 3) {
        rc = idem__argument_ms("retry_after_ms", argv[3],
                               /* may_be_never= */ false,
                               &outcome.retry_after_ms, &error);
        if (rc != 0) {
            goto failed;
        }
    }
    outcome.failures_max = (uint32_t)failures_max;
    end(&call, &outcome);
    return;

failed:
    fail(&call, rc, &error);
}

/* idem_unknown(token [, text]) */
static void unknown(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct call call = {ctx, argc, argv, "idem_unknown"};

    end_with_text(&call, IDEM_STATUS_UNKNOWN);
}

/* idem_renew(token [, lease_ms]): returns how long the work may go on, in ms. */
static void renew(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct call call = {ctx, argc, argv, "idem_renew"};
    struct idem_attempt *attempt = NULL;
    struct idem_error error;
    int64_t lease_ms = 0;
    int rc = take_attempt(&call, &attempt, &error);

    if (rc != 0) {
        goto done;
    }
    if (argc > 1) {
        rc = idem__argument_ms("lease_ms", argv[1], /* may_be_never= */ true,
                               &lease_ms, &error);
        if (rc != 0) {
            goto done;
        }
    }
    rc = idem_sqlite_renew_in(sqlite3_context_db_handle(ctx), attempt, lease_ms,
                              &error);
    if (rc != 0) {
        goto done;
    }
    sqlite3_result_int64(ctx, idem_attempt_lease_left_ms(attempt));

done:
    if (rc != 0) {
        fail(&call, rc, &error);
    }
    idem_attempt_destroy(attempt);
}

enum {
    PARTS_MAX = 127 /* SQLite's own limit of arguments. */
};

/* Refuses a part that is NULL. Returning NULL, as SQL functions do, would make
 * idem_begin() compare no fingerprint. */
static int take_parts(const struct call *call, int n, struct idem_slice *parts,
                      char (*digits)[IDEM__DIGITS_MAX],
                      struct idem_error *error)
{
    int i;

    for (i = 0; i < n; i++) {
        if (sqlite3_value_type(call->argv[i]) == SQLITE_NULL) {
            return idem__error(error, IDEM_EINVALID,
                               "part %d is NULL: give quote(X), or "
                               "coalesce(X, '') if '' is the same request",
                               i + 1);
        }
        parts[i] = bytes_of(call, i, digits[i]);
    }
    return 0;
}

/* idem_fingerprint(part, ...): the fingerprint of a request, for idem_begin(). */
static void fingerprint(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct call call = {ctx, argc, argv, "idem_fingerprint"};
    struct idem_slice parts[PARTS_MAX];
    char digits[PARTS_MAX][IDEM__DIGITS_MAX];
    uint8_t print[IDEM_FINGERPRINT_LEN];
    struct idem_error error;
    int n = argc < PARTS_MAX ? argc : PARTS_MAX;
    int rc = take_parts(&call, n, parts, digits, &error);

    if (rc != 0) {
        fail(&call, rc, &error);
        return;
    }
    rc = idem_fingerprint(parts, (size_t)n, idem_bytes(NULL, 0), print);
    if (rc != 0) {
        (void)idem__error_plain(&error, rc);
        fail(&call, rc, &error);
        return;
    }
    sqlite3_result_blob(ctx, print, sizeof(print), SQLITE_TRANSIENT);
}

/* idem_version() */
static void version(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sqlite3_result_text(ctx, IDEM_VERSION, -1, SQLITE_STATIC);
}

/* SQLITE_DIRECTONLY: views and triggers, which a hostile file may bring along, cannot
 * call the functions that change records. */
static const struct {
    const char *name;
    int args_min;
    int args_max;
    int flags;
    void (*function)(sqlite3_context *ctx, int argc, sqlite3_value **argv);
} functions[] = {
    {"idem_complete", 1, 4, SQLITE_DIRECTONLY, complete},
    {"idem_fail", 1, 5, SQLITE_DIRECTONLY, fail_attempt},
    {"idem_release", 1, 2, SQLITE_DIRECTONLY, release},
    {"idem_retry", 1, 4, SQLITE_DIRECTONLY, retry},
    {"idem_unknown", 1, 2, SQLITE_DIRECTONLY, unknown},
    {"idem_renew", 1, 2, SQLITE_DIRECTONLY, renew},
    {"idem_version", 0, 0, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, version},
};

int idem__extension_add_ends(sqlite3 *db)
{
    int rc = sqlite3_create_function_v2(db, "idem_fingerprint", -1,
                                        SQLITE_UTF8 | SQLITE_DETERMINISTIC |
                                            SQLITE_INNOCUOUS,
                                        NULL, fingerprint, NULL, NULL, NULL);
    size_t i;
    int n;

    for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        for (n = functions[i].args_min; n <= functions[i].args_max; n++) {
            if (rc == SQLITE_OK) {
                rc =
                    sqlite3_create_function_v2(db, functions[i].name, n,
                                               SQLITE_UTF8 | functions[i].flags,
                                               NULL, functions[i].function,
                                               NULL, NULL, NULL);
            }
        }
    }
    return rc;
}
