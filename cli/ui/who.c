/* Finds the user that asks.
 *
 * A request to the port comes from this host, but it may be another user of it, or a
 * page of somebody else in a browser here. So nothing is told without the token,
 * which a cookie of this site only carries; a name in Host that is not ours (as
 * where a name was made to point here) is refused; and nothing is changed but by a
 * form that has our seal and was sent from our own page. */
#include "ui/form.h"
#include "ui/page.h"
#include "ui/request.h"

static bool is_our_origin(const struct ui_server *server, const char *origin)
{
    return strcmp(origin, server->origin[0]) == 0 ||
           strcmp(origin, server->origin[1]) == 0;
}

bool ui_came_to_us(const struct ui_request *request)
{
    const char *host = ui_value(request, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    char origin[80];

    if (host == NULL || strlen(host) > 64) {
        return false;
    }
    (void)snprintf(origin, sizeof(origin), "http://%s", host);
    return is_our_origin(request->server, origin);
}

bool ui_came_from_us(const struct ui_request *request)
{
    const char *origin =
        ui_value(request, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN);
    const char *site = ui_value(request, MHD_HEADER_KIND, "Sec-Fetch-Site");

    return (origin == NULL || is_our_origin(request->server, origin)) &&
           (site == NULL || strcmp(site, "same-origin") == 0);
}

bool ui_has_token(const struct ui_request *request)
{
    const char *token =
        ui_value(request, MHD_COOKIE_KIND, request->server->cookie);

    return token != NULL &&
           ui_same(token, strlen(token), request->server->options->token);
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
    const struct ui_server *server = request->server;
    const struct ui_field *token = &request->form.token;
    struct ui_page page;
    char cookie[512];

    if (!ui_same(token->text, token->len, server->options->token)) {
        return ui_ask_who(request, /* wrong= */ true);
    }
    (void)snprintf(cookie, sizeof(cookie),
                   "%s=%s; Path=/; HttpOnly; SameSite=Strict", server->cookie,
                   server->options->token);
    if (!ui_page_open(&page)) {
        return MHD_NO;
    }
    page_welcome(page.f);
    return ui_page_send_with(request, &page, MHD_HTTP_OK,
                             MHD_HTTP_HEADER_SET_COOKIE, cookie);
}
