/* The layouts, and the names of their attributes. */
#include "aws/dynamodb/layout/foreign.h"
#include "aws/dynamodb/layout/layout.h"
#include "core/error.h"

#include <stdio.h>

/* ---- Names ---- */

static const struct {
    const char *name;
    const struct idem__foreign *foreign;
} layouts[] = {
    [IDEM__LAYOUT_OWN] = {"", NULL},
    [IDEM__LAYOUT_PYTHON] = {"powertools-python", &idem__foreign_powertools},
    [IDEM__LAYOUT_TYPESCRIPT] = {"powertools-typescript",
                                 &idem__foreign_powertools_native},
    [IDEM__LAYOUT_JAVA] = {"powertools-java", &idem__foreign_powertools},
    [IDEM__LAYOUT_DOTNET] = {"powertools-dotnet", &idem__foreign_powertools},
    [IDEM__LAYOUT_LOCKER] = {"locker", &idem__foreign_locker},
    [IDEM__LAYOUT_LOCK_TOKEN] = {"lock-token", &idem__foreign_lock_token},
    [IDEM__LAYOUT_IDEMPOTENCY_STORE] = {"idempotency-store",
                                        &idem__foreign_idempotency_store},
    [IDEM__LAYOUT_HTTP_IDEMPOTENCY] = {"http-idempotency",
                                       &idem__foreign_http_idempotency},
};

enum {
    LAYOUTS = sizeof(layouts) / sizeof(layouts[0]),
};

/* As in the settings of Powertools: key_attr, and so on. */
static const char *const settings[IDEM__ATTRS] = {
    [IDEM__ATTR_KEY] = "key-attr",
    [IDEM__ATTR_STATUS] = "status-attr",
    [IDEM__ATTR_EXPIRY] = "expiry-attr",
    [IDEM__ATTR_LOCK] = "in-progress-expiry-attr",
    [IDEM__ATTR_DATA] = "data-attr",
    [IDEM__ATTR_SORT] = "sort-key-attr",
};

enum idem__layout idem__layout_find(const char *name)
{
    size_t i;

    for (i = 1; i < LAYOUTS; i++) {
        if (strcmp(layouts[i].name, name) == 0) {
            return (enum idem__layout)i;
        }
    }
    return IDEM__LAYOUT_OWN;
}

const char *idem__layout_name(enum idem__layout layout)
{
    return layouts[layout].name;
}

void idem__layout_list(char *buf, size_t cap)
{
    size_t len = 0;
    size_t i;

    for (i = 1; i < LAYOUTS && len < cap; i++) {
        len += (size_t)snprintf(buf + len, cap - len, "%s%s",
                                i == 1             ? ""
                                : i == LAYOUTS - 1 ? " and "
                                                   : ", ",
                                layouts[i].name);
    }
}

const char *idem__layout_setting(enum idem__attr attr)
{
    return settings[attr];
}

const struct idem__foreign *idem__foreign_of(
    const struct idem__table_conf *table)
{
    return layouts[table->layout].foreign;
}

const char *idem__layout_usual(enum idem__layout layout, enum idem__attr attr)
{
    return layout == IDEM__LAYOUT_OWN ? NULL
                                      : layouts[layout].foreign->attrs[attr];
}

/* ---- Names that were chosen ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' ||
           c == ':' || c == '#';
}

static bool is_ours(const char *name)
{
    return strcmp(name, IDEM__FOREIGN_HEAD) == 0 ||
           strcmp(name, IDEM__FOREIGN_RESULT) == 0 ||
           strcmp(name, IDEM__FOREIGN_INPUT) == 0;
}

int idem__layout_name_attr(struct idem__table_conf *table, enum idem__attr attr,
                           const char *name, struct idem_error *ret_error)
{
    size_t len = 0;

    while (is_name_char(name[len])) {
        len++;
    }
    if (name[len] != '\0' || len == 0 || len > IDEM__ATTR_MAX) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "store: %s=\"%.80s\" cannot be the name of an "
                           "attribute: 1 to %d of a-z A-Z 0-9 _ - . : #",
                           settings[attr], name, IDEM__ATTR_MAX);
    }
    if (is_ours(name)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "store: %s=%s: idem writes an attribute of its own "
                           "by this name",
                           settings[attr], name);
    }
    (void)strcpy(table->attrs[attr], name);
    return 0;
}

static bool may_be_set(const struct idem__table_conf *table,
                       enum idem__attr attr)
{
    const struct idem__foreign *f = layouts[table->layout].foreign;

    return f != NULL &&
           (attr == IDEM__ATTR_SORT ? f->sorts : f->attrs[attr] != NULL);
}

static bool is_among(const char *const *names, const char *name)
{
    for (; names != NULL && *names != NULL; names++) {
        if (strcmp(*names, name) == 0) {
            return true;
        }
    }
    return false;
}

/* A name that the layout has beside those that can be chosen. */
static bool is_taken(const struct idem__foreign *f, const char *name)
{
    return is_among(f->control, name) || is_among(f->fixed, name) ||
           (f->input != NULL && strcmp(f->input, name) == 0);
}

static int check_names(const struct idem__table_conf *table,
                       struct idem_error *error)
{
    const struct idem__foreign *f = layouts[table->layout].foreign;
    size_t i, k;

    for (i = 0; i < IDEM__ATTRS; i++) {
        const char *name = table->attrs[i];
        bool twice = name[0] != '\0' && is_taken(f, name);

        for (k = 0; k < i && name[0] != '\0'; k++) {
            twice = twice || strcmp(name, table->attrs[k]) == 0;
        }
        if (twice) {
            return idem__error(error, IDEM_EINVALID,
                               "store: two attributes of layout %s have the "
                               "name %s: name each in the store URL",
                               layouts[table->layout].name, name);
        }
    }
    return 0;
}

static int check_sort(const struct idem__table_conf *table,
                      struct idem_error *error)
{
    bool sorted = table->attrs[IDEM__ATTR_SORT][0] != '\0';

    if (sorted == (table->partition[0] != '\0')) {
        return 0;
    }
    return idem__error(error, IDEM_EINVALID,
                       "store: sort-key-attr and static-pk-value go together: "
                       "the records of one function are the items with that "
                       "text in the partition key");
}

static int not_there(const struct idem__table_conf *table, enum idem__attr attr,
                     struct idem_error *error)
{
    if (table->layout == IDEM__LAYOUT_OWN) {
        return idem__error(error, IDEM_EINVALID,
                           "store: %s names an attribute of another library's "
                           "table, and no layout is given: add layout=NAME to "
                           "the store URL",
                           settings[attr]);
    }
    return idem__error(error, IDEM_EINVALID,
                       "store: layout %s has no attribute for %s",
                       layouts[table->layout].name, settings[attr]);
}

int idem__layout_settle(struct idem__table_conf *table,
                        struct idem_error *ret_error)
{
    const struct idem__foreign *f = layouts[table->layout].foreign;
    size_t i;

    for (i = 0; i < IDEM__ATTRS; i++) {
        if (table->attrs[i][0] != '\0' &&
            !may_be_set(table, (enum idem__attr)i)) {
            return not_there(table, (enum idem__attr)i, ret_error);
        }
        if (table->attrs[i][0] == '\0' && f != NULL && f->attrs[i] != NULL) {
            (void)strcpy(table->attrs[i], f->attrs[i]);
        }
    }
    if (check_sort(table, ret_error) != 0) {
        return IDEM_EINVALID;
    }
    return f == NULL ? 0 : check_names(table, ret_error);
}

const char *idem__layout_key(const struct idem__table_conf *table)
{
    return table->layout == IDEM__LAYOUT_OWN ? "id"
           : table->attrs[IDEM__ATTR_SORT][0] != '\0'
               ? table->attrs[IDEM__ATTR_SORT]
               : table->attrs[IDEM__ATTR_KEY];
}

const char *idem__layout_ttl(const struct idem__table_conf *table)
{
    return table->layout == IDEM__LAYOUT_OWN ? "ttl"
                                             : table->attrs[IDEM__ATTR_EXPIRY];
}

const char *const *idem__layout_gives_up(enum idem__layout layout)
{
    static const char *const nothing[] = {NULL};

    return layout == IDEM__LAYOUT_OWN ? nothing
                                      : layouts[layout].foreign->gives_up;
}

bool idem__layout_has_status_index(enum idem__layout layout)
{
    return layout != IDEM__LAYOUT_OWN && layouts[layout].foreign->status_index;
}

bool idem__layout_drops(enum idem__layout layout)
{
    return layout != IDEM__LAYOUT_OWN && layouts[layout].foreign->drops;
}

bool idem__layout_deletes(enum idem__layout layout,
                          const struct idem_record *record)
{
    return idem__layout_drops(layout) && record->status == IDEM_STATUS_RELEASED;
}
