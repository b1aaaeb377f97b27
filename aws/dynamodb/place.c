/* Reads the part after "dynamodb:" in a URL. */
#include "aws/dynamodb/place.h"

#include "aws/dynamodb/layout/layout.h"
#include "core/error.h"
#include "store/remote/remote.h"

#include <stdio.h>

enum {
    TABLE_MIN = 3
};

static bool is_table_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

static int read_table(struct idem_slice text, struct idem__place_conf *conf,
                      struct idem_error *error)
{
    const char *p = text.base;
    size_t i;

    for (i = 0; i < text.len && is_table_char(p[i]); i++) {
    }
    if (i != text.len || text.len < TABLE_MIN ||
        text.len >= sizeof(conf->table.name)) {
        return idem__error(error, IDEM_EINVALID,
                           "invalid table name \"%.*s\": use 3 to 255 of "
                           "a-z A-Z 0-9 _ - .",
                           text.len > 60 ? 60 : (int)text.len, p);
    }
    memcpy(conf->table.name, p, text.len);
    return 0;
}

/* Copies a value, with "%XX" as one byte. False: it is empty, too long, has a NUL, or a "%"
 * without two digits. */
static bool unescape(struct idem_slice text, char *to, size_t cap)
{
    const char *p = text.base;
    size_t n = 0;
    size_t i;

    for (i = 0; i < text.len; i++) {
        char c = p[i];

        if (c == '%') {
            int high = i + 2 < text.len ? idem__hex_value(p[i + 1]) : -1;
            int low = i + 2 < text.len ? idem__hex_value(p[i + 2]) : -1;

            if (high < 0 || low < 0) {
                return false;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (n + 1 >= cap || c == '\0') {
            return false;
        }
        to[n++] = c;
    }
    to[n] = '\0';
    return n > 0;
}

/* Reads one of two words. */
static int read_word(const char *name, const char *value, const char *word,
                     const char *other, bool *ret_is_word,
                     struct idem_error *error)
{
    *ret_is_word = strcmp(value, word) == 0;
    if (*ret_is_word || strcmp(value, other) == 0) {
        return 0;
    }
    return idem__error(error, IDEM_EINVALID,
                       "store: %s must be \"%s\" or \"%s\", not \"%.60s\"",
                       name, word, other, value);
}

static int read_region(const char *value, char to[64], struct idem_error *error)
{
    if (strlen(value) >= 64) {
        return idem__error(error, IDEM_EINVALID,
                           "store: the region is too long");
    }
    (void)strcpy(to, value);
    return 0;
}

static int read_layout(const char *value, struct idem__place_conf *conf,
                       struct idem_error *error)
{
    char names[200];

    conf->table.layout = idem__layout_find(value);
    if (conf->table.layout != NULL) {
        return 0;
    }
    idem__layout_list(names, sizeof(names));
    return idem__error(error, IDEM_EINVALID,
                       "unknown layout \"%.60s\" in the store URL; the layouts "
                       "are %s",
                       value, names);
}

static int read_partition(const char *value, struct idem__place_conf *conf,
                          struct idem_error *error)
{
    if (strlen(value) > IDEM__PARTITION_MAX ||
        !idem__utf8_is(idem_str(value))) {
        return idem__error(error, IDEM_EINVALID,
                           "store: static-pk-value must be UTF-8 of at most "
                           "%d bytes",
                           IDEM__PARTITION_MAX);
    }
    (void)strcpy(conf->table.partition, value);
    return 0;
}

/* The attribute that the option @name names, or IDEM__ATTRS. */
static enum idem__attr attr_of(const char *name)
{
    int attr = 0;

    while (attr < IDEM__ATTRS &&
           strcmp(idem__layout_setting((enum idem__attr)attr), name) != 0) {
        attr++;
    }
    return (enum idem__attr)attr;
}

static int read_setting(const char *name, const char *value,
                        struct idem__place_conf *conf, struct idem_error *error)
{
    const struct {
        const char *name;
        const char *word;
        const char *other;
        bool *to;
    } words[] = {
        {"index", "on", "off", &conf->table.index},
        {"clock", "host", "service", &conf->host_clock},
        {"insecure", "yes", "no", &conf->insecure},
    };
    enum idem__attr attr = attr_of(name);
    size_t i;

    if (attr != IDEM__ATTRS) {
        return idem__layout_name_attr(&conf->table, attr, value, error);
    }
    if (strcmp(name, "static-pk-value") == 0) {
        return read_partition(value, conf, error);
    }
    if (strcmp(name, "region") == 0) {
        return read_region(value, conf->region, error);
    }
    if (strcmp(name, "writer") == 0) {
        return read_region(value, conf->writer, error);
    }
    if (strcmp(name, "endpoint") == 0) {
        (void)strcpy(conf->endpoint, value);
        return 0;
    }
    if (strcmp(name, "cache") == 0) {
        return idem_setting_read(IDEM__REMOTE_CACHE, "store: cache", value,
                                 &conf->cache_ms, error);
    }
    if (strcmp(name, "layout") == 0) {
        return read_layout(value, conf, error);
    }
    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(name, words[i].name) == 0) {
            return read_word(name, value, words[i].word, words[i].other,
                             words[i].to, error);
        }
    }
    return idem__error(
        error, IDEM_EINVALID,
        "unknown option \"%.60s\" in the store URL; a DynamoDB store takes region, "
        "endpoint, layout, index, clock, writer, insecure and cache, and "
        "with a layout the names of its attributes: see idem-dynamodb(7)",
        name);
}

static int read_pair(struct idem_slice pair, struct idem__place_conf *conf,
                     struct idem_error *error)
{
    const char *p = pair.base;
    const char *equals = memchr(p, '=', pair.len);
    char name[32];
    char value[IDEM__PLACE_VALUE_MAX + 1];
    size_t name_len = equals == NULL ? 0 : (size_t)(equals - p);

    if (equals == NULL ||
        !unescape(idem_bytes(p, name_len), name, sizeof(name)) ||
        !unescape(idem_bytes(equals + 1, pair.len - name_len - 1), value,
                  sizeof(value))) {
        return idem__error(error, IDEM_EINVALID,
                           "store: \"%.*s\" is not NAME=VALUE",
                           pair.len > 60 ? 60 : (int)pair.len, p);
    }
    return read_setting(name, value, conf, error);
}

int idem__place_read(const char *text, struct idem__place_conf *ret_conf,
                     struct idem_error *ret_error)
{
    const char *at = strchr(text, '?');
    size_t len = at == NULL ? strlen(text) : (size_t)(at - text);
    int rc;

    memset(ret_conf, 0, sizeof(*ret_conf));
    ret_conf->table.index = true;
    if (strncmp(text, "//", 2) != 0) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "store: write dynamodb://TABLE or "
                           "dynamodb://TABLE?region=REGION");
    }
    rc = read_table(idem_bytes(text + 2, len - 2), ret_conf, ret_error);
    while (rc == 0 && at != NULL && at[1] != '\0') {
        const char *start = at + 1;

        at = strchr(start, '&');
        len = at == NULL ? strlen(start) : (size_t)(at - start);
        rc = read_pair(idem_bytes(start, len), ret_conf, ret_error);
    }
    ret_conf->table.index =
        ret_conf->table.index && idem__layout_of(&ret_conf->table)->index;
    return rc != 0 ? rc : idem__layout_settle(&ret_conf->table, ret_error);
}

/* Escapes the characters that would end a value, or begin an escape. */
static void append_value(char *to, const char *value)
{
    to += strlen(to);
    for (; *value != '\0'; value++) {
        if (*value == '%' || *value == '&') {
            to += sprintf(to, "%%%02X", (unsigned)(unsigned char)*value);
        } else {
            *to++ = *value;
        }
    }
    *to = '\0';
}

/* Appends the names of attributes that are not the usual ones. */
static void append_names(char *url, const struct idem__table_conf *table)
{
    int i;

    for (i = 0; i < IDEM__ATTRS; i++) {
        enum idem__attr attr = (enum idem__attr)i;
        const char *usual = idem__layout_of(table)->attrs[attr];

        if (strcmp(table->attrs[i], usual == NULL ? "" : usual) != 0) {
            (void)strcat(url, "&");
            (void)strcat(url, idem__layout_setting(attr));
            (void)strcat(url, "=");
            (void)strcat(url, table->attrs[i]);
        }
    }
    if (table->partition[0] != '\0') {
        (void)strcat(url, "&static-pk-value=");
        append_value(url, table->partition);
    }
}

int idem__place_write(const struct idem__place_conf *conf,
                      const struct idem__aws_endpoint *endpoint,
                      char buf[IDEM_STORE_URL_MAX + 1],
                      struct idem_error *ret_error)
{
    char url[4 * sizeof(conf->table.name) + 3 * sizeof(endpoint->url) +
             IDEM__ATTRS * (IDEM__ATTR_MAX + 32) + 3 * IDEM__PARTITION_MAX +
             128];

    (void)snprintf(url, sizeof(url), "dynamodb://%s?region=", conf->table.name);
    append_value(url, endpoint->region);
    (void)strcat(url, "&endpoint=");
    append_value(url, endpoint->url);
    if (conf->table.layout != NULL) {
        (void)strcat(url, "&layout=");
        (void)strcat(url, conf->table.layout->name);
        append_names(url, &conf->table);
    }
    if (!endpoint->tls && !endpoint->local) {
        (void)strcat(url, "&insecure=yes");
    }
    /* Processes that share a table must count leases by the same clock. */
    if (conf->host_clock) {
        (void)strcat(url, "&clock=host");
    }
    if (strlen(url) > IDEM_STORE_URL_MAX) {
        return idem__error(ret_error, IDEM_EINVALID,
                           "store: the URL with its region and endpoint has "
                           "%zu bytes; at most %d can be recorded",
                           strlen(url), IDEM_STORE_URL_MAX);
    }
    (void)strcpy(buf, url);
    return 0;
}
