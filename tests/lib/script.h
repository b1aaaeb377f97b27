/* Stores whose answers a test decides. */
#ifndef TEST_SCRIPT_H
#define TEST_SCRIPT_H

#include "contract/store.h"

/* What happens to an op. The store asks whenever it drives one. */
enum script_does {
    SCRIPT_ANSWERS, /* The function has set the answer. */
    SCRIPT_KEEPS,   /* It is in flight: see script_release(). */
    SCRIPT_WAITS,   /* It stays pending. */
};

struct script;
typedef enum script_does script_fn(struct script *script, struct idem_op *op);

struct script {
    struct idem_store base;
    script_fn *serve;
    void *ctx;
    int refuse; /* The result of submit(). */
    struct idem_op *pending;
    struct idem_op *kept; /* In flight; may have been detached. */
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

/* Passes @op, under the same nonce, to a store in memory of the script, and sets its
 * answer. The first call opens that store; it is closed with the script. */
void script_relay(struct script *script, struct idem_op *op);

#endif
