/* The key and the index of a store's table: the one definition, by which it is made
 * (create.c) and checked (table_check.c). The templates of cli/dynamodb/templates say
 * the same in the words of their tools; tests/integration/store_template.py compares
 * the table that one of them makes with this, and the others with that one. Pure. */
#ifndef IDEM_AWS_DYNAMODB_TABLE_SCHEMA_H
#define IDEM_AWS_DYNAMODB_TABLE_SCHEMA_H

#include "aws/dynamodb/layout/layout.h"

/* An attribute of a key. */
struct idem__schema_part {
    const char *name; /* Of the table's conf, or constant. */
    const char *role; /* "HASH" or "RANGE". */
    const char *type; /* "S" or "N". */
};

struct idem__schema_index {
    const char *name;       /* NULL: the layout has none. */
    const char *projection; /* Its contents beside the keys. */
    struct idem__schema_part key[2];
};

struct idem__schema {
    struct idem__schema_part key[2];
    size_t key_len;
    struct idem__schema_index index;
    bool makes_index; /* A new table gets it. */
};

/* The schema of @table, to which it points. */
void idem__schema_of(const struct idem__table_conf *table,
                     struct idem__schema *ret_schema);

/* Appends the members of a CreateTable, each after a comma. */
void idem__schema_put(struct idem__buffer *out,
                      const struct idem__schema *schema);

/* Appends the index as an object, for CreateTable or UpdateTable. */
void idem__schema_put_index(struct idem__buffer *out,
                            const struct idem__schema_index *index);

#endif
