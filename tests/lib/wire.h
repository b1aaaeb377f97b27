/* A wire between the tasks of a DynamoDB store and a table in memory, which loses
 * and doubles what it carries. */
#ifndef TEST_WIRE_H
#define TEST_WIRE_H

#include "aws/dynamodb/task/task.h"
#include "table.h"

enum fate {
    FATE_GOOD = 0,
    FATE_NOT_SENT,    /* Nothing was sent. */
    FATE_THROTTLED,   /* Refused for its rate. */
    FATE_LOST,        /* The request was lost on its way. */
    FATE_ANSWER_LOST, /* It was applied, and its answer lost. */
    FATE_500_BEFORE,  /* "Internal server error", and it was not applied ... */
    FATE_500_AFTER,   /* ... or was. */
    FATE_TWICE,       /* It was applied twice; the second answer came back. */
    FATE_CONFLICT,    /* It met a transaction. */
    FATE_NO_OLD_ITEM, /* A refusal does not show what is there. */
    FATES,
};

extern const char *const fate_names[FATES];

/* Sets the answer to @request, whose fate is @fate. */
void wire_carry(struct table *table, struct idem__aws_request *request,
                enum fate fate);

/* Answers @request with @status and a copy of @body. */
void wire_answer(struct idem__aws_request *request, int status,
                 struct idem_slice body);

/* Ends @request without an answer, @sent or not. */
void wire_silence(struct idem__aws_request *request, bool sent);

/* A store with one task at a time. */
struct wire {
    struct table table;
    struct idem__task_env env;
    struct idem__task task;
    uint8_t scratch[IDEM_HEAD_MAX];
    enum fate fates[64]; /* Of the first requests; all later ones succeed. */
    unsigned requests;   /* Carried so far. */
    char log[4096];      /* Their operations, each followed by a space. */
    struct idem_now now;
};

/* Sets up a store that remembers claims if @claims. Its clocks show the times of
 * sample_now(), with a margin of two seconds. */
void wire_init(struct wire *wire, bool claims);
void wire_finish(struct wire *wire);

/* Runs @op to its end, at wire->now, which pauses move on. */
void wire_run(struct wire *wire, struct idem_op *op);

/* Starts @op, which wants to send its first request. */
void wire_start(struct wire *wire, struct idem_op *op);

/* Carries the request of the op, whose fate is @fate, and gives the op the answer. */
void wire_step(struct wire *wire, enum fate fate);

void wire_pass(struct wire *wire, int64_t ms);

/* An op of @verb on @key in the empty scope, by the claimant @who; a claim is under
 * IDEM_RERUN. */
struct idem_op wire_op(enum idem_verb verb, const char *key, char who);

/* Frees the arguments and the answer of @op. */
void wire_free(struct idem_op *op);

#endif
