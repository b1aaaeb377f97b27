/* Opens a store by its URL, closes it, and hides the secrets of URLs. */
#include "contract/kind.h"
#include "queue/queue.h"

#include <string.h>

int idem_open(const char *url, const struct idem_open_options *options,
              struct idem_store **ret_store, struct idem_error *ret_error)
{
    const struct idem_store_kind *kind;
    const char *place;
    int rc = idem__kind_find(url, &kind, &place, ret_error);

    return rc != 0 ? rc : kind->open(place, options, ret_store, ret_error);
}

void idem_close(struct idem_store *store)
{
    if (store != NULL) {
        store->ops->close(store);
    }
}

/* ---- URLs for messages ---- */

/* Adds as many of the @len bytes of @text at *@at as there is room for. */
static void add(char *buf, size_t cap, size_t *at, const char *text, size_t len)
{
    if (len > cap - 1 - *at) {
        len = cap - 1 - *at;
    }
    memcpy(buf + *at, text, len);
    *at += len;
    buf[*at] = '\0';
}

/* True if the value of the option with this name is a secret. Each kind of store has
 * its own names, and libpq gets more with each version, so this rather hides too many
 * than too few. */
static bool is_secret(const char *name, size_t len)
{
    static const char *const words[] = {"passw", "passphrase", "secret",
                                        "token", "_key"};
    size_t i = 0;

    while (i < sizeof(words) / sizeof(words[0]) &&
           memmem(name, len, words[i], strlen(words[i])) == NULL) {
        i++;
    }
    return i < sizeof(words) / sizeof(words[0]);
}

/* Returns the length of "NAME=" at @text, after "?" or "&", if the value is a secret;
 * else 0. */
static size_t name_of_secret(const char *text)
{
    size_t len;

    if (text[-1] != '?' && text[-1] != '&') {
        return 0;
    }
    len = strcspn(text, "=&");
    return text[len] == '=' && is_secret(text, len) ? len + 1 : 0;
}

/* Returns where the password before an "@" begins, and its length in *@ret_len; NULL if
 * there is none. A "/" in it should have been escaped, and often is not: so the last
 * "@" before the options ends it. */
static const char *find_password(const char *url, size_t *ret_len)
{
    const char *start = strstr(url, "://");
    const char *end;
    const char *at;
    const char *colon;

    if (start == NULL) {
        return NULL;
    }
    start += strlen("://");
    end = start + strcspn(start, "?");
    for (at = end; at > start && at[-1] != '@'; at--) {
    }
    colon = at == start ? NULL : memchr(start, ':', (size_t)(at - start));
    if (colon == NULL) {
        return NULL;
    }
    *ret_len = (size_t)(at - 1 - (colon + 1));
    return colon + 1;
}

char *idem_url_hide(const char *url, char *buf, size_t cap)
{
    size_t password_len = 0;
    const char *password = find_password(url, &password_len);
    size_t at = 0;

    if (cap == 0) {
        return buf;
    }
    buf[0] = '\0';
    while (*url != '\0') {
        size_t name = at == 0 ? 0 : name_of_secret(url);

        if (url == password) {
            add(buf, cap, &at, "***", 3);
            url += password_len;
            password = NULL;
        } else if (name > 0) {
            add(buf, cap, &at, url, name);
            add(buf, cap, &at, "***", 3);
            url += name + strcspn(url + name, "&");
        } else {
            add(buf, cap, &at, url++, 1);
        }
    }
    return buf;
}
