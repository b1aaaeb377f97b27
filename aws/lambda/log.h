/* Log lines: one JSON object each, on stderr, where Lambda collects them. */
#ifndef IDEM_AWS_LAMBDA_LOG_H
#define IDEM_AWS_LAMBDA_LOG_H

#include <idem/lambda.h>

/* One more member of a line; text that is no UTF-8 is shown as it can be. */
struct idem__lambda_field {
    const char *name;       /* NULL: the end. */
    struct idem_slice text; /* base NULL: number is the value. */
    uint64_t number;
};

/* @level: "INFO", "WARN", "ERROR". @now may be NULL: no delivery. @fields may be
 * NULL, else ends with a name of NULL. The line goes out in one write. */
void idem__lambda_log(const struct idem_lambda_invocation *now,
                      const char *level,
                      const struct idem__lambda_field *fields,
                      const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Writes @line, which ends with a newline, as it is. */
void idem__lambda_log_line(struct idem_slice line);

#endif
