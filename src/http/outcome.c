/* The outcome of the work that the status of an answer implies. */
#include <idem/http.h>

enum {
    FIRST = 100,
    SETTABLE = 200,
    LAST = 599,
};

void idem_http_outcomes_init(struct idem_http_outcomes *outcomes)
{
    static const short released[] = {408, 425, 429, 503};
    size_t i;

    memset(outcomes->of, IDEM_HTTP_STORE, sizeof(outcomes->of));
    memset(outcomes->of, IDEM_HTTP_UNKNOWN, SETTABLE - FIRST);
    for (i = 0; i < sizeof(released) / sizeof(released[0]); i++) {
        outcomes->of[released[i] - FIRST] = IDEM_HTTP_RELEASE;
    }
    outcomes->of[502 - FIRST] = IDEM_HTTP_UNKNOWN;
    outcomes->of[504 - FIRST] = IDEM_HTTP_UNKNOWN;
}

/* Three digits, or -1. */
static int number_of(const char *p)
{
    int n = 0;
    int i;

    for (i = 0; i < 3; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return -1;
        }
        n = n * 10 + (p[i] - '0');
    }
    return n;
}

int idem_http_outcomes_set(struct idem_http_outcomes *outcomes,
                           struct idem_slice codes,
                           enum idem_http_outcome outcome)
{
    const char *p = codes.base;
    int from = -1;
    int to = -1;

    if (codes.len == 3 && p[1] == 'x' && p[2] == 'x') {
        from = (p[0] - '0') * 100;
        to = from + 99;
    } else if (codes.len == 3) {
        from = number_of(p);
        to = from;
    } else if (codes.len == 7 && p[3] == '-') {
        from = number_of(p);
        to = number_of(p + 4);
    }
    if (from < SETTABLE || to > LAST || from > to ||
        outcome < IDEM_HTTP_STORE || outcome > IDEM_HTTP_RETRY) {
        return IDEM_EINVALID;
    }
    memset(outcomes->of + (from - FIRST), (int)outcome,
           (size_t)(to - from + 1));
    return 0;
}

enum idem_http_outcome idem_http_outcome(
    const struct idem_http_outcomes *outcomes, int status)
{
    if (status < FIRST || status > LAST) {
        return IDEM_HTTP_UNKNOWN;
    }
    return (enum idem_http_outcome)outcomes->of[status - FIRST];
}

enum idem_http_outcome idem_http_outcome_of(struct idem_slice word)
{
    static const char *const words[] = {"complete", "release", "unknown",
                                        "fail", "retry"};
    int i;

    for (i = 0; i < (int)(sizeof(words) / sizeof(words[0])); i++) {
        if (word.len == strlen(words[i]) &&
            memcmp(word.base, words[i], word.len) == 0) {
            return (enum idem_http_outcome)(i + IDEM_HTTP_STORE);
        }
    }
    return (enum idem_http_outcome)0;
}
