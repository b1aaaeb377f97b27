/* Parses the table of outcomes, and looks up which outcome an ending has in it. */
#include <idem/outcome.h>

#include "core/error.h"

#define BLANKS " \t\r\n"

enum {
    NAMED = 0x80, /* In by_status: an entry of the table names the status. */
    EXIT_LAST = 255,
    HTTP_FIRST = 200,
    HTTP_LAST = 599,
    SHOWN_MAX = 60, /* Bytes of a word in a message. */
};

/* ---- Words -------------------------------------------------------------- */

static const struct {
    const char *name;
    bool exits; /* True: exit statuses. False: HTTP. */
    const char *text;
} presets[] = {
    {"jobs", true, "0=complete 75=release *=retry"},
    {"webhook", false,
     "2xx=complete 401,407,408,425,429,503=release 4xx=complete *=retry"},
};

/* A position in a table. Inside a preset, @after is the position at which the table
 * continues. */
struct walk {
    const char *at;
    const char *after;
};

static bool is_word(struct idem_slice slice, const char *word)
{
    return slice.len == strlen(word) &&
           memcmp(slice.base, word, slice.len) == 0;
}

static const char *preset_of(enum idem_endings of, struct idem_slice word)
{
    size_t i;

    for (i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
        if (presets[i].exits == (of == IDEM_ENDINGS_EXIT) &&
            is_word(word, presets[i].name)) {
            return presets[i].text;
        }
    }
    return NULL;
}

static bool next_word(struct walk *walk, struct idem_slice *ret_word)
{
    for (;;) {
        walk->at += strspn(walk->at, BLANKS);
        if (*walk->at != '\0') {
            break;
        }
        if (walk->after == NULL) {
            return false;
        }
        walk->at = walk->after;
        walk->after = NULL;
    }
    *ret_word = idem_bytes(walk->at, strcspn(walk->at, BLANKS));
    walk->at += ret_word->len;
    return true;
}

/* Takes the next match off *@rest, which starts as all before the "=" of an entry: "401"
 * of "401,407=release". */
static bool next_match(struct idem_slice *rest, struct idem_slice *ret_match)
{
    const char *p = rest->base;
    const char *comma;

    if (p == NULL) {
        return false;
    }
    comma = memchr(p, ',', rest->len);
    if (comma == NULL) {
        *ret_match = *rest;
        *rest = idem_bytes(NULL, 0);
    } else {
        *ret_match = idem_bytes(p, (size_t)(comma - p));
        *rest = idem_bytes(comma + 1, rest->len - ret_match->len - 1);
    }
    return true;
}

/* False: @word has no "=". */
static bool split(struct idem_slice word, struct idem_slice *ret_matches,
                  struct idem_slice *ret_outcome)
{
    const char *equals = memchr(word.base, '=', word.len);

    if (equals == NULL) {
        return false;
    }
    *ret_matches =
        idem_bytes(word.base, (size_t)(equals - (const char *)word.base));
    *ret_outcome = idem_bytes(equals + 1, word.len - ret_matches->len - 1);
    return true;
}

/* The status that @word names; 0: @word is not an outcome. */
static enum idem_status outcome_of(struct idem_slice word)
{
    static const struct {
        const char *name;
        enum idem_status status;
    } outcomes[] = {
        {"complete", IDEM_STATUS_COMPLETED}, {"fail", IDEM_STATUS_FAILED},
        {"release", IDEM_STATUS_RELEASED},   {"retry", IDEM_STATUS_RETRY},
        {"unknown", IDEM_STATUS_UNKNOWN},
    };
    size_t i;

    for (i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
        if (is_word(word, outcomes[i].name)) {
            return outcomes[i].status;
        }
    }
    return (enum idem_status)0;
}

/* ---- Names of errors ----------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* True for a name of an error, in the characters that idem__lambda_run_error() allows, or
 * a pattern of such names with asterisks. */
static bool is_name(struct idem_slice match)
{
    const char *p = match.base;
    size_t i;

    if (match.len == 0 || (!is_letter(p[0]) && p[0] != '_' && p[0] != '*')) {
        return false;
    }
    for (i = 0; i < match.len; i++) {
        if (!is_letter(p[i]) && !is_digit(p[i]) &&
            (p[i] == '\0' || strchr("._-*", p[i]) == NULL)) {
            return false;
        }
    }
    return !is_word(match, "none");
}

/* True if @pattern matches @name, or everything that @name matches if that is a pattern,
 * too. An asterisk in @pattern matches any characters; one in @name is matched only by an
 * asterisk. */
static bool covers(struct idem_slice pattern, struct idem_slice name)
{
    const char *p = pattern.base;
    const char *n = name.base;
    size_t star = SIZE_MAX; /* The last asterisk in @pattern, ... */
    size_t from = 0;        /* ... and the end of its match. */
    size_t i = 0;
    size_t j = 0;

    while (j < name.len) {
        if (i < pattern.len && p[i] == '*') {
            star = i++;
            from = j;
        } else if (i < pattern.len && p[i] == n[j]) {
            i++;
            j++;
        } else if (star != SIZE_MAX) {
            i = star + 1;
            j = ++from;
        } else {
            return false;
        }
    }
    while (i < pattern.len && p[i] == '*') {
        i++;
    }
    return i == pattern.len;
}

/* The outcome of the first name in the table that covers @name. Only the entries before
 * @stop count (NULL: all). 0: none covers it. */
static enum idem_status find_error(const struct idem_outcome_table *table,
                                   struct idem_slice name, const void *stop)
{
    struct walk walk = {.at = table->text};
    struct idem_slice matches;
    struct idem_slice outcome;
    struct idem_slice match;
    struct idem_slice word;
    const char *preset;

    while (walk.at != NULL && next_word(&walk, &word)) {
        preset = preset_of(table->of, word);
        if (preset != NULL) {
            walk.after = walk.at;
            walk.at = preset;
            continue;
        }
        if (!split(word, &matches, &outcome)) {
            break;
        }
        while (next_match(&matches, &match)) {
            /* Only the entries before this one count, and none of them covers the
             * name. */
            if (match.base == stop) {
                return (enum idem_status)0;
            }
            if (is_name(match) && covers(match, name)) {
                return outcome_of(outcome);
            }
        }
    }
    return (enum idem_status)0;
}

/* ---- Reading ------------------------------------------------------------- */

struct reader {
    struct idem_outcome_table *table;
    struct idem_error *error;
    struct idem_slice word; /* The entry. */
    int first;
    int last;
};

static int refuse(struct reader *r, const char *why)
{
    char shown[SHOWN_MAX + 1];
    const char *p = r->word.base;
    size_t len = r->word.len < SHOWN_MAX ? r->word.len : SHOWN_MAX;
    size_t i;

    for (i = 0; i < len; i++) {
        shown[i] = p[i] > ' ' && p[i] <= '~' ? p[i] : '?';
    }
    shown[len] = '\0';
    return idem__error(r->error, IDEM_EINVALID, "\"%s\": %s", shown, why);
}

static int refuse_match(struct reader *r)
{
    switch (r->table->of) {
    case IDEM_ENDINGS_EXIT:
        return refuse(r,
                      "expected exit statuses from 0 to 255 (42 or 64-78), * "
                      "or none before the =");
    case IDEM_ENDINGS_HTTP:
        return refuse(r,
                      "expected HTTP statuses from 200 to 599 (404, 500-504 or "
                      "5xx), * or none before the =");
    case IDEM_ENDINGS_LAMBDA:
        break;
    }
    return refuse(
        r, "expected HTTP statuses from 200 to 599 (404, 500-504 or 5xx), "
           "names of errors (Declined, Exit.4*), * or none before the =");
}

static int refuse_dead(struct reader *r)
{
    return refuse(
        r, "can never match: earlier entries match everything that it matches");
}

/* The value of one to three digits; -1: @p is something else. */
static int number_of(const char *p, size_t len)
{
    int n = 0;
    size_t i;

    if (len < 1 || len > 3) {
        return -1;
    }
    for (i = 0; i < len; i++) {
        if (!is_digit(p[i])) {
            return -1;
        }
        n = n * 10 + (p[i] - '0');
    }
    return n;
}

/* False: @match is not a status or a range of statuses. */
static bool read_range(const struct reader *r, struct idem_slice match,
                       int *ret_from, int *ret_to)
{
    const char *p = match.base;
    const char *dash = match.len == 0 ? NULL : memchr(p, '-', match.len);

    if (is_word(match, "*")) {
        *ret_from = r->first;
        *ret_to = r->last;
    } else if (r->table->of != IDEM_ENDINGS_EXIT && match.len == 3 &&
               is_digit(p[0]) && p[1] == 'x' && p[2] == 'x') {
        *ret_from = (p[0] - '0') * 100;
        *ret_to = *ret_from + 99;
    } else if (dash != NULL) {
        *ret_from = number_of(p, (size_t)(dash - p));
        *ret_to = number_of(dash + 1, match.len - (size_t)(dash + 1 - p));
    } else {
        *ret_from = number_of(p, match.len);
        *ret_to = *ret_from;
    }
    return *ret_from >= r->first && *ret_to <= r->last && *ret_from <= *ret_to;
}

/* False: earlier entries have taken all of these statuses. */
static bool take(struct reader *r, int from, int to, enum idem_status status)
{
    bool taken = false;

    for (; from <= to; from++) {
        uint8_t *place = &r->table->by_status[from];

        /* The first entry that matches wins, so a later one takes only what is left. */
        if (*place == 0) {
            *place = (uint8_t)((unsigned)status | NAMED);
            taken = true;
        }
    }
    return taken;
}

static int read_none(struct reader *r, enum idem_status status)
{
    /* Without a status of the work, a front end cannot know that the work was done, or that
     * nothing happened (specification 3). */
    if (status != IDEM_STATUS_UNKNOWN && status != IDEM_STATUS_RETRY &&
        status != IDEM_STATUS_FAILED) {
        return refuse(
            r, "without a status, the outcome must be unknown, retry or fail");
    }
    if (r->table->none != 0) {
        return refuse_dead(r);
    }
    r->table->none = status;
    return 0;
}

/* @is_preset: the entry is from a preset, and may match only statuses that earlier
 * entries have taken. */
static int read_match(struct reader *r, struct idem_slice match,
                      enum idem_status status, bool is_preset)
{
    bool lambda = r->table->of == IDEM_ENDINGS_LAMBDA;
    bool taken = false;
    int from;
    int to;

    if (is_word(match, "none")) {
        return read_none(r, status);
    }
    if (read_range(r, match, &from, &to)) {
        taken = take(r, from, to, status);
    } else if (!lambda || !is_name(match)) {
        return refuse_match(r);
    }
    if (lambda && is_name(match)) {
        taken = taken || find_error(r->table, match, match.base) == 0;
    }
    /* An entry that can never match is a mistake: the author of the table relies on
     * it. */
    return taken || is_preset ? 0 : refuse_dead(r);
}

static bool is_full(const struct reader *r)
{
    int i;

    for (i = r->first; i <= r->last; i++) {
        if (r->table->by_status[i] == 0) {
            return false;
        }
    }
    return true;
}

static int read_entry(struct reader *r, bool is_preset)
{
    struct idem_slice matches;
    struct idem_slice match;
    struct idem_slice word;
    enum idem_status status;
    int rc = 0;

    if (!split(r->word, &matches, &word)) {
        return refuse(r, r->table->of == IDEM_ENDINGS_EXIT
                             ? "expected STATUS=OUTCOME, as in 42=fail, or jobs"
                             : "expected STATUS=OUTCOME, as in 5xx=retry, or "
                               "webhook");
    }
    status = outcome_of(word);
    if (status == 0) {
        return refuse(
            r, "an outcome is complete, fail, release, retry or unknown");
    }
    while (rc == 0 && next_match(&matches, &match)) {
        rc = read_match(r, match, status, is_preset);
    }
    return rc;
}

static int read_entries(struct reader *r, const char *text)
{
    struct walk walk = {.at = text};
    const char *preset;
    size_t n = 0;
    int rc = 0;

    for (; rc == 0 && next_word(&walk, &r->word); n++) {
        preset = preset_of(r->table->of, r->word);
        if (preset == NULL) {
            rc = read_entry(r, walk.after != NULL);
        } else if (is_full(r)) {
            rc = refuse_dead(r);
        } else {
            /* Presets do not nest, so one position to return to is enough. */
            walk.after = walk.at;
            walk.at = preset;
        }
    }
    if (rc == 0 && n == 0) {
        return idem__error(r->error, IDEM_EINVALID, "the table is empty");
    }
    return rc;
}

static enum idem_status default_of(enum idem_endings of, int status)
{
    if (of == IDEM_ENDINGS_EXIT) {
        return status == 75 ? IDEM_STATUS_RELEASED : IDEM_STATUS_COMPLETED;
    }
    switch (status) {
    case 401: /* The caller's credentials, which may be renewed. */
    case 407:
    case 408:
    case 425:
    case 429:
    case 503:
        /* A server answers with one of these when it has not done the work. */
        return IDEM_STATUS_RELEASED;
    case 502:
    case 504:
        /* A gateway answers so in place of a server that may have done the work. */
        return IDEM_STATUS_UNKNOWN;
    default:
        return IDEM_STATUS_COMPLETED;
    }
}

int idem_outcome_table_read(struct idem_outcome_table *ret_table,
                            enum idem_endings of, const char *text,
                            struct idem_error *ret_error)
{
    struct idem_outcome_table table = {.of = of, .text = text};
    struct reader r = {.table = &table, .error = ret_error, .last = EXIT_LAST};
    int rc;
    int i;

    if (of != IDEM_ENDINGS_EXIT) {
        r.first = HTTP_FIRST;
        r.last = HTTP_LAST;
    }
    if (text != NULL) {
        rc = read_entries(&r, text);
        if (rc != 0) {
            return rc;
        }
    }
    for (i = r.first; i <= r.last; i++) {
        if (table.by_status[i] == 0) {
            table.by_status[i] = (uint8_t)default_of(of, i);
        }
    }
    /* Otherwise success would never be recorded, and each run would do the work
     * again. */
    if (of == IDEM_ENDINGS_EXIT &&
        idem_outcome_of_status(&table, 0, NULL) != IDEM_STATUS_COMPLETED) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "exit status 0 must complete: put 0=complete first");
    }
    *ret_table = table;
    return 0;
}

/* ---- Lookups ------------------------------------------------------------- */

enum idem_status idem_outcome_of_status(const struct idem_outcome_table *table,
                                        int status, bool *ret_named)
{
    uint8_t found = 0;

    if (status >= 0 && status <= HTTP_LAST) {
        found = table->by_status[status];
    }
    if (ret_named != NULL) {
        *ret_named = (found & NAMED) != 0;
    }
    return (enum idem_status)(found & ~NAMED);
}

enum idem_status idem_outcome_of_error(const struct idem_outcome_table *table,
                                       const char *name)
{
    return find_error(table, idem_str(name), /* stop= */ NULL);
}

enum idem_status idem_outcome_of_none(const struct idem_outcome_table *table,
                                      enum idem_on_expired_lease policy)
{
    if (table->none != 0) {
        return table->none;
    }
    return policy == IDEM_RERUN ? IDEM_STATUS_RETRY : IDEM_STATUS_UNKNOWN;
}
