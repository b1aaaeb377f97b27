/* Finds the user that asks.
 *
 * A request to the port comes from this host, but it may be another user of it, or a
 * page of somebody else in a browser here. So nothing is told without a secret; a name
 * in Host that is not the printed one is refused; and nothing is changed but by a form
 * that was sent from our own page.
 *
 * The secret is a part of the path, and is not a cookie. A browser sends the cookies
 * of a host to each port of it, SameSite or not, so another user who serves a page at
 * another port would be handed them, and could set ours. A host name of its own, below
 * localhost, would keep cookies apart only while it is a secret, is not resolved by
 * every browser, and leads to one of the addresses that --listen takes. A path goes to
 * our origin alone, port included; who does not know it can neither read a page nor
 * send a form, so it also does what a cookie leaves to a second secret in each form.
 * Against what gives addresses away:
 *
 * - It is not the token, which is typed into a form and is in no address. It is made
 *   anew by each start, so what a history or a bookmark keeps is soon worth nothing,
 *   and so is a request that a browser repeats to the next listener at this port.
 * - Nobody has to start a browser with it: the address that is printed is without it,
 *   as other users can read the arguments of processes.
 * - Referrer-Policy keeps it from other origins, and no page of ours links to any.
 * - "localhost" is refused: it is [::1], too, where another user may listen at the
 *   same port, and a browser takes both for one origin. */
#include "ui/form.h"
#include "ui/page.h"
#include "ui/request.h"

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
