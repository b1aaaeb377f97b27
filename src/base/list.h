/* list.h: lists that are linked both ways through their own items.
 *
 * A list has first and last (both NULL: it is empty); an item has next and prev, and is
 * in one list at most. The macros evaluate their arguments more than once. Walking a
 * list needs no macro:
 *
 *     for (item = list->first; item != NULL; item = item->next)
 */
#ifndef IDEM_BASE_LIST_H
#define IDEM_BASE_LIST_H

#include <stddef.h>

#define IDEM__LIST_APPEND(list, item)                                          \
    do {                                                                       \
        (item)->next = NULL;                                                   \
        (item)->prev = (list)->last;                                           \
        if ((list)->last == NULL) {                                            \
            (list)->first = (item);                                            \
        } else {                                                               \
            (list)->last->next = (item);                                       \
        }                                                                      \
        (list)->last = (item);                                                 \
    } while (0)

#define IDEM__LIST_PREPEND(list, item)                                         \
    do {                                                                       \
        (item)->next = (list)->first;                                          \
        (item)->prev = NULL;                                                   \
        if ((list)->first == NULL) {                                           \
            (list)->last = (item);                                             \
        } else {                                                               \
            (list)->first->prev = (item);                                      \
        }                                                                      \
        (list)->first = (item);                                                \
    } while (0)

#define IDEM__LIST_REMOVE(list, item)                                          \
    do {                                                                       \
        if ((item)->prev == NULL) {                                            \
            (list)->first = (item)->next;                                      \
        } else {                                                               \
            (item)->prev->next = (item)->next;                                 \
        }                                                                      \
        if ((item)->next == NULL) {                                            \
            (list)->last = (item)->prev;                                       \
        } else {                                                               \
            (item)->next->prev = (item)->prev;                                 \
        }                                                                      \
        (item)->next = NULL;                                                   \
        (item)->prev = NULL;                                                   \
    } while (0)

#endif
