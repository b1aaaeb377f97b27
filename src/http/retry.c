/* When a caller that found an attempt in progress should ask again. */
#include <idem/http.h>

enum {
    FIRST_S = 1,
    LAST_S = 30,
};

int64_t idem_http_attempt_age(const struct idem_attempt *busy)
{
    const struct idem_record *record = busy->record;
    int64_t age_ms;

    if (record->lease_end_ms == IDEM_NEVER || busy->lease_left_ms <= 0) {
        return 0;
    }
    age_ms = record->lease_end_ms - busy->lease_left_ms - record->started_ms;
    return age_ms > 0 ? age_ms : 0;
}

/* Half the age: a caller that follows it waits at most half as long again as the
 * work took. The length of the lease has no part in it: most work ends long
 * before its lease does. */
int idem_http_retry_after(int64_t age_ms)
{
    int64_t s = age_ms / 2000;

    if (s < FIRST_S) {
        return FIRST_S;
    }
    return s > LAST_S ? LAST_S : (int)s;
}
