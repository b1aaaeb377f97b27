/* Checks the schema of a store, its tables and the rights of the role. It reads only the
 * catalogs: a role without USAGE on a schema may not even name a table in it. */
#include "postgres/admin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ALL_RIGHTS "SELECT,INSERT,UPDATE,DELETE"

/* The rights that a store needs. It changes the row of idem_store, and never adds or
 * deletes one. */
static const struct table {
    const char *name;
    const char *rights;
} tables[] = {
    {"idem_record", ALL_RIGHTS},
    {"idem_store", "SELECT,UPDATE"},
    {"idem_limit_window", ALL_RIGHTS},
    {"idem_limit_request", ALL_RIGHTS},
};

enum {
    TABLES = sizeof(tables) / sizeof(tables[0]),
    READ = 2, /* The first two, which the rest of a check reads. */
};

/* The tables that are missing, the rights that the role lacks, and the tables with
 * policies that hide rows from it. */
struct rights {
    char role[140];    /* With quotes if SQL needs them. */
    char lacks[480];   /* "SELECT, UPDATE on idem_store; ..." */
    char grants[1400]; /* The SQL that grants them. */
    char missing[120]; /* Missing tables. */
    char hidden[120];  /* Tables with row security for this role. */
    char shows[600];   /* The SQL that disables it. */
    bool has_store;    /* The table idem_store exists. */
    bool unreadable;   /* The role cannot read idem_record or idem_store. */
};

static void add(char *buf, size_t cap, const char *join, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

/* Adds to the text in @buf, after @join unless it is the first. */
static void add(char *buf, size_t cap, const char *join, const char *format,
                ...)
{
    size_t len = strlen(buf);
    va_list args;

    if (len > 0) {
        (void)snprintf(buf + len, cap - len, "%s", join);
        len = strlen(buf);
    }
    va_start(args, format);
    (void)vsnprintf(buf + len, cap - len, format, args);
    va_end(args);
}

static void add_lack(struct rights *rights, const char *right,
                     const char *short_object, const char *object)
{
    add(rights->lacks, sizeof(rights->lacks), "; ", "%.60s on %s", right,
        short_object);
    add(rights->grants, sizeof(rights->grants), "; ", "GRANT %.60s ON %s TO %s",
        right, object, rights->role);
}

/* Returns the result of @sql. NULL: the reason was reported. */
static PGresult *run(struct idem__pg_check *check, const char *sql)
{
    struct idem_error error;
    PGresult *result =
        idem__pg_admin_run(check->conn, check->place, sql, &error);

    if (result == NULL) {
        check->code = error.code;
        idem__pg_tell(check, IDEM_GRADE_BAD, "rights", NULL, "%s", error.text);
    }
    return result;
}

/* False: there is no schema to check, and the reason was reported. */
static bool look_at_schema(struct idem__pg_check *check, struct rights *rights)
{
    const char *schema = check->place->schema;
    PGresult *result = run(check, "SELECT quote_ident(current_user::text),"
                                  " has_schema_privilege(n.oid, 'USAGE'::text)"
                                  " FROM pg_catalog.pg_namespace n"
                                  " WHERE n.nspname = '@'::name");
    char object[IDEM__PG_SCHEMA_MAX + 16];
    bool there;

    if (result == NULL) {
        return false;
    }
    there = PQntuples(result) > 0;
    if (!there) {
        check->code = IDEM_ECONFIG;
        idem__pg_tell(check, IDEM_GRADE_BAD, "schema", "idem store create",
                      "no schema \"%s\" in this database", schema);
    } else {
        (void)snprintf(rights->role, sizeof(rights->role), "%.130s",
                       PQgetvalue(result, 0, 0));
        if (strcmp(PQgetvalue(result, 0, 1), "t") != 0) {
            rights->unreadable = true;
            (void)snprintf(object, sizeof(object), "SCHEMA %s", schema);
            add_lack(rights, "USAGE", "the schema", object);
        }
    }
    PQclear(result);
    return there;
}

/* False: the catalogs could not be read, and the reason was reported. */
static bool look_at_table(struct idem__pg_check *check, struct rights *rights,
                          const struct table *table)
{
    char object[IDEM__PG_SCHEMA_MAX + 32];
    char sql[640];
    PGresult *result;

    (void)
        snprintf(sql, sizeof(sql),
                 "SELECT string_agg(w.name, ', '::text ORDER BY w.at),"
                 " bool_or(w.name = 'SELECT'::text),"
                 " row_security_active(c.oid)"
                 " FROM pg_catalog.pg_class c"
                 " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
                 " LEFT JOIN unnest('{%s}'::text[]) WITH ORDINALITY w(name, at)"
                 " ON NOT has_table_privilege(c.oid, w.name)"
                 " WHERE n.nspname = '@'::name AND c.relname = '%s'::name"
                 " GROUP BY c.oid",
                 table->rights, table->name);
    result = run(check, sql);
    if (result == NULL) {
        return false;
    }
    if (PQntuples(result) == 0) {
        add(rights->missing, sizeof(rights->missing), ", ", "%s", table->name);
        rights->unreadable = rights->unreadable || table - tables < READ;
    } else if (!PQgetisnull(result, 0, 0)) {
        (void)snprintf(object, sizeof(object), "%s.%s", check->place->schema,
                       table->name);
        add_lack(rights, PQgetvalue(result, 0, 0), table->name, object);
        rights->unreadable =
            rights->unreadable || (strcmp(PQgetvalue(result, 0, 1), "t") == 0 &&
                                   table - tables < READ);
    }
    if (PQntuples(result) > 0 && strcmp(PQgetvalue(result, 0, 2), "t") == 0) {
        add(rights->hidden, sizeof(rights->hidden), ", ", "%s", table->name);
        add(rights->shows, sizeof(rights->shows), "; ",
            "ALTER TABLE %s.%s DISABLE ROW LEVEL SECURITY",
            check->place->schema, table->name);
    }
    rights->has_store =
        rights->has_store ||
        (PQntuples(result) > 0 && strcmp(table->name, "idem_store") == 0);
    PQclear(result);
    return true;
}

static void tell_missing(struct idem__pg_check *check,
                         const struct rights *rights)
{
    check->code = IDEM_ECONFIG;
    idem__pg_tell(check, IDEM_GRADE_BAD, "schema",
                  rights->has_store ? "run what idem store template prints."
                                    : "idem store create",
                  "schema \"%s\" lacks tables: %s", check->place->schema,
                  rights->missing);
}

static void tell_rights(struct idem__pg_check *check, struct rights *rights)
{
    check->code = IDEM_EDENIED;
    if (rights->lacks[0] == '\0') {
        idem__pg_tell(check, IDEM_GRADE_OK, "rights", NULL,
                      "the role %s may do all that a store needs",
                      rights->role);
        return;
    }
    add(rights->grants, sizeof(rights->grants), "", ".");
    idem__pg_tell(check, IDEM_GRADE_BAD, "rights", rights->grants,
                  "the role %s lacks %s", rights->role, rights->lacks);
}

/* A policy may hide the record of a key. A duplicate then runs nothing, because the unique
 * index still has the key; but it is denied, and does not get the outcome. */
static void tell_hidden(struct idem__pg_check *check, struct rights *rights)
{
    check->code = IDEM_ECONFIG;
    add(rights->shows, sizeof(rights->shows), "", ".");
    idem__pg_tell(check, IDEM_GRADE_BAD, "rights", rights->shows,
                  "row security hides rows from the role %s: %s", rights->role,
                  rights->hidden);
}

bool idem__pg_check_rights(struct idem__pg_check *check)
{
    struct rights rights = {.has_store = false};
    size_t i;

    if (!look_at_schema(check, &rights)) {
        return false;
    }
    for (i = 0; i < TABLES; i++) {
        if (!look_at_table(check, &rights, &tables[i])) {
            return false;
        }
    }
    if (rights.missing[0] != '\0') {
        tell_missing(check, &rights);
    }
    tell_rights(check, &rights);
    if (rights.hidden[0] != '\0') {
        tell_hidden(check, &rights);
    }
    if (rights.unreadable) {
        idem__pg_tell(
            check, IDEM_GRADE_SKIP, "records", NULL,
            "neither the version of the schema nor the records were checked");
    }
    return !rights.unreadable;
}
