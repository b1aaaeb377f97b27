/* The parts that ops share that walk over many items: walk.c and purge.c. */
#ifndef IDEM_AWS_DYNAMODB_TASK_WALK_H
#define IDEM_AWS_DYNAMODB_TASK_WALK_H

#include "aws/dynamodb/task/task.h"

/* Of an op's cursor: the shard of the index, the index's key, and the name of the
 * last item that was seen. */
enum {
    IDEM__CURSOR_SHARD = 0,
    IDEM__CURSOR_SINCE,
    IDEM__CURSOR_LEN,
    IDEM__CURSOR_NAME,
};

/* A record that a purge is to delete. */
struct idem__victim {
    uint8_t id[IDEM_ID_LEN];
    size_t head_at; /* Its head, in walk->memory ... */
    size_t head_len;
    size_t key_len; /* ... and after it its key. */
    struct idem__body result;
    struct idem__body input;
};

/* A part that may have no head which names it. */
struct idem__orphan {
    char name[IDEM__PART_NAME_MAX];
    uint8_t id[IDEM_ID_LEN];
    char kind;
    uint8_t tag[IDEM__TAG_LEN];
    uint64_t made_ms;
    bool named; /* It has one. */
};

struct idem__walk {
    uint8_t ids[IDEM__HEADS_GET][IDEM_ID_LEN]; /* The records whose heads are
                                                  read. */
    uint64_t since[IDEM__HEADS_GET];           /* The index's keys of these. */
    size_t ids_len;
    struct idem__victim victims[IDEM__HEADS_GET];
    size_t victims_len;
    struct idem__orphan orphans[IDEM__HEADS_GET];
    size_t orphans_len;
    size_t at; /* The victim, then the orphan, that is being deleted. */
    struct idem__buffer memory;
};

/* Makes task->walk, empty. False: the op failed. */
bool idem__walk_prepare(struct idem__task *task);

/* After which item the page of @cursor begins. */
struct idem_slice idem__walk_cursor(const uint64_t *cursor);

/* The whole number in the attribute @name of @item; 0: it has none. */
uint64_t idem__walk_number(json_object *item, const char *name);

/* NONE: the items of a page, at most IDEM__HEADS_GET, and @cursor set to the next
 * one. Else the end. */
idem__state idem__walk_page(struct idem__task *task,
                            const struct idem__answer *answer, uint64_t *cursor,
                            json_object **ret_items, size_t *ret_len);

#endif
