/* How fast capacity units may be used. */
#include "aws/dynamodb/table/budget.h"

enum {
    SECOND_MS = 1000,
    RECOVERY = 10, /* Seconds from no pace at all to the full one. */
    LEAST = 1,     /* Unit in a second: work goes on in any case. */
    WAIT_MAX_MS = 60 * 1000,
};

void idem__budget_init(struct idem__budget *budget, uint64_t units_per_second,
                       int64_t now_ms)
{
    budget->full = (double)(units_per_second == 0 ? LEAST : units_per_second);
    budget->pace = budget->full;
    budget->left = 0;
    budget->used = 0;
    budget->used_from_ms = now_ms;
    budget->at_ms = now_ms;
}

void idem__budget_use(struct idem__budget *budget, double units)
{
    budget->left -= units;
    budget->used += units;
}

void idem__budget_throttled(struct idem__budget *budget, int64_t now_ms)
{
    double ms = (double)(now_ms - budget->used_from_ms);
    double measured = budget->used * SECOND_MS / (ms < 1 ? 1 : ms);

    if (ms < SECOND_MS && budget->pace < budget->full) {
        return; /* It has been halved within this second. */
    }
    /* A budget that is never reached says nothing of what the table bears. */
    if (measured > 0 && measured < budget->pace) {
        budget->pace = measured;
    }
    budget->pace /= 2;
    if (budget->pace < LEAST) {
        budget->pace = LEAST;
    }
    budget->used = 0;
    budget->used_from_ms = now_ms;
}

int64_t idem__budget_wait_ms(struct idem__budget *budget, int64_t now_ms)
{
    double seconds = (double)(now_ms - budget->at_ms) / SECOND_MS;
    double wait;

    budget->at_ms = now_ms;
    budget->left += seconds * budget->pace;
    budget->pace += seconds * budget->full / RECOVERY;
    if (budget->pace > budget->full) {
        budget->pace = budget->full;
    }
    if (budget->left > budget->pace) {
        budget->left = budget->pace;
    }
    if (budget->left >= 0) {
        return 0;
    }
    wait = -budget->left * SECOND_MS / budget->pace;
    return wait >= WAIT_MAX_MS ? WAIT_MAX_MS : (int64_t)wait + 1;
}
