/* idem export --open: the store that is left for another one.
 *
 * It is marked first, durably. From then on nothing begins there, so that what is read
 * afterwards is all there ever will be; owners say how their work ended, and are waited
 * for. Whatever happens to this process, the mark stays: to say the same again goes on
 * with the same move. */
#include "upkeep/leave.h"

#include "contract/store.h"
#include "process/host.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/progress.h"

#include <poll.h>
#include <stdio.h>

enum {
    PAUSE_FIRST_MS = 50,
    PAUSE_MAX_MS = 2000,
};

static void pause_ms(int64_t ms)
{
    (void)poll(NULL, 0, (int)ms);
}

/* ---- The mark ---- */

static int no_random(void)
{
    cli_say("random numbers are not available");
    return CLI_INTERNAL;
}

/* The mark that is to be, of what is there. */
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
        if (cli_random(move->id, sizeof(move->id)) != 0) {
            return no_random();
        }
    }
    if (place != NULL) {
        (void)snprintf(move->place, sizeof(move->place), "%s", place);
    }
    return 0;
}

void cli_leave_settle(const struct idem_move *move)
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

int cli_leave_read(struct idem_store *store, struct idem_move *ret_move)
{
    struct idem_error error = {0};

    error.code = idem__move_get(store, ret_move, &error);
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

int cli_leave(struct idem_store *store, const char *place,
              struct idem_move *ret_move)
{
    struct idem_move was = {0};
    struct idem_error error = {0};
    int status = cli_leave_read(store, &was);

    if (status == 0) {
        status = make_mark(&was, place, ret_move);
    }
    if (status != 0) {
        return status;
    }
    error.code = idem__move_set(store, &was, ret_move, &error);
    return error.code == 0 ? cli_leave_read(store, ret_move)
                           : cli_fail_with(&error);
}

/* ---- What has an owner ---- */

bool cli_leave_wait(int64_t until_ms, unsigned nth, uint64_t open)
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

int cli_leave_cut(struct idem_store *store, const struct idem_record *found,
                  struct idem_record *ret_record)
{
    static struct idem_decision decision;
    static char note[256];
    struct idem_now now = {.store_ms = cli_now_ms()};
    uint8_t nonce[16];

    if (cli_random(nonce, sizeof(nonce)) != 0) {
        return no_random();
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
