/* The table itself: requests about it, one at a time and blocking; its schema; checks and
 * purges of it. */
#ifndef IDEM_AWS_DYNAMODB_TABLE_TABLE_H
#define IDEM_AWS_DYNAMODB_TABLE_TABLE_H

#include "aws/dynamodb/layout/layout.h"
#include "aws/dynamodb/place.h"
#include "aws/dynamodb/store.h"
#include "core/finding.h"

#include <stdint.h>

/* A handle that nobody else uses. */
struct idem__admin {
    struct idem__dynamodb_store *store;
    struct idem__buffer out; /* The request. */
    struct idem__aws_request request;
    int64_t try_ms;   /* For one request ... */
    int64_t again_ms; /* ... which is not made again after that time. */
};

/* The errors of idem_dynamodb_open(). */
int idem__admin_open(const char *place, struct idem__admin *ret_admin,
                     struct idem_error *ret_error);

/* The same for a caller that only reads. */
int idem__admin_open_readonly(const char *place, struct idem__admin *ret_admin,
                              struct idem_error *ret_error);
void idem__admin_close(struct idem__admin *admin);

/* Starts a request: {"TableName":"...". */
void idem__admin_begin(struct idem__admin *admin);

/* Sends it to @target. Throttles, and failures where @safe, are tried again. The
 * caller finishes *@ret_answer, which may be any; IDEM_EUNAVAILABLE in it means
 * that the service is away. */
void idem__admin_call(struct idem__admin *admin, const char *target, bool safe,
                      struct idem__answer *ret_answer);

/* The number @name in a description; 0: it has none. */
uint64_t idem__admin_number(json_object *object, const char *name);

/* ---- The schema: schema.c ----
 *
 * The key and the index of a store's table: the one definition, by which it is made
 * (admin.c) and checked (table_check.c). The templates of cli/dynamodb/templates say
 * the same in the words of their tools; tests/integration/store_template.py compares
 * the table that one of them makes with this, and the others with that one. Pure. */

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

/* ---- Checking its description: table_check.c. Pure ---- */

struct idem__table_check {
    struct idem__findings to;
    const struct idem__place_conf *place;
    const char *region;
    char create[IDEM_STORE_URL_MAX + 64]; /* "idem store create ..." */
    char purge[IDEM_STORE_URL_MAX + 64];  /* "idem purge ..." */
    char aws[1200]; /* " --table-name ...", after "aws dynamodb VERB". */
};

/* @place_text is the part after "dynamodb:" in the URL. */
void idem__table_check_init(struct idem__table_check *check,
                            const struct idem__findings *to,
                            const char *place_text,
                            const struct idem__place_conf *place,
                            const struct idem__aws_endpoint *endpoint);

/* The Table of DescribeTable. */
void idem__table_check_table(const struct idem__table_check *check,
                             json_object *table);

/* The TimeToLiveDescription of DescribeTimeToLive; NULL: there is none. */
void idem__table_check_ttl(const struct idem__table_check *check,
                           json_object *ttl);

/* The ContinuousBackupsDescription of DescribeContinuousBackups, likewise. */
void idem__table_check_backups(const struct idem__table_check *check,
                               json_object *backups);

/* This machine's clock is ahead of the service's by @off_ms, give or take
 * @err_ms. */
void idem__table_check_clock(const struct idem__table_check *check,
                             int64_t off_ms, int64_t err_ms);

/* ---- Parts of bodies that belong to no record: check_bodies.c ---- */

/* Tells what it finds. It reads the table, unless @options are quick; @items is how
 * many are in it, as the service last counted, or 0. IDEM_ENOMEM. */
int idem__check_bodies(const struct idem__table_check *table,
                       struct idem__dynamodb_store *store,
                       const struct idem_check_options *options,
                       const char *place, uint64_t items,
                       struct idem_error *ret_error);

/* ---- A budget: purge_table.c ----
 *
 * How fast capacity units may be used. Pure: times come from the caller.
 *
 * Work is done in pieces whose units are known only afterwards. A piece may begin
 * while the budget is not overdrawn, so that it is kept but for one piece of each
 * worker; what was saved up is a second's worth at most.
 *
 * Each throttle halves the pace, once a second at most, so that those who share the
 * table get their part; it recovers by a tenth of the whole in each second. */

struct idem__budget {
    double full;          /* Units in a second, when nobody is throttled ... */
    double pace;          /* ... and now. */
    double left;          /* Units; below 0: overdrawn. */
    double used;          /* Since the last throttle, or the start ... */
    int64_t used_from_ms; /* ... which was then. */
    int64_t at_ms;        /* Of the last look. */
};

void idem__budget_init(struct idem__budget *budget, uint64_t units_per_second,
                       int64_t now_ms);

/* @units were used. */
void idem__budget_use(struct idem__budget *budget, double units);

/* The service has refused a request for want of capacity. */
void idem__budget_throttled(struct idem__budget *budget, int64_t now_ms);

/* 0: more work may begin now. Else in how many ms that can be asked again. */
int64_t idem__budget_wait_ms(struct idem__budget *budget, int64_t now_ms);

#endif
