/* A row of a table as values: what its columns must be. */
#include "store/sqlite/row.h"

#include "core/decide.h"
#include "core/error.h"

enum {
    SAVE_EVERY_MS = 1000
};

static bool is_sound(int64_t number)
{
    return number >= 0 && number <= INT64_MAX / 2;
}

bool idem__clock_row_settle(struct idem__clock_row *row)
{
    struct idem_anchor *anchor = &row->anchor;

    if (!is_sound(anchor->boot_ms) || !is_sound(anchor->store_ms) ||
        !is_sound(anchor->sure_ms) || !is_sound(anchor->jump_ms) ||
        !is_sound(row->last_ms) || !is_sound(row->fence_floor) ||
        anchor->sure_ms > anchor->store_ms) {
        return false;
    }
    return true;
}

bool idem__clock_row_is_due(int64_t last_ms, const struct idem_now *now)
{
    return idem__clock_sure_ms(now) >= last_ms + SAVE_EVERY_MS;
}

int idem__row_differs(struct idem_error *error)
{
    return idem__error(error, IDEM_ECORRUPT,
                       "the record cannot be trusted: its columns do not match "
                       "it");
}

int idem__row_check(const struct idem_record *record, int64_t status,
                    int64_t deadline, struct idem_error *error)
{
    return status == (int64_t)record->status &&
                   deadline == idem__deadline(record)
               ? 0
               : idem__row_differs(error);
}
