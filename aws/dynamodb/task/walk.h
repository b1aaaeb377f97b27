/* The parts that lists and purges share, which walk over many items. */
#ifndef IDEM_AWS_DYNAMODB_TASK_WALK_H
#define IDEM_AWS_DYNAMODB_TASK_WALK_H

#include "aws/dynamodb/task/task.h"

/* The indexes of an op's cursor. */
enum {
    IDEM__CURSOR_SHARD = 0, /* The shard of the index "open". */
    IDEM__CURSOR_SINCE,     /* "since" of the last item, for that index. */
    IDEM__CURSOR_LEN,       /* Bytes of its name; 0: a page from the start. */
    IDEM__CURSOR_NAME, /* The name, from here on: the page begins after it. */
};

/* A record that a purge is to delete. */
struct idem__victim {
    uint8_t id[IDEM_ID_LEN];
    /* Where walk->memory has its head, and after that its key. */
    size_t head_at;
    size_t head_len;
    size_t key_len;
    struct idem__body result;
    struct idem__body input;
};

/* An old part. Unless a head names it, it is an orphan. */
struct idem__orphan {
    char name[IDEM__PART_NAME_MAX];
    uint8_t id[IDEM_ID_LEN];
    char kind;
    uint8_t tag[IDEM__TAG_LEN];
    uint64_t made_ms;
    bool named; /* A head names it. */
};

struct idem__walk {
    /* The records whose heads are read. */
    uint8_t ids[IDEM__HEADS_GET][IDEM_ID_LEN];
    uint64_t since[IDEM__HEADS_GET]; /* Their keys in the index. */
    size_t ids_len;
    struct idem__victim victims[IDEM__HEADS_GET];
    size_t victims_len;
    struct idem__orphan orphans[IDEM__HEADS_GET];
    size_t orphans_len;
    size_t at; /* The victim, then the orphan, that is being deleted. */
    struct idem__buffer memory;
};

/* Empties task->walk, and allocates it at its first use. False: the op failed. */
bool idem__walk_prepare(struct idem__task *task);

/* The name of the item after which the page of @cursor begins. */
struct idem_slice idem__walk_cursor(const uint64_t *cursor);

/* The whole number in the attribute @name of @item; 0: there is none. */
uint64_t idem__walk_number(json_object *item, const char *name);

/* Returns NONE, with the items of a page, at most IDEM__HEADS_GET, and with @cursor at
 * the next page. Any other state ends the op. */
idem__state idem__walk_page(struct idem__task *task,
                            const struct idem__answer *answer, uint64_t *cursor,
                            json_object **ret_items, size_t *ret_len);

#endif
