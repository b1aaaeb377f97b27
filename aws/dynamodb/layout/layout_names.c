/* The names of layouts in a store's URL, and those of attributes that users can choose. */
#include "aws/dynamodb/layout/foreign.h"
#include "core/error.h"

#include <stdio.h>

static const struct idem__layout_kind *const layouts[] = {
    &idem__foreign_powertools.kind,       &idem__foreign_powertools_native.kind,
    &idem__foreign_lock_token.kind,       &idem__foreign_idempotency_store.kind,
    &idem__foreign_http_idempotency.kind,
};

enum {
    LAYOUTS = sizeof(layouts) / sizeof(layouts[0]),
};

const struct idem__layout_kind *idem__layout_find(const char *name)
{
    size_t i;

    for (i = 0; i < LAYOUTS; i++) {
        if (strcmp(layouts[i]->name, name) == 0) {
            return layouts[i];
        }
    }
    return NULL;
}

void idem__layout_list(char *buf, size_t cap)
{
    size_t len = 0;
    size_t i;

    for (i = 0; i < LAYOUTS && len < cap; i++) {
        len += (size_t)snprintf(buf + len, cap - len, "%s%s",
                                i == 0             ? ""
                                : i == LAYOUTS - 1 ? " and "
                                                   : ", ",
                                layouts[i]->name);
    }
}

/* The words of Powertools' own settings, such as key_attr. */
static const char *const settings[IDEM__ATTRS] = {
    [IDEM__ATTR_KEY] = "key-attr",
    [IDEM__ATTR_STATUS] = "status-attr",
    [IDEM__ATTR_EXPIRY] = "expiry-attr",
    [IDEM__ATTR_LOCK] = "in-progress-expiry-attr",
    [IDEM__ATTR_DATA] = "data-attr",
    [IDEM__ATTR_SORT] = "sort-key-attr",
};

const char *idem__layout_setting(enum idem__attr attr)
{
    return settings[attr];
}

/* The name that was chosen, or else the usual one. */
static const char *name_of(const struct idem__table_conf *table,
                           enum idem__attr attr)
{
    return table->attrs[attr][0] != '\0' ? table->attrs[attr]
                                         : idem__layout_of(table)->attrs[attr];
}

const char *idem__layout_key(const struct idem__table_conf *table)
{
    return name_of(table, table->attrs[IDEM__ATTR_SORT][0] != '\0'
                              ? IDEM__ATTR_SORT
                              : IDEM__ATTR_KEY);
}

const char *idem__layout_ttl(const struct idem__table_conf *table)
{
    return name_of(table, IDEM__ATTR_EXPIRY);
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
                           "store: %s=\"%.80s\" is not a valid attribute name: "
                           "use 1 to %d of a-z A-Z 0-9 _ - . : #",
                           settings[attr], name, IDEM__ATTR_MAX);
    }
    if (is_ours(name)) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "store: %s=%s: idem has an attribute of its own "
                           "with this name",
                           settings[attr], name);
    }
    (void)strcpy(table->attrs[attr], name);
    return 0;
}

static bool may_be_set(const struct idem__table_conf *table,
                       enum idem__attr attr)
{
    const struct idem__layout_kind *kind = idem__layout_of(table);

    return !kind->fixed_names &&
           (attr == IDEM__ATTR_SORT ? kind->sorts : kind->attrs[attr] != NULL);
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

/* True if an attribute that cannot be renamed has this name. */
static bool is_taken(const struct idem__layout_kind *kind, const char *name)
{
    return is_among(kind->control, name) || is_among(kind->fixed, name) ||
           (kind->input != NULL && strcmp(kind->input, name) == 0);
}

static int check_names(const struct idem__table_conf *table,
                       struct idem_error *error)
{
    const struct idem__layout_kind *kind = idem__layout_of(table);
    size_t i, k;

    for (i = 0; i < IDEM__ATTRS; i++) {
        const char *name = table->attrs[i];
        bool twice = name[0] != '\0' && is_taken(kind, name);

        for (k = 0; k < i && name[0] != '\0'; k++) {
            twice = twice || strcmp(name, table->attrs[k]) == 0;
        }
        if (twice) {
            return idem__error(error, IDEM_EINVALID,
                               "store: layout %s has two attributes named %s: "
                               "give each its own name in the store URL",
                               idem__layout_of(table)->name, name);
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
    if (idem__layout_of(table)->fixed_names) {
        return idem__error(error, IDEM_EINVALID,
                           "store: %s names an attribute of another library's "
                           "table, and no layout is given: add layout=NAME to "
                           "the store URL",
                           settings[attr]);
    }
    return idem__error(error, IDEM_EINVALID,
                       "store: layout %s has no attribute for %s",
                       idem__layout_of(table)->name, settings[attr]);
}

int idem__layout_settle(struct idem__table_conf *table,
                        struct idem_error *ret_error)
{
    const struct idem__layout_kind *kind = idem__layout_of(table);
    size_t i;

    for (i = 0; i < IDEM__ATTRS; i++) {
        if (table->attrs[i][0] != '\0' &&
            !may_be_set(table, (enum idem__attr)i)) {
            return not_there(table, (enum idem__attr)i, ret_error);
        }
        if (table->attrs[i][0] == '\0' && !kind->fixed_names &&
            kind->attrs[i] != NULL) {
            (void)strcpy(table->attrs[i], kind->attrs[i]);
        }
    }
    if (check_sort(table, ret_error) != 0) {
        return IDEM_EINVALID;
    }
    return check_names(table, ret_error);
}
