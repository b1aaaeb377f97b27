/* Lists of requests, each of which is in one at most. */
#ifndef IDEM_AWS_LIST_H
#define IDEM_AWS_LIST_H

#include "aws/transport.h"

struct idem__aws_list {
    struct idem__aws_request *first;
    struct idem__aws_request *last;
};

void idem__aws_list_append(struct idem__aws_list *list,
                           struct idem__aws_request *request);
void idem__aws_list_prepend(struct idem__aws_list *list,
                            struct idem__aws_request *request);
void idem__aws_list_remove(struct idem__aws_list *list,
                           struct idem__aws_request *request);

#endif
