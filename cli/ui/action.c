/* What can be asked for: lists, records, and a decision. */
#include "audit.h"
#include "clock.h"
#include "look.h"
#include "ui/page.h"
#include "ui/request.h"

#include <stdlib.h>

/* ---- Lists ---- */

static enum page_show show_of(const struct ui_request *request)
{
    const char *show = ui_value(request, MHD_GET_ARGUMENT_KIND, "show");
    int i;

    for (i = 0; show != NULL && i < PAGE_SHOWS; i++) {
        if (strcmp(show, page_shows[i]) == 0) {
            return (enum page_show)i;
        }
    }
    return PAGE_OPEN;
}

enum MHD_Result ui_list(const struct ui_request *request,
                        struct idem_slice scope, struct idem_slice key)
{
    struct idem_error error = {0};
    enum MHD_Result result;
    struct cli_look look;
    struct ui_page page;

    error.code = cli_look(request->server->options->store, /* scope= */ NULL,
                          &look, &error);
    if (error.code != 0) {
        return ui_fail(request, &error);
    }
    if (!ui_page_open(&page)) {
        cli_look_finish(&look);
        return MHD_NO;
    }
    page_list(page.f, &look, show_of(request), scope, key);
    result = ui_page_send(request, &page, MHD_HTTP_OK);
    cli_look_finish(&look);
    return result;
}

/* ---- One record ---- */

struct identity {
    uint8_t scope[IDEM_SCOPE_MAX];
    size_t scope_len;
    uint8_t key[IDEM_KEY_MAX];
    size_t key_len;
};

static bool read_identity(const struct ui_form *form, struct identity *id)
{
    return ui_field_unhex(&form->scope, id->scope, sizeof(id->scope),
                          &id->scope_len) &&
           ui_field_unhex(&form->key, id->key, sizeof(id->key), &id->key_len) &&
           id->key_len > 0;
}

static int get(const struct ui_request *request, const struct identity *id,
               struct idem_answer **ret_answer, struct idem_error *error)
{
    error->code = idem_get(request->server->options->store,
                           idem_bytes(id->scope, id->scope_len),
                           idem_bytes(id->key, id->key_len), ret_answer, error);
    return error->code;
}

static enum MHD_Result show(const struct ui_request *request,
                            const struct identity *id, const char *said,
                            bool bad)
{
    struct idem_error error = {0};
    struct idem_answer *found;
    struct ui_page page;

    if (get(request, id, &found, &error) != 0) {
        return ui_fail(request, &error);
    }
    if (!ui_page_open(&page)) {
        idem_answer_destroy(found);
        return MHD_NO;
    }
    page_record(page.f, idem_answer_record(found), cli_now_ms(),
                request->server->options->seal, said, bad);
    idem_answer_destroy(found);
    return ui_page_send(request, &page, bad ? MHD_HTTP_CONFLICT : MHD_HTTP_OK);
}

enum MHD_Result ui_record(const struct ui_request *request)
{
    struct identity id;

    if (!read_identity(&request->form, &id)) {
        return ui_say(request, MHD_HTTP_BAD_REQUEST, "There is no such page",
                      "The address is not one of ours.");
    }
    return show(request, &id, /* said= */ NULL, /* bad= */ false);
}

enum MHD_Result ui_search(const struct ui_request *request)
{
    const struct ui_field *scope = &request->form.scope;
    const struct ui_field *key = &request->form.key;
    struct idem_slice s = idem_bytes(scope->text, scope->len);
    struct idem_slice k = idem_bytes(key->text, key->len);
    struct idem_answer *found;
    struct identity id;

    if (k.len > 0 && k.len <= IDEM_KEY_MAX && s.len <= IDEM_SCOPE_MAX &&
        idem_get(request->server->options->store, s, k, &found, NULL) == 0) {
        idem_answer_destroy(found);
        memcpy(id.scope, scope->text, s.len);
        id.scope_len = s.len;
        memcpy(id.key, key->text, k.len);
        id.key_len = k.len;
        return show(request, &id, /* said= */ NULL, /* bad= */ false);
    }
    return ui_list(request, s, k);
}

/* ---- A decision ---- */

static enum idem_status status_of(const struct ui_form *form)
{
    if (strcmp(form->decision.text, "complete") == 0) {
        return IDEM_STATUS_COMPLETED;
    }
    if (strcmp(form->decision.text, "fail") == 0) {
        return IDEM_STATUS_FAILED;
    }
    return strcmp(form->decision.text, "release") == 0 ? IDEM_STATUS_RELEASED
                                                       : (enum idem_status)0;
}

static int decide(const struct ui_request *request, const struct identity *id,
                  uint64_t fence, struct idem_error *error)
{
    const struct ui_form *form = &request->form;
    struct idem_result result = {
        .bytes = idem_bytes(form->result.text, form->result.len)};
    struct cli_decision decision = {
        .status = status_of(form),
        .result = &result,
        .who = request->server->options->who,
        .why = form->reason.text,
    };
    struct idem_answer *found;
    struct cli_audit audit;

    if (decision.status != IDEM_STATUS_COMPLETED) {
        decision.result = NULL;
    }
    if (get(request, id, &found, error) != 0) {
        return error->code;
    }
    if (cli_audit_open(&audit) != 0) {
        (void)snprintf(error->text, sizeof(error->text),
                       "the audit log cannot be written; see where idem ui "
                       "runs");
        error->code = IDEM_ECONFIG;
    } else {
        error->code =
            cli_decide(request->server->options->store, &audit,
                       idem_answer_record(found), fence, &decision, error);
        cli_audit_close(&audit);
    }
    idem_answer_destroy(found);
    return error->code;
}

enum MHD_Result ui_resolve(const struct ui_request *request)
{
    const struct ui_form *form = &request->form;
    struct idem_error error = {0};
    struct identity id;
    uint64_t fence;
    char *end;

    if (!ui_same(form->seal.text, form->seal.len,
                 request->server->options->seal)) {
        return ui_say(
            request, MHD_HTTP_FORBIDDEN, "Nothing was decided",
            "The form is not one of ours, or is from before idem ui was "
            "started anew. Look at the record again.");
    }
    fence = strtoull(form->fence.text, &end, 10);
    if (!read_identity(form, &id) || status_of(form) == 0 || *end != '\0' ||
        form->fence.len == 0 || form->result.too_long ||
        form->reason.too_long) {
        return ui_say(request, MHD_HTTP_BAD_REQUEST, "Nothing was decided",
                      "Something is missing in the form, or too long.");
    }
    if (form->reason.len == 0) {
        return show(request, &id, "Nothing was decided: say how you know.",
                    /* bad= */ true);
    }
    if (decide(request, &id, fence, &error) != 0) {
        char said[320];

        (void)snprintf(said, sizeof(said), "Nothing was decided: %s",
                       error.text[0] != '\0' ? error.text
                                             : idem_error_text(error.code));
        return show(request, &id, said, /* bad= */ true);
    }
    return show(request, &id, "It is decided, and on record.",
                /* bad= */ false);
}
