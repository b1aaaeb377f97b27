/* The table itself: blocking requests about it, its schema, checks and purges. */
#ifndef IDEM_AWS_DYNAMODB_TABLE_TABLE_H
#define IDEM_AWS_DYNAMODB_TABLE_TABLE_H

#include "aws/dynamodb/layout/layout.h"
#include "aws/dynamodb/place.h"
#include "aws/dynamodb/store.h"
#include "core/finding.h"

#include <stdint.h>

/* A store handle for blocking requests, one at a time. */
struct idem__admin {
    struct idem__dynamodb_store *store;
    struct idem__buffer out; /* The body of the request. */
    struct idem__aws_request request;
    int64_t try_ms;   /* Time for one try. */
    int64_t again_ms; /* Time after which the request is not tried again. */
};

/* Returns 0 or the errors of idem_dynamodb_open(). */
int idem__admin_open(const char *place, struct idem__admin *ret_admin,
                     struct idem_error *ret_error);

/* The same for a caller that only reads, and that wants to learn soon if the service is
 * unreachable. */
int idem__admin_open_readonly(const char *place, struct idem__admin *ret_admin,
                              struct idem_error *ret_error);
void idem__admin_close(struct idem__admin *admin);

/* Starts the body of a request: {"TableName":"...". */
void idem__admin_begin(struct idem__admin *admin);

/* Sends the request to @target. Tries it again after a throttle, and if @safe also after an
 * answer that leaves its effect open. The caller finishes *@ret_answer, which can be any
 * answer; IDEM_EUNAVAILABLE in it means that the service is unreachable or busy. */
void idem__admin_call(struct idem__admin *admin, const char *target, bool safe,
                      struct idem__answer *ret_answer);

/* Copies the service's name for the error of the last request; "": it has none. */
void idem__admin_refusal(const struct idem__admin *admin, char name[96]);

/* ---- The schema: schema.c ----
 *
 * The key and the index of a store's table. admin.c creates a table by this definition, and
 * table_check.c checks one. The templates in cli/dynamodb/templates repeat it in the
 * languages of their tools; tests/integration/store_template.py compares a table that one
 * of them creates with this, and the other templates with that one. Pure. */

/* An attribute of a key. */
struct idem__schema_part {
    const char *name; /* Constant, or inside the table's conf. */
    const char *role; /* "HASH" or "RANGE". */
    const char *type; /* "S" or "N". */
};

struct idem__schema_index {
    const char *name;       /* NULL: the layout has none. */
    const char *projection; /* The attributes that it has besides the keys. */
    struct idem__schema_part key[2];
};

struct idem__schema {
    struct idem__schema_part key[2];
    size_t key_len;
    struct idem__schema_index index;
    bool makes_index; /* A new table gets the index. */
};

/* Sets *@ret_schema to the schema of @table. Its names point into @table. */
void idem__schema_of(const struct idem__table_conf *table,
                     struct idem__schema *ret_schema);

/* Appends the members of a CreateTable for the schema, each after a comma. */
void idem__schema_put(struct idem__buffer *out,
                      const struct idem__schema *schema);

/* Appends the index as an object, for CreateTable or UpdateTable. */
void idem__schema_put_index(struct idem__buffer *out,
                            const struct idem__schema_index *index);

/* ---- Checking its description: table_check.c. Pure ---- */

struct idem__table_check {
    struct idem__findings to;
    const struct idem__place_conf *place;
    const char *region;
    /* Commands to suggest, and what follows "aws dynamodb VERB" in one. */
    char create[IDEM_STORE_URL_MAX + 64]; /* "idem store create ..." */
    char purge[IDEM_STORE_URL_MAX + 64];  /* "idem purge ..." */
    char aws[1200];                       /* " --table-name ..." */
};

/* @place_text is the part after "dynamodb:" in the URL. */
void idem__table_check_init(struct idem__table_check *check,
                            const struct idem__findings *to,
                            const char *place_text,
                            const struct idem__place_conf *place,
                            const struct idem__aws_endpoint *endpoint);

/* Checks the Table of DescribeTable. */
void idem__table_check_table(const struct idem__table_check *check,
                             json_object *table);

/* Checks the TimeToLiveDescription of DescribeTimeToLive; NULL: it is missing. */
void idem__table_check_ttl(const struct idem__table_check *check,
                           json_object *ttl);

/* Checks the ContinuousBackupsDescription of DescribeContinuousBackups; NULL: it is
 * missing. */
void idem__table_check_backups(const struct idem__table_check *check,
                               json_object *backups);

/* Checks the clock of this machine, which is ahead of the service's by @off_ms, plus or
 * minus @err_ms. */
void idem__table_check_clock(const struct idem__table_check *check,
                             int64_t off_ms, int64_t err_ms);

#endif
