/* idem import of a store that is moved: the store that it comes to. */
#include "upkeep/arrive.h"

#include "contract/store.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

static int read_mark(struct cli_arrival *a, struct idem_move *ret_mark)
{
    struct idem_error error = {0};

    *ret_mark = (struct idem_move){0};
    error.code = idem__move_get(a->store, ret_mark, &error);
    return error.code == 0 ? 0 : cli_fail_with(&error);
}

static int set_mark(struct cli_arrival *a, const struct idem_move *mark)
{
    struct idem_error error = {0};

    error.code = idem__move_set(a->store, &a->mark, mark, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    a->mark = *mark;
    return 0;
}

/* ---- Before the records ---- */

static int stop_at_once(void *ctx, int code, const struct idem_record *record)
{
    bool *any = ctx;

    (void)code;
    (void)record;
    *any = true;
    return 1;
}

static int check_empty(struct cli_arrival *a)
{
    struct idem_filter filter = IDEM_FILTER_INIT;
    struct idem_error error = {0};
    bool any = false;

    error.code = idem_list(a->store, &filter, stop_at_once, &any,
                           /* ret_now_ms= */ NULL, &error);
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    if (any) {
        cli_say("this store is not empty: move to a new one");
        return CLI_CONFIG;
    }
    return 0;
}

/* Looks once more when nothing begins any more. */
static int begin(struct cli_arrival *a, const uint8_t id[16])
{
    const struct idem_move before = a->mark;
    struct idem_move mark = before;
    int status = check_empty(a);

    mark.state = IDEM_MOVE_FILLING;
    mark.marked_ms = before.store_ms;
    memcpy(mark.id, id, sizeof(mark.id));
    if (status == 0) {
        status = set_mark(a, &mark);
    }
    if (status == 0) {
        status = check_empty(a);
        if (status != 0) {
            (void)set_mark(a, &before);
        }
    }
    return status;
}

int cli_arrive(struct cli_arrival *arrival, struct idem_store *store,
               const uint8_t id[16])
{
    struct cli_arrival *a = arrival;
    bool same;
    int status;

    if (idem_store_url(store) == NULL) {
        cli_say("a store in memory ends with this command: name another one");
        return CLI_USAGE;
    }
    a->store = store;
    status = read_mark(a, &a->mark);
    same = memcmp(a->mark.id, id, sizeof(a->mark.id)) == 0;
    if (status != 0) {
        return status;
    }
    switch (a->mark.state) {
    case IDEM_MOVE_LEFT:
        cli_say("this store has itself been moved%s%s: import into another one",
                a->mark.place[0] == '\0' ? "" : " to ", a->mark.place);
        return CLI_CONFIG;
    case IDEM_MOVE_FILLING:
        if (!same) {
            cli_say("another move is filling this store: move to a new one");
        }
        return same ? 0 : CLI_CONFIG;
    case IDEM_MOVE_HERE:
        a->is_here = same;
        return same ? 0 : begin(a, id);
    case IDEM_MOVE_NONE:
        break;
    }
    return begin(a, id);
}

/* ---- What is there ---- */

/* But for the nonce, which is a fresh one each time that an owner is cut off. */
static bool is_same(const struct idem_record *there,
                    const struct idem_record *ours)
{
    static uint8_t heads[2][IDEM_HEAD_MAX];
    struct idem_record record = *there;
    size_t lens[2];

    memcpy(record.nonce, ours->nonce, sizeof(record.nonce));
    return idem__record_encode(&record, heads[0], sizeof(heads[0]), &lens[0]) ==
               0 &&
           idem__record_encode(ours, heads[1], sizeof(heads[1]), &lens[1]) ==
               0 &&
           lens[0] == lens[1] && memcmp(heads[0], heads[1], lens[0]) == 0;
}

static void compare(struct cli_arrival *a, const struct idem_record *there,
                    const struct idem_record *ours)
{
    char shown[128];

    (void)cli_escape(ours->key, shown, sizeof(shown));
    if (there->fence != ours->fence) {
        a->others++;
        cli_say("\"%s\": this store has a different attempt", shown);
    } else if (!is_same(there, ours)) {
        cli_say(
            "\"%s\" has changed in the old store since it was imported; this "
            "store keeps what it has (see both: idem show)",
            shown);
    }
}

int cli_arrive_kept(struct cli_arrival *arrival,
                    const struct idem_record *record)
{
    struct idem_error error = {0};
    struct idem_answer *answer;

    error.code =
        idem_get(arrival->store, record->scope, record->key, &answer, &error);
    if (error.code == IDEM_ENOTFOUND) {
        return 0; /* Its retention is over. */
    }
    if (error.code != 0) {
        return cli_fail_with(&error);
    }
    compare(arrival, idem_answer_record(answer), record);
    idem_answer_destroy(answer);
    return 0;
}

/* ---- After the records ---- */

static int check_whole(const struct cli_arrival *a, uint64_t refused)
{
    if (!a->has_end) {
        cli_say("the export was cut short, and nothing begins in this store "
                "yet: repeat idem export --open | idem import");
        return CLI_BUSY;
    }
    if (refused > 0 || a->records != a->count) {
        cli_say("imported %llu of %llu records: nothing begins in this store "
                "yet",
                (unsigned long long)(a->records - refused),
                (unsigned long long)a->count);
        return CLI_CORRUPT;
    }
    if (a->others > 0) {
        cli_say("this store was in use while it was filled: move to a new one");
        return CLI_UNKNOWN;
    }
    return 0;
}

int cli_arrive_end(struct cli_arrival *arrival, uint64_t refused)
{
    struct idem_move mark = arrival->mark;
    int status = check_whole(arrival, refused);

    if (status != 0 || arrival->is_here) {
        return status;
    }
    mark.state = IDEM_MOVE_HERE;
    mark.marked_ms = arrival->store_ms;
    mark.fence_floor = arrival->fence_floor;
    mark.store_ms = arrival->store_ms;
    return set_mark(arrival, &mark);
}
