/* A model of the life of one key, from the outside: what libidem promises of it,
 * in as few words as the promises have. It knows neither nonces nor checksums. */
#ifndef FUZZ_MODEL_H
#define FUZZ_MODEL_H

#include <idem.h>

enum {
    NOBODY = -1, /* Of owner. */
    CONTENTS = 4 /* Ways an outcome may read. */
};

struct model {
    bool stored; /* There is a row, perhaps past its retention. */
    enum idem_status status;
    enum idem_on_expired_lease policy;
    uint64_t fence;
    uint64_t fence_max; /* Of any attempt, ever. */
    uint32_t attempts;
    uint32_t uncounted; /* Of them, for a cap: released ones. */
    int owner;          /* Which attempt; NOBODY after a person's decision. */
    bool by_lease;      /* Its lease made the status, not its owner. */
    bool doubtful;   /* An attempt stopped without a word, and nobody looked. */
    bool decided;    /* The status is a person's. */
    int fingerprint; /* 0: none. */
    int content;     /* Which outcome; -1: none. */
    int64_t lease_ms;
    int64_t lease_end_ms;
    int64_t retention_ms;
    int64_t expires_ms;
};

struct claim {
    enum idem_on_expired_lease policy;
    int fingerprint;
    uint32_t attempts_max;
    int64_t lease_ms;
    int64_t retention_ms;
    int64_t expect_ms; /* 0: not said. */
};

bool model_counts(const struct model *m, int64_t now_ms);

/* Applies a claim by the attempt @owner. *@ret_takeover is set with STARTED. */
enum idem_verdict model_begin(struct model *m, const struct claim *claim,
                              int owner, int64_t now_ms, bool *ret_takeover);

/* Tells of a fence that the store gave out; false: it must not have. */
bool model_started(struct model *m, uint64_t fence);

/* The verbs: 0 or an enum idem_code. */
int model_end(struct model *m, int owner, enum idem_status status, int content,
              int64_t now_ms);
int model_renew(struct model *m, int owner, int64_t lease_ms, int64_t now_ms);
int model_expire(struct model *m, int owner, int64_t now_ms);
int model_resolve(struct model *m, uint64_t fence, enum idem_status status,
                  int content, int64_t now_ms);

#endif
