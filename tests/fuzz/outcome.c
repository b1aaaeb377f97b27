/* Tables of outcomes. The first byte says what the table is about, the second whether
 * the rest is the table, or words of one by their numbers.
 *
 * A table that is read gives each status, and an ending without one, what a plain walk
 * from its first entry to its last gives; each of its matches but those of a preset
 * is the first for some status. A name that is found is found again when it is
 * the only entry.
 */
#include "fuzz.h"

#include <idem/outcome.h>

#include <stdio.h>
#include <stdlib.h>

static const char *const words[] = {
    "0",       "1",     "42",    "75",       "200",     "255",    "401",
    "499",     "500",   "503",   "599",      "2xx",     "4xx",    "5xx",
    "*",       "none",  "-",     ",",        "=",       " ",      "complete",
    "fail",    "retry", "=fail", "=release", "unknown", "jobs",   "webhook",
    "Exit.4*", "Exit",  "*d",    "Declined", "0=",      "*=fail", "0=complete ",
};

enum {
    TEXT_MAX = 2000,
    WORDS_LEN = sizeof(words) / sizeof(words[0]),
};

static void add(char *text, const char *word)
{
    if (strlen(text) + strlen(word) < TEXT_MAX) {
        (void)strcat(text, word);
    }
}

/* @text, with the entries of its presets in their places. */
static void expand(const char *text, char *to)
{
    char copy[TEXT_MAX];
    char *word;
    char *save;

    (void)snprintf(copy, sizeof(copy), "%s", text);
    to[0] = '\0';
    for (word = strtok_r(copy, " \t\r\n", &save); word != NULL;
         word = strtok_r(NULL, " \t\r\n", &save)) {
        if (strcmp(word, "jobs") == 0) {
            word = "0=complete 75=release *=retry";
        } else if (strcmp(word, "webhook") == 0) {
            word = "2xx=complete 401,407,408,425,429,503=release 4xx=complete "
                   "*=retry";
        }
        add(to, word);
        add(to, " ");
    }
}

static enum idem_status outcome_named(const char *word)
{
    return strcmp(word, "complete") == 0  ? IDEM_STATUS_COMPLETED
           : strcmp(word, "fail") == 0    ? IDEM_STATUS_FAILED
           : strcmp(word, "release") == 0 ? IDEM_STATUS_RELEASED
           : strcmp(word, "retry") == 0   ? IDEM_STATUS_RETRY
                                          : IDEM_STATUS_UNKNOWN;
}

static bool matches(const char *match, int status)
{
    const char *dash = strchr(match, '-');

    if (strcmp(match, "*") == 0) {
        return status >= 0;
    }
    if (strcmp(match, "none") == 0) {
        return status < 0;
    }
    if (match[0] < '0' || match[0] > '9' || status < 0) {
        return false;
    }
    if (strstr(match, "xx") != NULL) {
        return status / 100 == match[0] - '0';
    }
    return dash == NULL ? atoi(match) == status
                        : atoi(match) <= status && status <= atoi(dash + 1);
}

/* The number of the match that is the first for @status (-1: none) in @text; *@ret_found
 * is its outcome. 0: no match is. */
static unsigned walk(const char *text, int status, enum idem_status *ret_found)
{
    char copy[TEXT_MAX];
    char *save;
    char *save_match;
    char *entry;
    char *match;
    unsigned n = 0;

    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (entry = strtok_r(copy, " ", &save); entry != NULL;
         entry = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(entry, '=');

        must(equals != NULL);
        *equals = '\0';
        for (match = strtok_r(entry, ",", &save_match); match != NULL;
             match = strtok_r(NULL, ",", &save_match)) {
            n++;
            if (matches(match, status)) {
                *ret_found = outcome_named(equals + 1);
                return n;
            }
        }
    }
    return 0;
}

static enum idem_status default_of(enum idem_endings of, int status)
{
    if (of == IDEM_ENDINGS_EXIT) {
        return status == 75 ? IDEM_STATUS_RELEASED : IDEM_STATUS_COMPLETED;
    }
    return status == 401 || status == 407 || status == 408 || status == 425 ||
                   status == 429 || status == 503
               ? IDEM_STATUS_RELEASED
           : status == 502 || status == 504 ? IDEM_STATUS_UNKNOWN
                                            : IDEM_STATUS_COMPLETED;
}

static unsigned count_matches(const char *text)
{
    unsigned n = 0;

    for (; *text != '\0'; text++) {
        n += *text == ',' || *text == '=' ? 1 : 0;
    }
    return n;
}

/* Presets may have dead entries, names are first for no status, and a star may be there
 * for the names alone. */
static bool is_plain(const char *text, enum idem_endings of)
{
    return of != IDEM_ENDINGS_LAMBDA && strstr(text, "jobs") == NULL &&
           strstr(text, "webhook") == NULL;
}

static void check(const struct idem_outcome_table *table, const char *text)
{
    bool first_for_one[TEXT_MAX] = {false};
    char entries[2 * TEXT_MAX];
    bool exits = table->of == IDEM_ENDINGS_EXIT;
    enum idem_status want = (enum idem_status)0;
    bool named;
    unsigned n;
    int status;

    expand(text, entries);
    n = walk(entries, -1, &want);
    first_for_one[n] = true;
    must(table->none == (n == 0 ? 0 : want));
    for (status = 0; status < 700; status++) {
        if (status < (exits ? 0 : 200) || status > (exits ? 255 : 599)) {
            must(idem_outcome_of_status(table, status, NULL) == 0);
            continue;
        }
        n = walk(entries, status, &want);
        first_for_one[n] = true;
        must(idem_outcome_of_status(table, status, &named) ==
             (n == 0 ? default_of(table->of, status) : want));
        must(named == (n != 0));
    }
    if (is_plain(text, table->of)) {
        for (n = count_matches(entries); n > 0; n--) {
            must(first_for_one[n]);
        }
    }
}

static void check_error(const struct idem_outcome_table *table)
{
    static const char *const names[] = {"Declined", "Exit.42", "Exit", "d"};
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        enum idem_status found = idem_outcome_of_error(table, names[i]);
        struct idem_outcome_table only;
        char text[40];

        (void)snprintf(text, sizeof(text), "%s=fail", names[i]);
        must(table->of == IDEM_ENDINGS_LAMBDA || found == 0 ||
             strchr(table->text, '*') != NULL ||
             strstr(table->text, "webhook") != NULL ||
             strstr(table->text, "jobs") != NULL);
        must(idem_outcome_table_read(&only, IDEM_ENDINGS_LAMBDA, text, NULL) ==
             0);
        must(idem_outcome_of_error(&only, names[i]) == IDEM_STATUS_FAILED);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    enum idem_endings of =
        (enum idem_endings)(IDEM_ENDINGS_EXIT + (int)take_up_to(&tape, 2));
    struct idem_outcome_table table;
    struct idem_error error = {0};
    char spelled[TEXT_MAX] = "";
    char *text;

    if (take_bool(&tape)) {
        while (tape.left > 0) {
            add(spelled, words[take_up_to(&tape, WORDS_LEN - 1)]);
        }
        text = text_of(idem_str(spelled));
    } else {
        text = text_of(take_rest(&tape));
    }
    if (strlen(text) < TEXT_MAX / 4) {
        if (idem_outcome_table_read(&table, of, text, &error) == 0) {
            check(&table, text);
            check_error(&table);
        } else {
            must(error.text[0] != '\0');
        }
    }
    free(text);
    return 0;
}
