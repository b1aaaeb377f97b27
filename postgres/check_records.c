/* Reads the records of a store, with their bodies, and verifies them. */
#include "contract/parts.h"
#include "core/error.h"
#include "postgres/admin.h"
#include "postgres/params.h"
#include "postgres/task_request.h"
#include "postgres/sql.h"

#include <idem/postgres.h>
#include <stdio.h>
#include <string.h>

enum {
    PAGE = 100,
    QUICK_RECORDS = 1000,
};

struct walk {
    struct idem__pg_params params;
    uint8_t id[IDEM_ID_LEN]; /* The last id that was read. */
    bool has_id;
    uint64_t records;
    uint64_t bad;
    char first[200]; /* What is wrong with the first bad one. */
};

/* Loads and verifies the bodies of @row. Returns 0, a negative code if they are damaged,
 * or 1 with @error if they cannot be read. */
static int check_bodies(struct idem__pg_check *check, struct walk *walk,
                        struct idem__pg_row *row, struct idem_error *error)
{
    PGresult *result;
    struct idem_slice tag;
    int rc = 0;

    if (row->record.result_len == 0 && row->record.input_len == 0) {
        return 0;
    }
    (void)idem__pg_params_bytes(&walk->params,
                                idem_bytes(row->record.id, IDEM_ID_LEN));
    result = idem__pg_admin_run_params(check->conn, check->place, IDEM__PG_LOAD,
                                       &walk->params, error);
    if (result == NULL) {
        return 1;
    }
    /* Skip a record that has changed since: its new writer has just written the bodies. */
    if (idem__pg_bytes(result, 0, 0, &tag) && tag.len == IDEM__PG_TAG_LEN &&
        memcmp(tag.base, row->tag, tag.len) == 0) {
        (void)idem__pg_bytes(result, 0, 1, &row->record.result.bytes);
        (void)idem__pg_bytes(result, 0, 2, &row->record.input);
        rc = idem__verb_check_bodies(&row->record, error);
    }
    PQclear(result);
    return rc;
}

/* Returns 0, or the code of an error that ends the walk. */
static int check_row(struct idem__pg_check *check, struct walk *walk,
                     const PGresult *result, int at, struct idem_error *error)
{
    struct idem__pg_row row;
    int rc = idem__pg_row_read(result, at, &row, error);

    rc = rc != 0 ? rc : check_bodies(check, walk, &row, error);
    if (rc > 0) {
        return error->code;
    }
    walk->records++;
    if (rc != 0 && walk->bad++ == 0) {
        (void)snprintf(walk->first, sizeof(walk->first), "%.199s", error->text);
    }
    return 0;
}

/* Returns 1 if there are more pages, 0 after the last one, or a negative code. */
static int check_page(struct idem__pg_check *check, struct walk *walk,
                      struct idem_error *error)
{
    PGresult *result;
    int rc = 0;
    int row;
    int n;

    (void)idem__pg_params_bytes(&walk->params,
                                idem_bytes(walk->id,
                                           walk->has_id ? IDEM_ID_LEN : 0));
    (void)idem__pg_params_number(&walk->params, PAGE);
    result = idem__pg_admin_run_params(check->conn, check->place,
                                       IDEM__PG_LIST_ALL, &walk->params, error);
    if (result == NULL) {
        return error->code;
    }
    n = PQntuples(result);
    for (row = 0; rc == 0 && row < n; row++) {
        rc = check_row(check, walk, result, row, error);
        walk->has_id = idem__pg_row_id(result, row, walk->id) || walk->has_id;
    }
    PQclear(result);
    return rc != 0 ? rc : n == PAGE;
}

static bool is_stopped(const struct idem__pg_check *check,
                       const struct walk *walk)
{
    const struct idem_check_options *options = check->options;

    return options != NULL && options->progress != NULL &&
           options->progress(options->ctx, walk->records, 0) != 0;
}

void idem__pg_check_records(struct idem__pg_check *check)
{
    struct walk walk = {.records = 0};
    struct idem_error error;
    bool part = false;
    int rc = 1;

    while (rc == 1 && !part) {
        rc = check_page(check, &walk, &error);
        part = rc == 1 && ((check->quick && walk.records >= QUICK_RECORDS) ||
                           is_stopped(check, &walk));
    }
    idem__pg_params_free(&walk.params);
    check->code = rc < 0 ? rc : IDEM_ECORRUPT;
    if (rc < 0) {
        idem__pg_tell(check, IDEM_GRADE_BAD, "records", NULL,
                      "the records cannot be read: %s", error.text);
    } else if (walk.bad > 0) {
        idem__pg_tell(check, IDEM_GRADE_BAD, "records", NULL,
                      "%llu of %llu records cannot be trusted; the first: %s",
                      (unsigned long long)walk.bad,
                      (unsigned long long)walk.records, walk.first);
    } else {
        idem__pg_tell(check, IDEM_GRADE_OK, "records", NULL,
                      "%llu records can be trusted, with their results and "
                      "inputs",
                      (unsigned long long)walk.records);
    }
    if (part) {
        idem__pg_tell(check, IDEM_GRADE_SKIP, "records", NULL,
                      "the rest was not checked");
    }
}
