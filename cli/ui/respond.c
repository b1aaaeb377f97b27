/* Checks who sends a request, and answers with the headers that keep a browser from harm. */
#include "ui/page.h"
#include "ui/http_request.h"

#include <stdlib.h>
#include <strings.h>

/* ---- The request ---- */

const char *ui_value(const struct ui_request *request, enum MHD_ValueKind kind,
                     const char *name)
{
    return request->server->mhd->lookup_connection_value(request->connection,
                                                         kind, name);
}

bool ui_is_form(const struct ui_request *request)
{
    static const char form[] = MHD_HTTP_POST_ENCODING_FORM_URLENCODED;
    const char *type =
        ui_value(request, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);
    size_t len = sizeof(form) - 1;

    return type != NULL && strncasecmp(type, form, len) == 0 &&
           strchr("; ", type[len]) != NULL; /* Or its end. */
}

/* ---- Answers ---- */

static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; "
     "frame-ancestors 'none'; base-uri 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    /* Addresses have the secret of the session, so other origins must not get them.
     * "no-referrer" would make the Origin of the forms of idem ui null. */
    {"Referrer-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

enum MHD_Result ui_answer(const struct ui_request *request, unsigned status,
                          const char *type, struct idem_slice body,
                          const char *name, const char *value)
{
    const struct ui_mhd *mhd = request->server->mhd;
    enum MHD_Result result;
    struct MHD_Response *response =
        mhd->create_response_from_buffer(body.len, (void *)(uintptr_t)body.base,
                                         MHD_RESPMEM_MUST_COPY);
    size_t i;

    if (response == NULL) {
        return MHD_NO;
    }
    for (i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        (void)mhd->add_response_header(response, headers[i][0], headers[i][1]);
    }
    (void)mhd->add_response_header(response, "Content-Type", type);
    if (name != NULL) {
        (void)mhd->add_response_header(response, name, value);
    }
    result = mhd->queue_response(request->connection, status, response);
    mhd->destroy_response(response);
    return result;
}

bool ui_page_open(struct ui_page *page)
{
    page->text = NULL;
    page->len = 0;
    page->f = open_memstream(&page->text, &page->len);
    return page->f != NULL;
}

enum MHD_Result ui_page_send(const struct ui_request *request,
                             struct ui_page *page, unsigned status)
{
    return ui_page_send_again(request, page, status, /* again= */ false);
}

enum MHD_Result ui_page_send_again(const struct ui_request *request,
                                   struct ui_page *page, unsigned status,
                                   bool again)
{
    enum MHD_Result result = MHD_NO;

    if (fclose(page->f) == 0) {
        result = ui_answer(request, status, "text/html; charset=utf-8",
                           idem_bytes(page->text, page->len),
                           again ? "Refresh" : NULL, again ? "60" : NULL);
    }
    free(page->text);
    return result;
}

enum MHD_Result ui_style(const struct ui_request *request)
{
    return ui_answer(request, MHD_HTTP_OK, "text/css; charset=utf-8",
                     idem_str(ui_style_text), NULL, NULL);
}

enum MHD_Result ui_say(const struct ui_request *request, unsigned status,
                       const char *title, const char *text)
{
    struct ui_page page;

    if (!ui_page_open(&page)) {
        return MHD_NO;
    }
    page_text(page.f, title, text);
    return ui_page_send(request, &page, status);
}

bool ui_is_outage(int code)
{
    return code == IDEM_EUNAVAILABLE || code == IDEM_EUNKNOWN;
}

enum MHD_Result ui_outage(const struct ui_request *request,
                          const struct idem_error *error, bool decided,
                          const char *back)
{
    struct ui_page page;

    if (!ui_page_open(&page)) {
        return MHD_NO;
    }
    page_outage(page.f,
                error->text[0] != '\0' ? error->text
                                       : idem_error_text(error->code),
                decided, error->code == IDEM_EUNKNOWN, back);
    return ui_page_send(request, &page, MHD_HTTP_SERVICE_UNAVAILABLE);
}

enum MHD_Result ui_fail(const struct ui_request *request,
                        const struct idem_error *error)
{
    if (ui_is_outage(error->code)) {
        return ui_outage(request, error, /* decided= */ false, "./");
    }
    return ui_say(request,
                  error->code == IDEM_ENOTFOUND
                      ? MHD_HTTP_NOT_FOUND
                      : MHD_HTTP_INTERNAL_SERVER_ERROR,
                  error->code == IDEM_ENOTFOUND ? "Record not found"
                                                : "The store cannot be read",
                  error->text[0] != '\0' ? error->text
                                         : idem_error_text(error->code));
}

/* ---- Who asks ----
 *
 * A request to the port comes from this host, but maybe from another user of it, or
 * from a page of another site in a browser here. So nothing is shown without a secret;
 * a Host other than the printed one is refused; and only a form of our own pages
 * changes anything.
 *
 * The secret is a part of the path, not a cookie. A browser sends the cookies of a host
 * to each port of it, SameSite or not: another user who serves a page at another port
 * would get them, and could set ours. A host name of its own, below localhost, would
 * separate cookies only while it is a secret, is not resolved by every browser, and
 * leads to one of the addresses that --listen takes. A path goes to our origin alone,
 * port included. Without it nobody can read a page or send a form, so it also replaces
 * a second secret in each form. What keeps it secret:
 *
 * - It is not the token, which is typed into a form and is in no address. Each start
 *   makes a new one, so a secret in a history or a bookmark is soon worthless, and so
 *   is a request that a browser repeats to the next listener at this port.
 * - The printed address does not have it, as other users can read the arguments of
 *   the browser's process.
 * - Referrer-Policy keeps it from other origins, and no page of ours links to any.
 * - "localhost" is refused: it is also [::1], where another user may listen at the
 *   same port, and a browser takes both for one origin. */

bool ui_came_to_us(const struct ui_request *request)
{
    const char *host = ui_value(request, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    char origin[80];

    if (host == NULL || strlen(host) > 64) {
        return false;
    }
    (void)snprintf(origin, sizeof(origin), "http://%s", host);
    return strcmp(origin, request->server->origin) == 0;
}

bool ui_came_from_us(const struct ui_request *request)
{
    const char *origin =
        ui_value(request, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN);
    const char *site = ui_value(request, MHD_HEADER_KIND, "Sec-Fetch-Site");

    return (origin == NULL || strcmp(origin, request->server->origin) == 0) &&
           (site == NULL || strcmp(site, "same-origin") == 0);
}

const char *ui_path_inside(const struct ui_request *request, const char *path)
{
    const char *session = request->server->options->session;
    const char *end = path[0] == '/' ? strchr(path + 1, '/') : NULL;

    return end != NULL && ui_same(path + 1, (size_t)(end - path - 1), session)
               ? end
               : NULL;
}

enum MHD_Result ui_ask_who(const struct ui_request *request, bool wrong)
{
    struct ui_page page;

    if (!ui_page_open(&page)) {
        return MHD_NO;
    }
    page_login(page.f, wrong);
    return ui_page_send(request, &page, MHD_HTTP_FORBIDDEN);
}

enum MHD_Result ui_log_in(const struct ui_request *request)
{
    const struct ui_options *options = request->server->options;
    const struct ui_field *token = &request->form.token;
    char inside[UI_SECRET_LEN + 3];

    if (!ui_same(token->text, token->len, options->token)) {
        return ui_ask_who(request, /* wrong= */ true);
    }
    (void)snprintf(inside, sizeof(inside), "/%s/", options->session);
    return ui_answer(request, MHD_HTTP_SEE_OTHER, "text/plain", idem_str(""),
                     MHD_HTTP_HEADER_LOCATION, inside);
}
