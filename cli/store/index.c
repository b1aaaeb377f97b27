/* Which lists an index of the store serves. */
#include "store/index.h"

/* An index has what is open, and what failed, in an order of its own. */
bool cli_index_serves(const struct idem_filter *filter)
{
    return filter->overdue || filter->failed_outcomes ||
           (filter->statuses != 0 &&
            (filter->statuses & 1u << IDEM_STATUS_COMPLETED) == 0);
}
