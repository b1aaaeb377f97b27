/* Functions that fill in a struct idem_error. */
#ifndef IDEM_CORE_ERROR_H
#define IDEM_CORE_ERROR_H

#include <idem.h>
#include <stdarg.h>

/* Sets @error (may be NULL) and returns @code. The sentence is cut to fit. */
int idem__error(struct idem_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int idem__verror(struct idem_error *error, int code, const char *format,
                 va_list args) __attribute__((format(printf, 3, 0)));

/* The code for the errno @why of a file that could not be opened, read or written. */
int idem__error_code_of(int why);

/* Sets @error to @code with its standard sentence, and returns @code. */
int idem__error_plain(struct idem_error *error, int code);

#endif
