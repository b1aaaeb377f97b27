/* The lists, and the search. */
#include "record/open_records.h"
#include "ui/page.h"
#include "ui/request.h"

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
