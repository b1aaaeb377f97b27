/* Lists of requests. */
#include "aws/list.h"

void idem__aws_list_append(struct idem__aws_list *list,
                           struct idem__aws_request *request)
{
    request->next = NULL;
    request->prev = list->last;
    if (list->last == NULL) {
        list->first = request;
    } else {
        list->last->next = request;
    }
    list->last = request;
}

void idem__aws_list_prepend(struct idem__aws_list *list,
                            struct idem__aws_request *request)
{
    request->next = list->first;
    request->prev = NULL;
    if (list->first == NULL) {
        list->last = request;
    } else {
        list->first->prev = request;
    }
    list->first = request;
}

void idem__aws_list_remove(struct idem__aws_list *list,
                           struct idem__aws_request *request)
{
    if (request->prev == NULL) {
        list->first = request->next;
    } else {
        request->prev->next = request->next;
    }
    if (request->next == NULL) {
        list->last = request->prev;
    } else {
        request->next->prev = request->prev;
    }
}
