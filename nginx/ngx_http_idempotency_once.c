
/*
 * Whether each part of a value comes at most once in a request.
 *
 * A variable of nginx shows the first of two header lines, arguments or
 * cookies, and hides the other; a service may take the last.  If a proxy sets
 * the first line, and lets a client add a second, the client chooses whose key
 * it is.  A value that comes from a map or a "set" may be made of any variable
 * that the configuration reads.
 */


#include "ngx_http_idempotency.h"

#include <ctype.h>


#define ngx_http_idem_begins(name, prefix)                                    \
    ((name)->len > sizeof(prefix) - 1                                         \
     && ngx_strncmp((name)->data, prefix, sizeof(prefix) - 1) == 0)


static ngx_uint_t ngx_http_idem_once_variable(ngx_http_request_t *r,
    ngx_str_t *name);
static ngx_uint_t ngx_http_idem_once_any(ngx_http_request_t *r);


/*
 * Several lines of one of these headers are one list (RFC 9110).  They are
 * counted only if the value names the header itself.
 */

static const char  *ngx_http_idem_lists[] = {
    "http_accept",
    "http_accept_charset",
    "http_accept_encoding",
    "http_accept_language",
    "http_cache_control",
    "http_connection",
    "http_forwarded",
    "http_pragma",
    "http_te",
    "http_upgrade",
    "http_via",
    NULL
};


/* ---- The variables of a text ---- */


/* Takes the next "$name" or "${name}" out of @text.  0: there is none. */

static ngx_uint_t
ngx_http_idem_next_variable(ngx_str_t *text, ngx_str_t *name)
{
    u_char  *p, *last = text->data + text->len;

    p = ngx_strlchr(text->data, last, '$');
    if (p == NULL) {
        return 0;
    }

    if (++p < last && *p == '{') {
        p++;
    }

    name->data = p;

    while (p < last && (isalnum(*p) || *p == '_')) {
        p++;
    }

    name->len = p - name->data;
    text->len = last - p;
    text->data = p;

    return 1;
}


ngx_uint_t
ngx_http_idem_once(ngx_http_request_t *r, ngx_http_complex_value_t *value)
{
    ngx_str_t  text = value->value, name;

    while (ngx_http_idem_next_variable(&text, &name)) {

        if (ngx_http_idem_begins(&name, "http_")
            || ngx_http_idem_begins(&name, "arg_")
            || ngx_http_idem_begins(&name, "cookie_")
            || ngx_http_idem_is(&name, "remote_user"))
        {
            if (!ngx_http_idem_once_variable(r, &name)) {
                return 0;
            }

        } else if (!ngx_http_idem_once_any(r)) {
            return 0;
        }
    }

    return 1;
}


static ngx_uint_t
ngx_http_idem_is_list(ngx_str_t *name)
{
    const char  **list;

    for (list = ngx_http_idem_lists; *list != NULL; list++) {
        if (ngx_http_idem_is(name, *list)) {
            return 1;
        }
    }

    return 0;
}


/* Whether all variables that the configuration reads come at most once. */

static ngx_uint_t
ngx_http_idem_once_any(ngx_http_request_t *r)
{
    ngx_uint_t                  i;
    ngx_http_variable_t        *v;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);
    v = cmcf->variables.elts;

    for (i = 0; i < cmcf->variables.nelts; i++) {
        if (!ngx_http_idem_is_list(&v[i].name)
            && !ngx_http_idem_once_variable(r, &v[i].name))
        {
            return 0;
        }
    }

    return 1;
}


/* ---- How often a variable comes ---- */


static u_char
ngx_http_idem_header_char(u_char c)
{
    return c == '-' ? '_' : ngx_tolower(c);
}


/* How many header lines the variable @name, with "_" for "-", could show. */

static ngx_uint_t
ngx_http_idem_count_headers(ngx_http_request_t *r, u_char *name, size_t len)
{
    size_t                  j;
    ngx_uint_t              n;
    ngx_table_elt_t        *h;
    ngx_http_idem_place_t   place = { &r->headers_in.headers.part, 0 };

    n = 0;

    while ((h = ngx_http_idem_next_header(&place)) != NULL) {

        for (j = 0; j < len && h->key.len == len; j++) {
            if (ngx_http_idem_header_char(h->key.data[j]) != name[j]) {
                break;
            }
        }

        n += (j == len);
    }

    return n;
}


/* How many pairs "name=..." @text has, separated by the bytes of @between. */

static ngx_uint_t
ngx_http_idem_count_pairs(ngx_str_t *text, const char *between, u_char *name,
    size_t len)
{
    u_char      *p = text->data, *last = p + text->len;
    ngx_uint_t   n;

    n = 0;

    while (p < last) {

        while (p < last && *p == ' ') {
            p++;
        }

        n += ((size_t) (last - p) > len && p[len] == '='
              && ngx_strncasecmp(p, name, len) == 0);

        while (p < last && ngx_strchr(between, *p) == NULL) {
            p++;
        }

        p++;
    }

    return n;
}


static ngx_uint_t
ngx_http_idem_count_cookies(ngx_http_request_t *r, u_char *name, size_t len)
{
    ngx_uint_t              n;
    ngx_table_elt_t        *h;
    ngx_http_idem_place_t   place = { &r->headers_in.headers.part, 0 };

    n = 0;

    while ((h = ngx_http_idem_next_header(&place)) != NULL) {
        if (ngx_http_idem_is(&h->key, "Cookie")) {
            n += ngx_http_idem_count_pairs(&h->value, ";,", name, len);
        }
    }

    return n;
}


static ngx_uint_t
ngx_http_idem_once_variable(ngx_http_request_t *r, ngx_str_t *name)
{
    ngx_uint_t  n;

    n = 0;

    if (ngx_http_idem_is(name, "http_cookie")
        || ngx_http_idem_is(name, "http_x_forwarded_for"))
    {
        /* nginx joins the lines of these. */

        return 1;
    }

    if (ngx_http_idem_begins(name, "http_")) {
        n = ngx_http_idem_count_headers(r, name->data + 5, name->len - 5);

    } else if (ngx_http_idem_begins(name, "arg_")) {
        n = ngx_http_idem_count_pairs(&r->args, "&", name->data + 4,
                                      name->len - 4);

    } else if (ngx_http_idem_begins(name, "cookie_")) {
        n = ngx_http_idem_count_cookies(r, name->data + 7, name->len - 7);

    } else if (ngx_http_idem_is(name, "remote_user")) {
        n = ngx_http_idem_count_headers(r, (u_char *) "authorization",
                                        sizeof("authorization") - 1);
    }

    return n < 2;
}
