/* Exports the records of a store, and in a move leaves that store for another one. */
#include "contract/store.h"
#include "process/host.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/screen.h"
#include "text/text.h"
#include "upkeep/transfer.h"

#include <poll.h>
#include <stdio.h>

/* ---- Records that leave ---- */

enum {
    PAUSE_FIRST_MS = 50,
    PAUSE_MAX_MS = 2000,
};

static void pause_ms(int64_t ms)
{
    (void)poll(NULL, 0, (int)ms);
}

/* ---- The mark ---- */

static int draw(uint8_t bytes[16])
{
    if (cli_random(bytes, 16) == 0) {
        return 0;
    }
    cli_say("random numbers are not available");
    return CLI_INTERNAL;
}

/* Makes the mark of the move from the mark that the store has. */
static int make_mark(const struct idem_move *was, const char *place,
                     struct idem_move *ret_move)
{
    struct idem_move *move = ret_move;

    if (was->state == IDEM_MOVE_FILLING) {
        cli_say("a move into this store is not complete: repeat that first");
        return CLI_CONFIG;
    }
    *move = *was;
    if (was->state != IDEM_MOVE_LEFT) {
        move->state = IDEM_MOVE_LEFT;
        move->marked_ms = was->store_ms;
        if (draw(move->id) != 0) {
            return CLI_INTERNAL;
        }
    }
    if (place != NULL) {
        (void)snprintf(move->place, sizeof(move->place), "%s", place);
    }
    return 0;
}

/* Waits until no process that may not have read the mark can begin work there. */
static void settle(const struct idem_move *move)
{
    int64_t ms = move->settles_ms;
    int64_t until_ms = cli_mono_ms() + ms;
    int64_t left_ms;

    while ((left_ms = until_ms - cli_mono_ms()) > 0) {
        cli_progress("waiting until every process has read the mark (ms)",
                     (uint64_t)(ms - left_ms), (uint64_t)ms);
        pause_ms(left_ms < PAUSE_FIRST_MS ? left_ms : PAUSE_FIRST_MS);
    }
    cli_progress_end();
}

static int read_mark(struct idem_store *store, struct idem_move *ret_move)
{
    struct idem_error error = {0};

    error.code = idem__move_get(store, ret_move, &error);
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

/* Marks @store as moved to @place. If it is marked so already, this goes on with the same
 * move. */
static int leave(struct idem_store *store, const char *place,
                 struct idem_move *ret_move)
{
    struct idem_move was = {0};
    struct idem_error error = {0};
    int status = read_mark(store, &was);

    if (status == 0) {
        status = make_mark(&was, place, ret_move);
    }
    if (status != 0) {
        return status;
    }
    error.code = idem__move_set(store, &was, ret_move, &error);
    return error.code == 0 ? read_mark(store, ret_move) : cli_fail_with(&error);
}

/* ---- Work that has an owner ---- */

/* Waits before the next look at the work in progress: longer each time, but not beyond
 * @until_ms. False: that time has come. */
static bool wait_for_open(int64_t until_ms, unsigned nth, uint64_t open)
{
    int64_t left_ms = until_ms - cli_mono_ms();
    int64_t ms = (int64_t)PAUSE_FIRST_MS << (nth < 6 ? nth : 6);

    if (left_ms <= 0) {
        return false;
    }
    ms = ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS;
    cli_progress("waiting for what is in progress", 0, open);
    pause_ms(ms < left_ms ? ms : left_ms);
    return true;
}

/* Gives @found a new nonce, so that a token of this store is not valid in the new one,
 * and makes it unknown if it is in progress: the new store will not learn how it ends.
 * *@ret_record points into @found, and is valid until the next call. */
static int cut(struct idem_store *store, const struct idem_record *found,
               struct idem_record *ret_record)
{
    static struct idem_decision decision;
    static char note[256];
    struct idem_now now = {.store_ms = cli_now_ms()};
    uint8_t nonce[16];

    if (draw(nonce) != 0) {
        return CLI_INTERNAL;
    }
    (void)snprintf(note, sizeof(note),
                   "in progress in %.180s when that store was moved",
                   idem_store_url(store));
    idem__decide_restored(found, nonce, idem_str(note), &now, &decision);
    if (decision.code != 0) {
        cli_say("%s", decision.text);
        return CLI_INTERNAL;
    }
    *ret_record = decision.next;
    ret_record->input = found->input;
    return 0;
}

/* ---- One record ---- */

static void say_corrupt(struct cli_exporting *e, struct idem_slice key)
{
    char shown[128];

    e->corrupt++;
    cli_say("the record of \"%s\" cannot be trusted; it is left out",
            cli_escape(key, shown, sizeof(shown)));
}

static int write_record(struct cli_exporting *e,
                        const struct idem_record *record)
{
    int status = cli_transfer_write(e->out, record);

    e->exported++;
    return status == 0 && ferror(e->out) ? CLI_OUTPUT_FAILED : status;
}

/* Leaves out a record that has changed since it was listed, and no longer has a status
 * that was asked for. */
static int export_one(void *ctx, int code, const struct idem_record *record)
{
    struct cli_exporting *e = ctx;

    if (code != 0) {
        say_corrupt(e, record->key);
        return 0;
    }
    return e->statuses == 0 || (e->statuses & 1u << record->status) != 0
               ? write_record(e, record)
               : 0;
}

static int note_name(void *ctx, int code, const struct idem_record *r)
{
    struct cli_exporting *e = ctx;

    if (code != 0) {
        say_corrupt(e, r->key);
        return 0;
    }
    cli_progress("looking through the store", e->open.len, /* all= */ 0);
    return !cli_names_add(&e->open, r);
}

/* ---- A move ---- */

static bool is_open(const struct idem_record *record)
{
    return record->status == IDEM_STATUS_IN_PROGRESS && !record->retry;
}

/* Exports the record so that its owner, who does not know of the new store, can no longer
 * end it. */
static int export_cut(struct cli_exporting *e, const struct idem_record *found)
{
    struct idem_record record;
    int status = cut(e->store, found, &record);

    return status != 0 ? status : write_record(e, &record);
}

/* Exports a record that has ended, and notes work in progress for another look. Of an
 * attempt that only its lease ended, the owner may still be at work: it is cut off too. */
static int move_ended(void *ctx, int code, const struct idem_record *record)
{
    struct cli_exporting *e = ctx;

    if (code == 0 && is_open(record)) {
        return cli_names_add(&e->open, record) ? 0 : CLI_OUTPUT_FAILED;
    }
    return code == 0 && record->by_lease ? export_cut(e, record)
                                         : export_one(e, code, record);
}

static int move_last(void *ctx, int code, const struct idem_record *record)
{
    struct cli_exporting *e = ctx;

    if (code != 0 || !is_open(record)) {
        return move_ended(e, code, record);
    }
    e->unknown++;
    return export_cut(e, record);
}

/* Reads the records that @e has noted. @each notes again those still in progress. */
static int pass(struct cli_exporting *e, const char *doing, cli_read_fn *each)
{
    struct cli_names names = e->open;
    int status = cli_names_open(&e->open);

    if (status == 0) {
        status = cli_read_named(e->store, &names, doing, each, e);
    }
    cli_names_close(&names);
    return status;
}

/* Exports all records but those in progress; then those as they end; and those that do
 * not end in time as unknown. */
static int move_all(struct cli_exporting *e)
{
    int64_t until_ms = cli_mono_ms() + e->wait_ms;
    int status = pass(e, "exporting", move_ended);
    unsigned nth = 0;

    while (status == 0 && e->open.len > 0 &&
           wait_for_open(until_ms, nth++, e->open.len)) {
        status = pass(e, "waiting for what is in progress", move_ended);
    }
    if (status == 0 && e->open.len > 0) {
        status = pass(e, "exporting", move_last);
    }
    if (status == 0 && e->corrupt > 0) {
        cli_say("the move is not complete: work whose record is left out would "
                "run again; resolve it, and repeat the move");
        return CLI_CORRUPT;
    }
    /* A purge may have raised the fences meanwhile. */
    status = status != 0 ? status : read_mark(e->store, &e->move);
    return status != 0 ? status
                       : cli_transfer_end(e->out, e->exported, &e->move);
}

/* ---- All of it ---- */

static int list_names(struct cli_exporting *e)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_error error = {0};

    filter.statuses = e->statuses;
    filter.any_scope = e->scope == NULL;
    filter.scope = idem_str(e->scope);
    error.code = idem_list(e->store, &filter, note_name, e,
                           /* ret_now_ms= */ NULL, &error);
    cli_progress_end();
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

/* In a move the header is sent at once: it closes the new store, to which callers may
 * turn from now on, until all records have arrived. */
static int export_header(struct cli_exporting *e)
{
    int status =
        cli_transfer_header(e->out, e->url, e->moves ? &e->move : NULL);

    if (status == 0 && e->moves) {
        (void)fflush(e->out); /* The caller checks ferror(). */
        settle(&e->move);
    }
    return status;
}

static int export_all(struct cli_exporting *e)
{
    int status = export_header(e);

    if (status == 0) {
        status = list_names(e);
    }
    if (status == 0) {
        status = e->moves ? move_all(e) : pass(e, "exporting", export_one);
    }
    return status == 0 && e->corrupt > 0 ? CLI_CORRUPT : status;
}

int cli_exporting(struct cli_exporting *e)
{
    int status = 0;

    e->move = (struct idem_move){0};
    if (e->moves) {
        status = leave(e->store, e->place, &e->move);
    }
    if (status == 0) {
        status = cli_names_open(&e->open);
    }
    if (status == 0) {
        status = export_all(e);
        cli_names_close(&e->open);
    }
    return status;
}
