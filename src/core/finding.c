/* Reports the findings of a check to its caller, one at a time. */
#include "core/finding.h"

#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>

void idem__found(const struct idem__findings *to, enum idem_grade grade,
                 const char *about, const char *mend, const char *format, ...)
{
    struct idem_finding finding = {
        .grade = grade,
        .code = grade == IDEM_GRADE_BAD ? IDEM_ECONFIG : 0,
        .about = about,
        .mend = mend,
    };
    char text[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    finding.text = text;
    to->each(to->ctx, &finding);
}

void idem__found_error(const struct idem__findings *to, const char *about,
                       const char *mend, const struct idem_error *error)
{
    struct idem_finding finding = {
        .grade = IDEM_GRADE_BAD,
        .code = error->code,
        .about = about,
        .text = error->text,
        .mend = mend,
    };

    to->each(to->ctx, &finding);
}

int idem__check_options(const struct idem_check_options *given,
                        struct idem_check_options *ret_options,
                        struct idem_error *error)
{
    static const struct idem_check_options usual = IDEM_CHECK_OPTIONS_INIT;

    *ret_options = usual;
    if (given == NULL) {
        return 0;
    }
    if (given->size != sizeof(*given)) {
        return idem__error(error, IDEM_EINVALID,
                           "options: begin with IDEM_CHECK_OPTIONS_INIT");
    }
    *ret_options = *given;
    return 0;
}
