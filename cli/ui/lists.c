/* The lists, and the metrics for a collector that has the token. */
#include "inspect/metrics.h"
#include "record/open_records.h"
#include "text/text.h"
#include "ui/page.h"
#include "ui/http_request.h"

#include <stdlib.h>

/* ---- Lists ---- */

static enum page_show show_of(const struct ui_request *request)
{
    const char *show = ui_value(request, MHD_GET_ARGUMENT_KIND, "show");
    int i;

    for (i = 0; show != NULL && page_shows[i] != NULL; i++) {
        if (strcmp(show, page_shows[i]) == 0) {
            return (enum page_show)i;
        }
    }
    return PAGE_OPEN;
}

static enum MHD_Result send_list(const struct ui_request *request,
                                 const struct cli_snapshot *snapshot,
                                 const struct page_choice *choice)
{
    struct ui_page page;

    if (!ui_page_open(&page)) {
        return MHD_NO;
    }
    page_list(page.f, snapshot, choice);
    return ui_page_send_again(request, &page, MHD_HTTP_OK,
                              ui_value(request, MHD_GET_ARGUMENT_KIND,
                                       "again") != NULL);
}

static enum MHD_Result list(const struct ui_request *request,
                            enum page_show show,
                            const struct page_search *search)
{
    struct page_choice choice = {show, search};
    const struct cli_snapshot_keep keep = page_list_keep(&choice);
    struct idem_error error = {0};
    enum MHD_Result result;
    struct cli_snapshot snapshot;

    error.code = cli_snapshot_outcomes(request->server->options->store,
                                       /* scope= */ NULL, CLI_OUTCOMES_SINCE_MS,
                                       &keep, &snapshot, &error);
    if (error.code != 0) {
        return ui_fail(request, &error);
    }
    result = send_list(request, &snapshot, &choice);
    cli_snapshot_finish(&snapshot);
    return result;
}

enum MHD_Result ui_list(const struct ui_request *request)
{
    static const struct page_search nothing;

    return list(request, show_of(request), &nothing);
}

enum MHD_Result ui_list_found(const struct ui_request *request,
                              const struct page_search *search)
{
    return list(request, PAGE_OPEN, search);
}

/* ---- Metrics ---- */

/* If the store is unavailable, the metrics say so. */
static void look(const struct ui_options *options, struct idem_metrics *metrics)
{
    struct cli_jobs jobs = *options->jobs; /* Of this request. */
    struct idem_error error = {0};
    struct cli_snapshot snapshot;
    int rc = cli_snapshot_outcomes(options->store, /* scope= */ NULL,
                                   CLI_OUTCOMES_SINCE_MS, /* keep= */ NULL,
                                   &snapshot, &error);

    if (rc == 0) {
        rc = cli_metrics(options->store, &snapshot, &jobs, metrics, &error);
        cli_snapshot_finish(&snapshot);
    }
    if (rc != 0) {
        (void)cli_metrics(/* store= */ NULL, /* snapshot= */ NULL, &jobs,
                          metrics, &error);
    }
}

static bool has_token(const struct ui_request *request)
{
    static const char scheme[] = "Bearer ";
    const char *given =
        ui_value(request, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    size_t len = strlen(scheme);

    return given != NULL && strncmp(given, scheme, len) == 0 &&
           ui_same(given + len, strlen(given + len),
                   request->server->options->token);
}

enum MHD_Result ui_metrics(const struct ui_request *request)
{
    enum MHD_Result result = MHD_NO;
    struct idem_metrics metrics;
    size_t len;
    char *text;

    if (!has_token(request)) {
        return ui_answer(request, MHD_HTTP_UNAUTHORIZED, "text/plain",
                         idem_str("Authorization: Bearer TOKEN\n"),
                         MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    }
    look(request->server->options, &metrics);
    text = malloc(IDEM_METRICS_TEXT_MAX);
    if (text != NULL &&
        idem_metrics_prometheus(&metrics, text, IDEM_METRICS_TEXT_MAX, &len) ==
            0) {
        result = ui_answer(request, MHD_HTTP_OK,
                           "text/plain; version=0.0.4; charset=utf-8",
                           idem_bytes(text, len), /* name= */ NULL,
                           /* value= */ NULL);
    }
    free(text);
    return result;
}
