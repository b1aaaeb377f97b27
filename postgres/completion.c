/* The end of an attempt as a statement that its owner runs. */
#include "api/call.h"
#include "base/heap.h"
#include "core/decide.h"
#include "core/error.h"
#include "postgres/store.h"
#include "queue/op.h"

#include <idem/postgres.h>
#include <idem/queue.h>

/* Has the store decide the end of the attempt, and return in @ret_op what it would
 * write. */
static int plan(struct idem__attempt *a, const struct idem_outcome *outcome,
                struct idem_op **ret_op, struct idem_error *error)
{
    int rc = idem_op_end(&a->pub, outcome, ret_op, error);

    if (rc != 0) {
        return rc;
    }
    (*ret_op)->commit = idem__zalloc(sizeof(*(*ret_op)->commit));
    if ((*ret_op)->commit == NULL) {
        idem_op_destroy(*ret_op);
        return idem__error_plain(error, IDEM_ENOMEM);
    }
    rc = idem__call(a->store, ret_op, error);
    /* The queue takes the op for a write that the store may have made. This one only
     * reads, so the outcome is certain: nothing was written. */
    return rc == IDEM_EUNKNOWN
               ? idem__error(error, IDEM_EUNAVAILABLE,
                             "PostgreSQL did not answer in time; nothing was "
                             "written")
               : rc;
}

static void add_bytes(struct idem_statement *statement, struct idem_slice bytes)
{
    statement->values[statement->values_len++] = (struct idem_value){
        .type = IDEM_VALUE_BYTES,
        .bytes = bytes,
    };
}

static void add_integer(struct idem_statement *statement, int64_t integer)
{
    statement->values[statement->values_len++] = (struct idem_value){
        .type = IDEM_VALUE_INTEGER,
        .integer = integer,
    };
}

/* Makes the statement, which points into @op and @text. */
static void make_statement(const struct idem_op *op, const char *text,
                           struct idem_statement *statement)
{
    struct idem_slice head = op->commit->writes;
    const uint8_t *head_end = (const uint8_t *)head.base + head.len;

    memset(statement, 0, sizeof(*statement));
    statement->text = text;
    statement->rows = 1;
    add_bytes(statement, idem_bytes(op->id, sizeof(op->id)));
    add_bytes(statement, idem_bytes(op->nonce, sizeof(op->nonce)));
    add_integer(statement, (int64_t)op->fence);
    add_integer(statement, idem__deadline(op->record));
    add_bytes(statement,
              idem_bytes(head_end - IDEM__PG_TAG_LEN, IDEM__PG_TAG_LEN));
    add_bytes(statement, head);
    add_bytes(statement, op->record->result.bytes);
    if (op->record->result.bytes.len == 0) {
        statement->values[statement->values_len - 1].type = IDEM_VALUE_NULL;
    }
}

int idem_postgres_completion(struct idem_attempt *attempt,
                             const struct idem_result *result,
                             struct idem_statement *ret_statement,
                             struct idem_error *ret_error)
{
    struct idem__attempt *a = idem__attempt_of(attempt);
    struct idem__pg_store *store = idem__pg_store_of(a->store);
    struct idem_outcome outcome = {.status = IDEM_STATUS_COMPLETED};
    struct idem_op *op = NULL;
    int rc;

    if (store == NULL) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the attempt was not begun in a PostgreSQL store; "
                           "end it with idem_complete()");
    }
    if (result != NULL) {
        outcome.result = *result;
    }
    rc = plan(a, &outcome, &op, ret_error);
    /* The attempt is lost: end its lease for this process, too. */
    if (rc == IDEM_ELOST) {
        idem__attempt_set_lease_end(a, 0);
    }
    if (rc != 0) {
        return rc;
    }
    idem_op_destroy(a->planned);
    a->planned = op;
    make_statement(op, store->completion, ret_statement);
    return 0;
}
