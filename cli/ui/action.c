/* Shows, finds, resolves and reopens a record. */
#include "decide/decided.h"
#include "process/host.h"
#include "record/record.h"
#include "store/journal.h"
#include "text/text.h"
#include "ui/page.h"
#include "ui/http_request.h"
#include "ui/ui.h"

#include <stdlib.h>

/* ---- One record ---- */

struct identity {
    uint8_t scope[IDEM_SCOPE_MAX];
    size_t scope_len;
    uint8_t key[IDEM_KEY_MAX];
    size_t key_len;
};

static struct idem_slice scope_of(const struct identity *id)
{
    return idem_bytes(id->scope, id->scope_len);
}

static struct idem_slice key_of(const struct identity *id)
{
    return idem_bytes(id->key, id->key_len);
}

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
    error->code = idem_get(request->server->options->store, scope_of(id),
                           key_of(id), ret_answer, error);
    return error->code;
}

static enum MHD_Result send_record(const struct ui_request *request,
                                   const struct idem_record *record,
                                   const char *said, bool bad)
{
    const struct ui_form *typed = &request->form;
    struct page_form form = {
        .now_ms = cli_now_ms(),
        .who = request->server->options->who,
        .said = said,
        .audited = cli_audit_keeps_records(),
        .bad = bad,
    };
    struct ui_page page;

    if (bad) {
        form.decision = typed->decision.text;
        form.result = idem_bytes(typed->result.text, typed->result.len);
        form.http = idem_bytes(typed->http.text, typed->http.len);
        form.type = idem_bytes(typed->type.text, typed->type.len);
        form.reason = idem_bytes(typed->reason.text, typed->reason.len);
    }
    if (!ui_page_open(&page)) {
        return MHD_NO;
    }
    page_record(page.f, record, &form);
    return ui_page_send(request, &page, bad ? MHD_HTTP_CONFLICT : MHD_HTTP_OK);
}

static enum MHD_Result show(const struct ui_request *request,
                            const struct identity *id, const char *said,
                            bool bad)
{
    struct idem_error error = {0};
    enum MHD_Result result;
    struct idem_answer *found;

    if (get(request, id, &found, &error) != 0) {
        return ui_fail(request, &error);
    }
    result = send_record(request, idem_answer_record(found), said, bad);
    idem_answer_destroy(found);
    return result;
}

enum MHD_Result ui_record(const struct ui_request *request)
{
    struct identity id;

    if (!read_identity(&request->form, &id)) {
        return ui_say(request, MHD_HTTP_BAD_REQUEST, "Page not found",
                      "The link is damaged: find the record by its key.");
    }
    return show(request, &id, /* said= */ NULL, /* bad= */ false);
}

/* ---- The search ---- */

/* The bytes that a person typed, who may have pasted the escaped form. False: there are
 * too many, or what follows a backslash is not a byte. */
static bool read_typed(const struct ui_field *field, uint8_t *buf, size_t max,
                       size_t *ret_len)
{
    size_t mark = strlen(CLI_ESCAPED);

    if (strncmp(field->text, CLI_ESCAPED, mark) == 0) {
        return cli_unescape(field->text + mark, (char *)buf, max, ret_len);
    }
    if (field->too_long || field->len > max) {
        return false;
    }
    memcpy(buf, field->text, field->len);
    *ret_len = field->len;
    return true;
}

enum MHD_Result ui_search(const struct ui_request *request)
{
    const struct ui_form *form = &request->form;
    struct page_search search = {
        .typed_scope = idem_bytes(form->scope.text, form->scope.len),
        .typed_key = idem_bytes(form->key.text, form->key.len),
    };
    struct idem_error error = {0};
    enum MHD_Result result;
    struct idem_answer *found;
    struct identity id;

    if (!read_typed(&form->scope, id.scope, sizeof(id.scope), &id.scope_len) ||
        !read_typed(&form->key, id.key, sizeof(id.key), &id.key_len)) {
        return ui_say(request, MHD_HTTP_BAD_REQUEST, "Key not found",
                      "A key and a scope have at most 255 bytes; after "
                      "\"escaped:\" a backslash is followed by x and two hex "
                      "digits.");
    }
    if (id.key_len > 0 && get(request, &id, &found, &error) == 0) {
        result = send_record(request, idem_answer_record(found),
                             /* said= */ NULL, /* bad= */ false);
        idem_answer_destroy(found);
        return result;
    }
    if (ui_is_outage(error.code)) { /* A list would take as long again. */
        return ui_fail(request, &error);
    }
    search.scope = scope_of(&id);
    search.key = key_of(&id);
    return ui_list_found(request, &search);
}

/* ---- A decision ---- */

/* The decision that a person sends about a record. */
struct wanted {
    struct identity id;
    uint64_t fence;
    unsigned http;           /* A status; 0: not given. */
    enum idem_status status; /* RETRY: let it be run again. */
    bool force;
};

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

static int resolve(const struct ui_request *request,
                   const struct wanted *wanted, const struct idem_record *r,
                   struct idem_error *error)
{
    const struct ui_form *form = &request->form;
    char meta[20];
    struct idem_result result = {.bytes = idem_bytes(form->result.text,
                                                     form->result.len),
                                 .content_type = idem_bytes(form->type.text,
                                                            form->type.len)};
    struct cli_decision decision = {
        .status = wanted->status,
        .result = wanted->status == IDEM_STATUS_COMPLETED ? &result : NULL,
        .who = request->server->options->who,
        .why = form->reason.text,
        .force = wanted->force,
    };

    if (wanted->http != 0) {
        (void)snprintf(meta, sizeof(meta), "HTTP %03u\n", wanted->http);
        result.meta = idem_str(meta);
    }
    return cli_decide_audited(request->server->options->store, r, wanted->fence,
                              &decision, error);
}

static void refuse_live(const struct idem_record *r, bool may_force,
                        struct idem_error *error)
{
    char live[CLI_LIVE_MAX];

    cli_live_text(r, cli_now_ms(), live);
    (void)snprintf(error->text, sizeof(error->text),
                   "the owner is at work (%.160s): wait until it ends%s", live,
                   may_force ? ", or tick the box that overrides its lease"
                             : "");
}

static int decide(const struct ui_request *request, const struct wanted *wanted,
                  const struct idem_record *r, struct idem_error *error)
{
    error->code = resolve(request, wanted, r, error);
    if (error->code == IDEM_EINVALID && r->live) {
        refuse_live(r, /* may_force= */ wanted->status != IDEM_STATUS_RETRY,
                    error);
    }
    return error->code;
}

/* Reads the record again, and decides only if it still has the fence that the person
 * saw. An outcome of the key that waits in the journal of this host is recorded first. */
static int look_and_decide(const struct ui_request *request,
                           const struct wanted *wanted,
                           struct idem_error *error)
{
    struct idem_answer *found;

    if (cli_journal_settle(request->server->options->store,
                           scope_of(&wanted->id), key_of(&wanted->id),
                           /* remarks= */ false, error) == CLI_JOURNAL_WAITS &&
        ui_is_outage(error->code)) {
        return error->code;
    }
    if (get(request, &wanted->id, &found, error) == 0) {
        error->code = decide(request, wanted, idem_answer_record(found), error);
        idem_answer_destroy(found);
    }
    return error->code;
}

static enum MHD_Result refused(const struct ui_request *request,
                               const struct wanted *wanted,
                               const struct idem_error *error)
{
    char back[2 * (IDEM_SCOPE_MAX + IDEM_KEY_MAX) + 32];
    char scope[2 * IDEM_SCOPE_MAX + 1];
    char key[2 * IDEM_KEY_MAX + 1];
    char said[sizeof(error->text) + 32];

    if (ui_is_outage(error->code)) {
        cli_hex(scope_of(&wanted->id), scope);
        cli_hex(key_of(&wanted->id), key);
        (void)snprintf(back, sizeof(back), "record?s=%s&k=%s", scope, key);
        return ui_outage(request, error, /* decided= */ true, back);
    }
    (void)snprintf(said, sizeof(said), "Nothing was decided: %s",
                   error->text[0] != '\0' ? error->text
                                          : idem_error_text(error->code));
    return show(request, &wanted->id, said, /* bad= */ true);
}

/* The field of the form that is missing or too long, as a sentence; NULL: none. */
static const char *bad_field(const struct ui_form *form,
                             const struct wanted *wanted, bool known)
{
    if (form->result.too_long) {
        return "The result is too long: write it with idem resolve --complete "
               "@FILE.";
    }
    if (form->reason.too_long) {
        return "The reason is too long.";
    }
    if (form->type.too_long) {
        return "The content type is too long.";
    }
    if (wanted->status == 0) {
        return "No decision was chosen: choose one.";
    }
    return known ? NULL : "The form names no attempt: open the record again.";
}

/* False: the form is wrong, and *@ret_result is the answer that says so. */
static bool read_wanted(const struct ui_request *request, bool reopens,
                        struct wanted *wanted, enum MHD_Result *ret_result)
{
    const struct ui_form *form = &request->form;
    const char *bad;
    char *end;

    wanted->fence = strtoull(form->fence.text, &end, 10);
    wanted->status = reopens ? IDEM_STATUS_RETRY : status_of(form);
    wanted->force = strcmp(form->force.text, "yes") == 0;
    bad = bad_field(form, wanted,
                    read_identity(form, &wanted->id) && *end == '\0' &&
                        form->fence.len > 0);
    if (bad != NULL) {
        *ret_result =
            ui_say(request, MHD_HTTP_BAD_REQUEST, "Nothing was decided", bad);
    }
    return bad == NULL;
}

static bool read_http(const struct ui_form *form, struct wanted *wanted)
{
    char *end;
    unsigned long number = strtoul(form->http.text, &end, 10);

    wanted->http = (unsigned)number;
    return form->http.len == 0 ||
           (*end == '\0' && number >= 200 && number <= 599);
}

static enum MHD_Result decided(const struct ui_request *request,
                               const struct wanted *wanted)
{
    char said[256];

    (void)snprintf(said, sizeof(said), "On record: %s; %s.%s",
                   cli_decided_text(wanted->status),
                   cli_decided_next(wanted->status),
                   wanted->status == IDEM_STATUS_RETRY
                       ? " That caller learns that it takes over."
                       : "");
    return show(request, &wanted->id, said, /* bad= */ false);
}

static enum MHD_Result act(const struct ui_request *request, bool reopens)
{
    struct idem_error error = {0};
    enum MHD_Result result;
    struct wanted wanted;

    if (!read_wanted(request, reopens, &wanted, &result)) {
        return result;
    }
    if (strspn(request->form.reason.text, " ") == request->form.reason.len) {
        return show(request, &wanted.id,
                    reopens ? "Nothing was decided: say why it is to be run "
                              "again."
                            : "Nothing was decided: say how you know.",
                    /* bad= */ true);
    }
    if (!read_http(&request->form, &wanted)) {
        return show(request, &wanted.id,
                    "Nothing was decided: an HTTP status is a number from 200 "
                    "to 599.",
                    /* bad= */ true);
    }
    return look_and_decide(request, &wanted, &error) != 0
               ? refused(request, &wanted, &error)
               : decided(request, &wanted);
}

enum MHD_Result ui_resolve(const struct ui_request *request)
{
    return act(request, /* reopens= */ false);
}

enum MHD_Result ui_reopen(const struct ui_request *request)
{
    return act(request, /* reopens= */ true);
}
