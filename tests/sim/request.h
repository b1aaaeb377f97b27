/* Requests and outcomes. */
#ifndef SIM_REQUEST_H
#define SIM_REQUEST_H

#include "world.h"

/* A request for @key with nothing unusual about it. */
struct idem_request request_plain(const struct key *key);

/* One with all that a caller can ask for. */
void request_choose(struct client *c, const struct key *key,
                    struct idem_request *request);

/* An outcome that is like no other, and the memory that it points to. */
enum {
    OUTCOME_MORE = 40, /* Than is kept. */
    OUTCOME_MAX = RESULT_MAX + OUTCOME_MORE
};

struct outcome {
    struct idem_outcome said;
    char bytes[OUTCOME_MAX];
    char meta[16];
};

void outcome_make(struct client *c, enum idem_status status,
                  struct outcome *ret_outcome);

#endif
