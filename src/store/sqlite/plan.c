/* What a caller reads and writes itself, to have a record in its own transaction.
 *
 * The row that the caller has read is a table of one record, on which the same engine
 * runs as on the file; what it would save becomes statements.
 */
#include "base/heap.h"
#include "base/host.h"
#include "core/decide.h"
#include "core/error.h"
#include "store/sqlite/row.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/tables.h"

#include <assert.h>
#include <idem/plan.h>

/* The columns of the row. */
enum {
    SCHEMA,
    BOOT_ID,
    BOOT_MS,
    STORE_MS,
    LAST_MS,
    FENCE_FLOOR,
    SURE_MS,
    JUMP_MS,
    SEQ, /* From here on NULL where there is no record. */
    STATUS,
    DEADLINE,
    SCOPE,
    KEY,
    HEAD,
    RESULT,
    INPUT,
    COLUMNS
};

_Static_assert(COLUMNS == IDEM_PLAN_COLUMNS, "the header says how many");

#define CLOCK_COLUMNS                                                          \
    "SELECT c.schema, c.boot_id, c.boot_ms, c.store_ms, c.last_ms, "           \
    "c.fence_floor, c.sure_ms, c.jump_ms, "
#define RECORD_COLUMNS "r.seq, r.status, r.deadline, r.scope, r.key, r.head, "
#define FROM                                                                   \
    " FROM main.idem_clock AS c "                                              \
    "LEFT JOIN main.idem_record AS r ON r.id = ?1 WHERE c.one = 1"

/* Only a begin gives bodies to its caller. */
static const char read_begin[] =
    CLOCK_COLUMNS RECORD_COLUMNS "r.result, r.input" FROM;
static const char read_other[] = CLOCK_COLUMNS RECORD_COLUMNS "NULL, NULL" FROM;

/* Each is for the record, or the time, that was read: the last parameter. */
static const char insert[] =
    "INSERT INTO main.idem_record (id, status, deadline, scope, key, head, "
    "result, input) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
static const char update_head[] =
    "UPDATE main.idem_record SET status = ?2, deadline = ?3, head = ?4 "
    "WHERE seq = ?1 AND head = ?5";
static const char update_result[] =
    "UPDATE main.idem_record SET status = ?2, deadline = ?3, head = ?4, "
    "result = ?5 WHERE seq = ?1 AND head = ?6";
static const char update_all[] =
    "UPDATE main.idem_record SET status = ?2, deadline = ?3, head = ?4, "
    "result = ?5, input = ?6 WHERE seq = ?1 AND head = ?7";
static const char save_clock[] =
    "UPDATE main.idem_clock SET boot_id = ?1, boot_ms = ?2, store_ms = ?3, "
    "last_ms = ?4, sure_ms = ?5, jump_ms = ?6 WHERE one = 1 AND last_ms = ?7";

enum {
    WRITES_MAX = 2
};

struct idem_writes {
    struct idem_statement statements[WRITES_MAX];
    size_t len;
    size_t used; /* Of bytes. */
    uint8_t bytes[];
};

/* The table of one record. */
struct work {
    const struct idem_value *row;
    struct idem_writes *writes; /* NULL until there is something to write. */
};

/* ---- What is read ---- */

const char *idem_plan_table(size_t n)
{
    size_t i;

    for (i = 0; i < n && idem__tables[i] != NULL; i++) {
    }
    return idem__tables[i];
}

static bool is_planned(const struct idem_op *op)
{
    return op->key.len > 0 &&
           (op->verb == IDEM_OP_BEGIN || op->verb == IDEM_OP_END ||
            op->verb == IDEM_OP_RENEW);
}

int idem_plan_read(const struct idem_op *op,
                   struct idem_statement *ret_statement)
{
    if (!is_planned(op)) {
        return IDEM_EINVALID;
    }
    memset(ret_statement, 0, sizeof(*ret_statement));
    ret_statement->text = op->verb == IDEM_OP_BEGIN ? read_begin : read_other;
    ret_statement->rows = 1;
    ret_statement->values_len = 1;
    ret_statement->values[0].type = IDEM_VALUE_BYTES;
    ret_statement->values[0].bytes = idem_bytes(op->id, sizeof(op->id));
    return 0;
}

int idem_moment_read(struct idem_moment *ret_moment,
                     struct idem_error *ret_error)
{
    struct idem_host host = {.ctx = NULL};
    struct idem_moment moment;

    memset(&moment, 0, sizeof(moment));
    idem__host_default(&host);
    if (host.clock(host.ctx, &moment.clock) != 0) {
        return idem__error(ret_error, IDEM_EUNAVAILABLE,
                           "the clock does not answer");
    }
    if (host.random(host.ctx, moment.nonce, sizeof(moment.nonce)) != 0) {
        return idem__error(ret_error, IDEM_EUNAVAILABLE,
                           "the random source does not answer");
    }
    *ret_moment = moment;
    return 0;
}

/* ---- The row ---- */

static bool has_record(const struct idem_value *row)
{
    return row[SEQ].type != IDEM_VALUE_NULL;
}

/* A body that is not there is NULL. */
static bool is_body(const struct idem_value *value)
{
    return value->type == IDEM_VALUE_NULL || value->type == IDEM_VALUE_BYTES;
}

/* The types are those of the tables, which are STRICT: another one comes from another
 * query, or from a driver that makes texts of blobs. */
static bool has_types(const struct idem_value *row)
{
    int i;

    for (i = SCHEMA; i <= JUMP_MS; i++) {
        if (row[i].type !=
            (i == BOOT_ID ? IDEM_VALUE_BYTES : IDEM_VALUE_INTEGER)) {
            return false;
        }
    }
    if (!has_record(row)) {
        return true;
    }
    return row[SEQ].type == IDEM_VALUE_INTEGER &&
           row[STATUS].type == IDEM_VALUE_INTEGER &&
           row[DEADLINE].type == IDEM_VALUE_INTEGER &&
           row[SCOPE].type == IDEM_VALUE_BYTES &&
           row[KEY].type == IDEM_VALUE_BYTES &&
           row[HEAD].type == IDEM_VALUE_BYTES && is_body(&row[RESULT]) &&
           is_body(&row[INPUT]);
}

static int check_row(const struct idem_value *row, size_t row_len,
                     struct idem_error *error)
{
    if (row_len != COLUMNS || !has_types(row)) {
        return idem__error(error, IDEM_EINVALID,
                           "the row is not that of idem_plan_read(): give its "
                           "%d values in their order, blobs as bytes",
                           COLUMNS);
    }
    return idem__schema_check_version(row[SCHEMA].integer > INT32_MAX
                                          ? INT32_MAX
                                          : (int)row[SCHEMA].integer,
                                      error);
}

static int read_clock(const struct idem_value *row,
                      struct idem__clock_row *ret_clock,
                      struct idem_error *error)
{
    memset(ret_clock, 0, sizeof(*ret_clock));
    if (row[BOOT_ID].bytes.len == 16) {
        memcpy(ret_clock->anchor.boot_id, row[BOOT_ID].bytes.base, 16);
        ret_clock->anchor.boot_ms = row[BOOT_MS].integer;
        ret_clock->anchor.store_ms = row[STORE_MS].integer;
        ret_clock->anchor.sure_ms = row[SURE_MS].integer;
        ret_clock->anchor.jump_ms = row[JUMP_MS].integer;
        ret_clock->last_ms = row[LAST_MS].integer;
        ret_clock->fence_floor = row[FENCE_FLOOR].integer;
        if (idem__clock_row_settle(ret_clock)) {
            return 0;
        }
    }
    return idem__error(error, IDEM_ECORRUPT,
                       "the clock of the tables cannot be trusted: its numbers "
                       "are impossible");
}

static struct idem_slice body(const struct idem_value *value)
{
    return value->type == IDEM_VALUE_BYTES ? value->bytes : idem_bytes(NULL, 0);
}

static int load(void *ctx, const uint8_t *id, bool with_bodies,
                struct idem_record *ret_record, struct idem_error *ret_error)
{
    const struct work *work = ctx;
    const struct idem_value *row = work->row;
    int rc;

    if (!has_record(row)) {
        return 0;
    }
    rc = idem__record_decode(id, row[HEAD].bytes, ret_record, ret_error);
    ret_record->scope = row[SCOPE].bytes;
    ret_record->key = row[KEY].bytes;
    if (rc == 0) {
        rc = idem__row_check(ret_record, row[STATUS].integer,
                             row[DEADLINE].integer, ret_error);
    }
    if (rc == 0 && with_bodies) {
        ret_record->result.bytes = body(&row[RESULT]);
        ret_record->input = body(&row[INPUT]);
        rc = idem__verb_check_bodies(ret_record, ret_error);
    }
    return rc == 0 ? 1 : rc;
}

/* ---- What is written ---- */

static struct idem_statement *add(struct idem_writes *writes, const char *text)
{
    struct idem_statement *write = &writes->statements[writes->len++];

    assert(writes->len <= WRITES_MAX);
    write->text = text;
    write->rows = 1;
    return write;
}

static void add_integer(struct idem_statement *write, int64_t integer)
{
    write->values[write->values_len++] =
        (struct idem_value){.type = IDEM_VALUE_INTEGER, .integer = integer};
}

/* Copies @bytes, for which there is room. */
static void add_bytes(struct idem_writes *writes, struct idem_statement *write,
                      struct idem_slice bytes)
{
    uint8_t *to = writes->bytes + writes->used;

    if (bytes.len > 0) {
        memcpy(to, bytes.base, bytes.len);
        writes->used += bytes.len;
    }
    write->values[write->values_len++] =
        (struct idem_value){.type = IDEM_VALUE_BYTES,
                            .bytes = idem_bytes(to, bytes.len)};
}

static void add_body(struct idem_writes *writes, struct idem_statement *write,
                     struct idem_slice bytes)
{
    if (bytes.len > 0) {
        add_bytes(writes, write, bytes);
    } else {
        write->values[write->values_len++].type = IDEM_VALUE_NULL;
    }
}

static const char *update_for(const struct idem_decision *decision)
{
    if (decision->set_input) {
        return update_all;
    }
    return decision->set_result ? update_result : update_head;
}

static void add_insert(struct idem_writes *writes,
                       const struct idem_record *next, struct idem_slice head)
{
    struct idem_statement *write = add(writes, insert);

    add_bytes(writes, write, idem_bytes(next->id, sizeof(next->id)));
    add_integer(write, (int64_t)next->status);
    add_integer(write, idem__deadline(next));
    add_bytes(writes, write, next->scope);
    add_bytes(writes, write, next->key);
    add_bytes(writes, write, head);
    add_body(writes, write, next->result.bytes);
    add_body(writes, write, next->input);
}

static void add_update(struct idem_writes *writes, const struct idem_value *row,
                       const struct idem_decision *decision,
                       struct idem_slice head)
{
    const struct idem_record *next = &decision->next;
    struct idem_statement *write = add(writes, update_for(decision));

    add_integer(write, row[SEQ].integer);
    add_integer(write, (int64_t)next->status);
    add_integer(write, idem__deadline(next));
    add_bytes(writes, write, head);
    if (decision->set_result || decision->set_input) {
        add_body(writes, write, next->result.bytes);
    }
    if (decision->set_input) {
        add_body(writes, write, next->input);
    }
    add_bytes(writes, write, row[HEAD].bytes);
}

/* With room for all that one write of a record and one of the clock can hold. */
static struct idem_writes *create(size_t bytes_max)
{
    return idem__zalloc(sizeof(struct idem_writes) + bytes_max + 16);
}

static size_t len_of(const struct idem_value *row,
                     const struct idem_record *next)
{
    return sizeof(next->id) + next->scope.len + next->key.len +
           next->result.bytes.len + next->input.len +
           (has_record(row) ? row[HEAD].bytes.len : 0);
}

static int save_with(struct work *work, const struct idem_decision *decision,
                     uint8_t *buf)
{
    const struct idem_record *next = &decision->next;
    struct idem_slice head;
    size_t head_len;
    int rc = idem__record_encode(next, buf, IDEM_HEAD_MAX, &head_len);

    if (rc != 0) {
        return rc;
    }
    head = idem_bytes(buf, head_len);
    work->writes = create(len_of(work->row, next) + head_len);
    if (work->writes == NULL) {
        return IDEM_ENOMEM;
    }
    if (decision->change == IDEM_CHANGE_INSERT) {
        add_insert(work->writes, next, head);
    } else {
        add_update(work->writes, work->row, decision, head);
    }
    return 0;
}

static int save(void *ctx, const struct idem_decision *decision,
                struct idem_error *ret_error)
{
    uint8_t *buf = idem__alloc(IDEM_HEAD_MAX);
    int rc = buf == NULL ? IDEM_ENOMEM : save_with(ctx, decision, buf);

    idem__free(buf);
    return rc == 0 ? 0 : idem__error_plain(ret_error, rc);
}

static void add_clock(struct idem_writes *writes,
                      const struct idem__clock_row *clock,
                      const struct idem_now *now)
{
    struct idem_statement *write = add(writes, save_clock);
    int64_t sure_ms = idem__clock_sure_ms(now);

    add_bytes(writes, write, idem_bytes(clock->anchor.boot_id, 16));
    add_integer(write, clock->anchor.boot_ms);
    add_integer(write, clock->anchor.store_ms);
    add_integer(write, sure_ms > clock->last_ms ? sure_ms : clock->last_ms);
    add_integer(write, clock->anchor.sure_ms);
    add_integer(write, clock->anchor.jump_ms);
    add_integer(write, clock->last_ms);
}

/* ---- The decision ---- */

static int decide(struct work *work, struct idem_op *op,
                  const struct idem_moment *moment)
{
    const struct idem_table table = {.load = load, .save = save, .ctx = work};
    struct idem__clock_row clock;
    struct idem_now now;
    bool moved;
    int rc = read_clock(work->row, &clock, &op->error);

    if (rc != 0) {
        return rc;
    }
    moved =
        idem__anchor_now(&clock.anchor, &moment->clock, clock.last_ms, &now);
    now.fence_floor = (uint64_t)clock.fence_floor;
    op->asked_boot_ms = now.boot_ms;
    if (!op->has_nonce) {
        memcpy(op->nonce, moment->nonce, sizeof(op->nonce));
        op->has_nonce = true;
    }
    if (idem__table_run(&table, op, &now) &&
        (moved || idem__clock_row_is_due(clock.last_ms, &now))) {
        add_clock(work->writes, &clock, &now);
    }
    return op->error.code;
}

/* No statements are writes too. */
static int finish(struct work *work, struct idem_op *op, int rc)
{
    if (rc == 0 && work->writes == NULL) {
        work->writes = create(0);
        if (work->writes == NULL) {
            rc = idem__op_fail(op, IDEM_ENOMEM, "%s",
                               idem_error_text(IDEM_ENOMEM));
        }
    }
    return rc;
}

int idem_plan(struct idem_op *op, const struct idem_value *row, size_t row_len,
              const struct idem_moment *moment, struct idem_writes **ret_writes,
              struct idem_error *ret_error)
{
    struct work work = {.row = row};
    int rc = 0;

    if (!is_planned(op)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "the op is not a begin, an end or a renewal, or it "
                           "gave its attempt away");
    }
    memset(&op->error, 0, sizeof(op->error));
    op->has_record = false;
    rc = check_row(row, row_len, &op->error);
    if (rc == 0) {
        rc = finish(&work, op, decide(&work, op, moment));
    }
    if (rc != 0) {
        idem_writes_destroy(work.writes);
        if (ret_error != NULL) {
            *ret_error = op->error;
        }
        return rc;
    }
    *ret_writes = work.writes;
    return 0;
}

const struct idem_statement *idem_writes_at(const struct idem_writes *writes,
                                            size_t n)
{
    return n < writes->len ? &writes->statements[n] : NULL;
}

void idem_writes_destroy(struct idem_writes *writes)
{
    idem__free(writes);
}
