/* How fast capacity units may be used. Pure: times come from the caller.
 *
 * Work is done in pieces whose units are known only afterwards. A piece may begin
 * while the budget is not overdrawn, so that it is kept but for one piece of each
 * worker; what was saved up is a second's worth at most.
 *
 * Each throttle halves the pace, once a second at most, so that those who share the
 * table get their part; it recovers by a tenth of the whole in each second. */
#ifndef IDEM_AWS_DYNAMODB_TABLE_BUDGET_H
#define IDEM_AWS_DYNAMODB_TABLE_BUDGET_H

#include <stdint.h>

struct idem__budget {
    double full;          /* Units in a second, when nobody is throttled ... */
    double pace;          /* ... and now. */
    double left;          /* Units; below 0: overdrawn. */
    double used;          /* Since the last throttle, or the start ... */
    int64_t used_from_ms; /* ... which was then. */
    int64_t at_ms;        /* Of the last look. */
};

void idem__budget_init(struct idem__budget *budget, uint64_t units_per_second,
                       int64_t now_ms);

/* @units were used. */
void idem__budget_use(struct idem__budget *budget, double units);

/* The service has refused a request for want of capacity. */
void idem__budget_throttled(struct idem__budget *budget, int64_t now_ms);

/* 0: more work may begin now. Else in how many ms that can be asked again. */
int64_t idem__budget_wait_ms(struct idem__budget *budget, int64_t now_ms);

#endif
