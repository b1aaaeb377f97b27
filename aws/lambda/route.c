/* Which HTTP requests have keys, by method and path, with the words of idem gateway.
 *
 * A route is the beginning of a path. It is compared with the path as nginx does it:
 * decoded, without "." and "..", with one slash where there are several, so that
 * nobody gets around it by another spelling. */
#include "aws/lambda/route.h"

#include "aws/lambda/list.h"
#include "core/error.h"

#include <ctype.h>

#define PATH_KEPT_MAX 8192 /* Of longer paths the beginning is compared. */

/* ---- The lists --------------------------------------------------------- */

/* The next of @list, without the blanks around it; false: there is none left. */
static bool next_entry(const char **list, struct idem_slice *ret_entry)
{
    const char *at = *list;
    size_t len = strcspn(at, ",");

    if (*at == '\0') {
        return false;
    }
    *list = at + len + (at[len] == ',');
    while (len > 0 && *at == ' ') {
        at++;
        len--;
    }
    while (len > 0 && at[len - 1] == ' ') {
        len--;
    }
    *ret_entry = idem_bytes(at, len);
    return true;
}

/* A request that changes nothing has no key, as at the gateway. */
static bool is_method(struct idem_slice word)
{
    return idem__lambda_is_in_list("POST,PATCH,PUT,DELETE", word);
}

static bool is_route(struct idem_slice word)
{
    const char *p = word.base;
    size_t i;

    for (i = 0; i < word.len; i++) {
        if (!isalnum((unsigned char)p[i]) && strchr("/.-_~%", p[i]) == NULL) {
            return false;
        }
    }
    return word.len > 0 && *p == '/';
}

/* "METHOD", "ROUTE" or "METHOD ROUTE", taken apart; what is not there is empty. */
static void split(struct idem_slice entry, struct idem_slice *ret_method,
                  struct idem_slice *ret_route)
{
    const char *text = entry.base;
    const char *slash = memchr(text, '/', entry.len);
    size_t len = slash == NULL ? entry.len : (size_t)(slash - text);

    *ret_route = idem_bytes(text + len, entry.len - len);
    while (len > 0 && text[len - 1] == ' ') {
        len--;
    }
    *ret_method = idem_bytes(text, len);
}

static bool is_one_of(const struct idem_lambda_options *options,
                      const char *word)
{
    return options->required != NULL && strcmp(options->required, word) == 0;
}

static bool is_list(const struct idem_lambda_options *options)
{
    return options->required != NULL && !is_one_of(options, "yes") &&
           !is_one_of(options, "no");
}

int idem__lambda_routes_check(const struct idem_lambda_options *options,
                              struct idem_error *ret_error)
{
    const char *list = options->methods == NULL ? "" : options->methods;
    struct idem_slice entry;
    struct idem_slice method;
    struct idem_slice route;

    while (next_entry(&list, &entry)) {
        if (!is_method(entry)) {
            return idem__error(ret_error, IDEM_EINVALID,
                               "IDEM_LAMBDA_METHODS: \"%.*s\": methods are "
                               "some of POST,PATCH,PUT,DELETE",
                               (int)entry.len, (const char *)entry.base);
        }
    }
    list = options->routes == NULL ? "" : options->routes;
    while (next_entry(&list, &entry)) {
        if (!is_route(entry)) {
            return idem__error(ret_error, IDEM_EINVALID,
                               "IDEM_LAMBDA_ROUTES: \"%.*s\": a route is the "
                               "beginning of a path, as in /orders",
                               (int)entry.len, (const char *)entry.base);
        }
    }
    list = is_list(options) ? options->required : "";
    while (next_entry(&list, &entry)) {
        split(entry, &method, &route);
        if (method.len + route.len == 0 ||
            (method.len > 0 && !is_method(method)) ||
            (route.len > 0 && !is_route(route))) {
            return idem__error(ret_error, IDEM_EINVALID,
                               "IDEM_LAMBDA_REQUIRED: \"%.*s\": give yes, no, "
                               "or a list of methods and routes, as in POST "
                               "/pay,/orders",
                               (int)entry.len, (const char *)entry.base);
        }
    }
    return 0;
}

/* ---- Paths ------------------------------------------------------------- */

static int digit(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

/* The byte at *@at of @path, decoded; *@at moves past it. */
static char next_byte(struct idem_slice path, size_t *at)
{
    const char *p = path.base;
    size_t i = *at;

    if (p[i] == '%' && i + 2 < path.len && digit(p[i + 1]) >= 0 &&
        digit(p[i + 2]) >= 0) {
        *at = i + 3;
        return (char)(digit(p[i + 1]) * 16 + digit(p[i + 2]));
    }
    *at = i + 1;
    return p[i];
}

/* The last segment of @to, which has just ended: nothing is left of "." and "..",
 * and of the one before "..". Returns the new length, with a slash at its end. */
static size_t end_segment(const char *to, size_t len)
{
    size_t start = len;

    while (start > 0 && to[start - 1] != '/') {
        start--;
    }
    if (len - start == 1 && to[start] == '.') {
        return start;
    }
    if (len - start == 2 && to[start] == '.' && to[start + 1] == '.') {
        start -= start > 1;
        while (start > 1 && to[start - 1] != '/') {
            start--;
        }
        return start;
    }
    return len;
}

/* As nginx has it in $uri. */
static size_t normalize(struct idem_slice path, char to[PATH_KEPT_MAX])
{
    size_t len = 0;
    size_t at = 0;

    to[len++] = '/';
    while (at < path.len && len < PATH_KEPT_MAX) {
        char c = next_byte(path, &at);

        if (c != '/') {
            to[len++] = c;
            continue;
        }
        len = end_segment(to, len);
        if (to[len - 1] != '/' && len < PATH_KEPT_MAX) {
            to[len++] = '/';
        }
    }
    return end_segment(to, len);
}

static bool begins_with(struct idem_slice path, struct idem_slice route)
{
    char normal[PATH_KEPT_MAX];
    char wanted[PATH_KEPT_MAX];
    size_t len = normalize(path, normal);
    size_t wanted_len = normalize(route, wanted);

    return wanted_len <= len && memcmp(normal, wanted, wanted_len) == 0;
}

/* ---- Requests ---------------------------------------------------------- */

bool idem__lambda_route_has_key(const struct idem_lambda_options *options,
                                struct idem_slice method,
                                struct idem_slice path)
{
    const char *methods =
        options->methods == NULL ? "POST,PATCH" : options->methods;
    const char *routes = options->routes;
    struct idem_slice entry;
    bool named = false;

    while (!named && next_entry(&methods, &entry)) {
        named = entry.len == method.len &&
                strncasecmp(entry.base, method.base, entry.len) == 0;
    }
    if (!named || routes == NULL) {
        return named;
    }
    while (next_entry(&routes, &entry)) {
        if (begins_with(path, entry)) {
            return true;
        }
    }
    return false;
}

bool idem__lambda_route_needs_key(const struct idem_lambda_options *options,
                                  struct idem_slice method,
                                  struct idem_slice path)
{
    const char *list = options->required;
    struct idem_slice entry;
    struct idem_slice of;
    struct idem_slice route;

    if (!is_list(options)) {
        return !is_one_of(options, "no");
    }
    while (next_entry(&list, &entry)) {
        split(entry, &of, &route);
        if ((of.len == 0 || (of.len == method.len &&
                             strncasecmp(of.base, method.base, of.len) == 0)) &&
            (route.len == 0 || begins_with(path, route))) {
            return true;
        }
    }
    return false;
}
