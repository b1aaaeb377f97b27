/* Lists of words in a setting: "POST,PATCH". */
#ifndef IDEM_AWS_LAMBDA_LIST_H
#define IDEM_AWS_LAMBDA_LIST_H

#include <idem.h>

#include <strings.h>

/* True if @word is one of @list, in whatever case. */
static inline bool idem__lambda_is_in_list(const char *list,
                                           struct idem_slice word)
{
    while (*list != '\0') {
        size_t len = strcspn(list, ",");

        if (len == word.len && strncasecmp(list, word.base, len) == 0) {
            return true;
        }
        list += len;
        list += *list == ',' ? 1 : 0;
    }
    return false;
}

#endif
