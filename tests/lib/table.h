/* A table of DynamoDB in memory, as far as the store uses one.
 * tests/integration/table.py compares its answers with those of real servers. */
#ifndef TEST_TABLE_H
#define TEST_TABLE_H

#include "aws/dynamodb/layout/layout.h"

struct table {
    char name[256];
    json_object *items; /* By id. */
    unsigned
        page_max;   /* Items in an answer of many; 0: as many as requested. */
    unsigned spare; /* A batch of more items leaves so many of them undone. */
};

void table_init(struct table *table, const char *name);
void table_finish(struct table *table);

/* Executes the request of @target (with or without its prefix) and @body. Returns the HTTP
 * status; *@answer (emptied first) is the body. */
int table_apply(struct table *table, const char *target, struct idem_slice body,
                struct idem__buffer *answer);

/* The item with this id, or NULL. */
json_object *table_item(struct table *table, const char *id);
size_t table_len(const struct table *table);

#endif
