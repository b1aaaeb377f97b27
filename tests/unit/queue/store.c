/* The contract with people who write a store: its number, and what that covers. */
#include "test.h"

#include <idem/store_parts.h>

/* Where the members lie that a store and the library both use, on machines with 64
 * bits. The number must be raised with any change here, but for a new line at
 * the end of struct idem_store_ops. */
static const struct {
    const char *what;
    size_t is;
    size_t was;
} layout[] = {
#define SIZE(type, was)                                                        \
    {                                                                          \
        "sizeof(struct " #type ")", sizeof(struct type), was                   \
    }
#define PLACE(type, member, was)                                               \
    {                                                                          \
#type "." #member, offsetof(struct type, member), was                  \
    }
    SIZE(idem_store_ops, 72),
    PLACE(idem_store_ops, abi, 0),
    PLACE(idem_store_ops, size, 4),
    PLACE(idem_store_ops, name, 8),
    PLACE(idem_store_ops, peek, 16),
    PLACE(idem_store_ops, submit, 24),
    PLACE(idem_store_ops, submit_all, 32),
    PLACE(idem_store_ops, cancel, 40),
    PLACE(idem_store_ops, drive, 48),
    PLACE(idem_store_ops, close, 56),
    PLACE(idem_store_ops, fd, 64),
    SIZE(idem_store, 160),
    PLACE(idem_store, ops, 0),
    PLACE(idem_store, options, 8),
    PLACE(idem_store, margin_ms, 96),
    PLACE(idem_store, lease_min_ms, 104),
    PLACE(idem_store, remote, 128),
    PLACE(idem_store, url, 136),
    PLACE(idem_store, commits, 144),
    SIZE(idem_open_options, 88),
    SIZE(idem_op, 976),
    PLACE(idem_op, id, 4),
    PLACE(idem_op, scope, 40),
    PLACE(idem_op, key, 56),
    PLACE(idem_op, nonce, 72),
    PLACE(idem_op, fence, 96),
    PLACE(idem_op, u, 104),
    PLACE(idem_op, error, 536),
    PLACE(idem_op, verdict, 792),
    PLACE(idem_op, record, 808),
    PLACE(idem_op, store, 816),
    PLACE(idem_op, queue, 824),
    PLACE(idem_op, next, 832),
    PLACE(idem_op, prev, 840),
    PLACE(idem_op, state, 864),
    PLACE(idem_op, deadline_ms, 872),
    PLACE(idem_op, commit, 928),
    SIZE(idem_request, 160),
    SIZE(idem_outcome, 88),
    SIZE(idem_filter, 48),
    SIZE(idem_counters, 112),
    SIZE(idem_limit_request, 104),
    SIZE(idem_limited, 32),
    SIZE(idem_commit, 400),
    SIZE(idem_now, 64),
    SIZE(idem_record, 816),
    PLACE(idem_record, fence, 88),
    PLACE(idem_record, result, 184),
    PLACE(idem_record, input, 304),
    PLACE(idem_record, history, 328),
    PLACE(idem_record, nonce, 721),
    PLACE(idem_record, unknown_fields, 800),
    SIZE(idem_decision, 1072),
    PLACE(idem_decision, text, 4),
    PLACE(idem_decision, verdict, 228),
    PLACE(idem_decision, change, 248),
    PLACE(idem_decision, set_result, 252),
    PLACE(idem_decision, set_input, 253),
    PLACE(idem_decision, next, 256),
    SIZE(idem_table, 24),
    SIZE(idem_limit_state, 40),
    SIZE(idem_limit_decision, 280),
    SIZE(idem_anchor, 48),
    SIZE(idem_pending, 24),
    SIZE(idem_error, 256),
    SIZE(idem_slice, 16),
#undef SIZE
#undef PLACE
};

/* A store that was compiled before the layout changed would read and write beside
 * what it means. */
TEST(store, layoutIsThatOfItsNumber)
{
    size_t i;

    assert_int_equal(IDEM_STORE_ABI, 1);
    for (i = 0; i < COUNT(layout); i++) {
        if (sizeof(void *) == 8 && layout[i].is != layout[i].was) {
            fail_with(
                "%s is %zu, and %zu in version %u of <idem/store.h>: raise "
                "IDEM_STORE_ABI",
                layout[i].what, layout[i].is, layout[i].was, IDEM_STORE_ABI);
        }
    }
}

static int submit(struct idem_store *store, struct idem_op *op)
{
    (void)store;
    (void)op;
    return IDEM_EUNAVAILABLE;
}

static enum idem_cancel cancel(struct idem_store *store, struct idem_op *op)
{
    (void)store;
    return idem_op_detach(op);
}

static void drive(struct idem_store *store, struct idem_queue *queue,
                  int64_t deadline_ms)
{
    (void)store;
    (void)queue;
    (void)deadline_ms;
}

static void close_store(struct idem_store *store)
{
    idem_store_finish(store);
}

static const struct idem_store_ops good = {
    .abi = IDEM_STORE_ABI,
    .size = sizeof(struct idem_store_ops),
    .name = "test",
    .submit = submit,
    .cancel = cancel,
    .drive = drive,
    .close = close_store,
};

static void expect_refused(const struct idem_store_ops *ops, const char *text)
{
    struct idem_store store;

    assert_code(IDEM_ECONFIG, idem_store_init(&store, ops, NULL, &why));
    if (strstr(why.text, text) == NULL) {
        fail_with("%s", why.text);
    }
}

/* What was compiled for another number is refused for that, whatever else there
 * seems to be. */
TEST(store, anotherNumberIsRefused)
{
    struct idem_store_ops ops = {.abi = IDEM_STORE_ABI + 1};

    expect_refused(&ops, "was compiled for version 2 of <idem/store.h>, and "
                         "libidem has version 1");
    ops = (struct idem_store_ops){.abi = 0, .name = "forgot"};
    expect_refused(&ops, "was compiled for version 0");
}

/* A store without what every store has is refused when it is made, not when it
 * is first asked. A later one, with more at the end, is not. */
TEST(store, whatIsMissingIsFoundAtOnce)
{
    struct idem_store store;
    struct idem_store_ops ops = good;

    ops.size = (unsigned)sizeof(ops) - (unsigned)sizeof(void *);
    expect_refused(&ops, "is not complete");
    ops = good;
    ops.drive = NULL;
    expect_refused(&ops, "is not complete");
    ops = good;
    ops.submit = NULL;
    expect_refused(&ops, "is not complete");
    ops = good;
    ops.size += (unsigned)sizeof(void *);
    assert_ok(idem_store_init(&store, &ops, NULL, &why));
    idem_store_finish(&store);
}

/* Each answer is counted under one name, an error only where an owner was lost. */
TEST(store, answersAreAddedUp)
{
    struct idem_counters counters = IDEM_COUNTERS_INIT;
    struct idem_record record = {.status = IDEM_STATUS_UNKNOWN};
    struct idem_op op = {.verb = IDEM_OP_BEGIN,
                         .verdict = IDEM_STARTED,
                         .changed = true,
                         .takeover = true};

    idem_counters_add(&counters, &op);
    idem_counters_add(&counters, &op);
    op.verdict = IDEM_UNKNOWN;
    op.record = &record;
    idem_counters_add(&counters, &op);
    op.error.code = IDEM_EUNAVAILABLE;
    idem_counters_add(&counters, &op);
    op = (struct idem_op){.verb = IDEM_OP_END, .error = {IDEM_ELOST, ""}};
    idem_counters_add(&counters, &op);
    assert_int_equal(counters.started, 2);
    assert_int_equal(counters.takeovers, 2);
    assert_int_equal(counters.unknown, 1);
    assert_int_equal(counters.lost, 1);
    assert_int_equal(counters.completed + counters.released + counters.purged,
                     0);
    assert_int_equal(counters.size, sizeof(counters));
}
