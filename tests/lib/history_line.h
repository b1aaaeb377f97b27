/* Fields for the writers of histories; tests/history/history.h draws the lines. */
#ifndef TEST_HISTORY_LINE_H
#define TEST_HISTORY_LINE_H

#include <idem.h>

struct line {
    char text[1024];
    size_t len;
};

/* Adds a text to @line. Aborts if there is no room. */
void line_add(struct line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void line_ms(struct line *line, const char *name, int64_t ms);

/* Adds a hash of @s or @result, unless it is empty. */
void line_word(struct line *line, const char *name, struct idem_slice s);
void line_content(struct line *line, const struct idem_result *result);

const char *line_policy(enum idem_on_expired_lease policy);

/* Adds the arguments of a begin. */
void line_request(struct line *line, const struct idem_request *request);

/* Returns the verb that ends an attempt with @outcome; adds the fields of @outcome. */
const char *line_verb(const struct idem_outcome *outcome);
void line_outcome(struct line *line, const struct idem_outcome *outcome);

/* Returns the word for a call that was answered @code; adds the fields that the answer
 * shows. A begin also has its attempt, a get its record; either may be NULL. */
const char *line_answer(int code, const struct idem_attempt *attempt);
void line_shown(struct line *line, const struct idem_attempt *attempt,
                const struct idem_record *record);

#endif
