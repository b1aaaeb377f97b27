/* Stores that answer as a test says. */
#ifndef TEST_SCRIPT_H
#define TEST_SCRIPT_H

#include "contract/store.h"

/* What becomes of an op; asked whenever it is driven. */
enum script_does {
    SCRIPT_ANSWERS, /* The function has set the answer. */
    SCRIPT_KEEPS,   /* It is under way: see script_release(). */
    SCRIPT_WAITS,   /* It stays pending. */
};

struct script;
typedef enum script_does script_fn(struct script *script, struct idem_op *op);

struct script {
    struct idem_store base;
    script_fn *serve;
    void *ctx;
    int refuse; /* What submit() answers. */
    struct idem_op *pending;
    struct idem_op *kept; /* Under way; may have been detached. */
    unsigned served;
    unsigned cancelled;
    uint8_t nonces[16][16];   /* Of the first ops that were served. */
    struct idem_store *inner; /* Where script_relay() asks. */
};

/* A store of @script, which must stay until idem_close(). Its timeout_ms is 200
 * unless @options says otherwise (may be NULL). */
struct idem_store *script_open(struct script *script, script_fn *serve,
                               const struct idem_open_options *options);

/* Answers the op that was kept, which frees it if it was detached. */
void script_release(struct script *script);

/* Has a store in memory behind the script do @op, under the same nonce, and sets
 * its answer. It is opened by the first call and closed with the script. */
void script_relay(struct script *script, struct idem_op *op);

#endif
