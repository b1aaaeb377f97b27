/* Answers, all of them with the headers that keep a browser from harm. */
#include "ui/mhd.h"
#include "ui/html.h"
#include "ui/page.h"
#include "ui/request.h"

#include <stdlib.h>

static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; "
     "frame-ancestors 'none'; base-uri 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    /* Addresses have the secret of the session. Not to send them at all would make
     * the Origin of our own forms null. */
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
    enum MHD_Result result = MHD_NO;
    struct ui_page page;

    if (!ui_page_open(&page)) {
        return MHD_NO;
    }
    html_style(page.f);
    if (fclose(page.f) == 0) {
        result = ui_answer(request, MHD_HTTP_OK, "text/css; charset=utf-8",
                           idem_bytes(page.text, page.len), NULL, NULL);
    }
    free(page.text);
    return result;
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
