/* Fields of the lines that tests/history/history.h draws, for who writes them. */
#ifndef TEST_HISTORY_LINE_H
#define TEST_HISTORY_LINE_H

#include <idem.h>

struct line {
    char text[1024];
    size_t len;
};

/* Aborts where @line has no room. */
void line_add(struct line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void line_ms(struct line *line, const char *name, int64_t ms);

/* A hash of @s or @result, unless it is empty. */
void line_word(struct line *line, const char *name, struct idem_slice s);
void line_content(struct line *line, const struct idem_result *result);

const char *line_policy(enum idem_on_expired_lease policy);

/* What a begin asks for. */
void line_request(struct line *line, const struct idem_request *request);

/* The verb that ends an attempt as @outcome, and what @outcome brings. */
const char *line_verb(const struct idem_outcome *outcome);
void line_outcome(struct line *line, const struct idem_outcome *outcome);

/* What a call was told that was answered @code: the word, and what it shows. Of a
 * begin also the attempt, of a get the record; either may be NULL. */
const char *line_answer(int code, const struct idem_attempt *attempt);
void line_shown(struct line *line, const struct idem_attempt *attempt,
                const struct idem_record *record);

#endif
