/* Reads and writes the mark of a store that is moved, and tells which ops it refuses. */
#include "core/move.h"

#include "core/error.h"
#include "core/slice.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ID_LEN = 16,
    MS_MAX_LEN = 20
};

static const char *const names[] = {
    [IDEM_MOVE_NONE] = "",
    [IDEM_MOVE_LEFT] = "left ",
    [IDEM_MOVE_FILLING] = "filling ",
    [IDEM_MOVE_HERE] = "here ",
};

enum {
    STATES = sizeof(names) / sizeof(names[0])
};

/* ---- As text ---- */

static bool is_printable(const char *text)
{
    while (*text > ' ' && *text <= '~') {
        text++;
    }
    return *text == '\0';
}

static bool can_be(const struct idem_move *move)
{
    static const uint8_t none[ID_LEN];
    bool has_id = memcmp(move->id, none, ID_LEN) != 0;

    return (unsigned)move->state < STATES && move->marked_ms >= 0 &&
           has_id == (move->state != IDEM_MOVE_NONE) &&
           memchr(move->place, '\0', sizeof(move->place)) != NULL &&
           is_printable(move->place) &&
           (move->state == IDEM_MOVE_LEFT || move->place[0] == '\0');
}

int idem__move_write(const struct idem_move *move, char ret_mark[IDEM_MARK_MAX])
{
    char hex[2 * ID_LEN + 1];
    size_t i;

    _Static_assert(sizeof("filling ") + 2 * ID_LEN + MS_MAX_LEN + 2 +
                           IDEM_MOVE_PLACE_MAX <=
                       IDEM_MARK_MAX,
                   "a mark has room for all of it");
    if (!can_be(move)) {
        return IDEM_EINVALID;
    }
    for (i = 0; i < ID_LEN; i++) {
        (void)snprintf(hex + 2 * i, 3, "%02x", move->id[i]);
    }
    ret_mark[0] = '\0';
    if (move->state != IDEM_MOVE_NONE) {
        (void)snprintf(ret_mark, IDEM_MARK_MAX, "%s%s %lld%s%s",
                       names[move->state], hex, (long long)move->marked_ms,
                       move->place[0] == '\0' ? "" : " ", move->place);
    }
    return 0;
}

static bool read_hex(const char *hex, uint8_t id[ID_LEN])
{
    size_t i;

    for (i = 0; i < ID_LEN; i++) {
        unsigned byte;
        char rest;

        if (sscanf(hex + 2 * i, "%2x%c", &byte, &rest) < 1) {
            return false;
        }
        id[i] = (uint8_t)byte;
    }
    return hex[2 * ID_LEN] == ' ';
}

/* Reads the id, time and place, which follow the name of the state. */
static bool read_rest(const char *rest, struct idem_move *move)
{
    char *end;

    if (strlen(rest) <= 2 * ID_LEN + 1 || !read_hex(rest, move->id)) {
        return false;
    }
    move->marked_ms = strtoll(rest + 2 * ID_LEN + 1, &end, 10);
    if (*end == ' ' && strlen(end + 1) <= IDEM_MOVE_PLACE_MAX) {
        (void)strcpy(move->place, end + 1);
        end += 1 + strlen(move->place);
    }
    return *end == '\0';
}

int idem__move_read(struct idem_slice mark, struct idem_move *ret_move)
{
    struct idem_move move = {0};
    char text[IDEM_MARK_MAX];
    char again[IDEM_MARK_MAX];
    unsigned state;

    if (mark.len >= sizeof(text)) {
        return IDEM_ECORRUPT;
    }
    if (mark.len > 0) {
        memcpy(text, mark.base, mark.len);
    }
    text[mark.len] = '\0';
    for (state = STATES - 1; state > IDEM_MOVE_NONE; state--) {
        if (strncmp(text, names[state], strlen(names[state])) == 0) {
            break;
        }
    }
    move.state = (enum idem_move_state)state;
    /* There is one way to write each mark, so any other text is damage. */
    if ((state != IDEM_MOVE_NONE &&
         !read_rest(text + strlen(names[state]), &move)) ||
        idem__move_write(&move, again) != 0 || strlen(again) != mark.len ||
        memcmp(again, text, mark.len) != 0) {
        return IDEM_ECORRUPT;
    }
    ret_move->state = move.state;
    memcpy(ret_move->id, move.id, ID_LEN);
    memcpy(ret_move->place, move.place, sizeof(move.place));
    ret_move->marked_ms = move.marked_ms;
    return 0;
}

/* ---- What it refuses ---- */

/* Each claim loads the mark, and nearly always the same one, so it is parsed only when it
 * has changed. */
void idem__move_load(struct idem_slice text, char mark[IDEM_MARK_MAX])
{
    struct idem_move move;

    if (idem__slice_equal(idem_str(mark), text)) {
        return;
    }
    /* If the store had been left, callers would do its work a second time. */
    if (idem__move_read(text, &move) != 0) {
        text = idem_str("damaged");
    }
    (void)snprintf(mark, IDEM_MARK_MAX, "%.*s", (int)text.len,
                   text.len == 0 ? "" : (const char *)text.base);
}

bool idem__move_closes(struct idem_slice mark)
{
    size_t len = strlen(names[IDEM_MOVE_HERE]);

    return mark.len > 0 && (mark.len < len ||
                            memcmp(mark.base, names[IDEM_MOVE_HERE], len) != 0);
}

/* True for an op whose change the other store of the move would never get. */
static bool starts_something(const struct idem_op *op)
{
    return op->verb == IDEM_OP_BEGIN || op->verb == IDEM_OP_LIMIT ||
           (op->verb == IDEM_OP_RESOLVE &&
            op->u.resolve.outcome.status == IDEM_STATUS_RETRY);
}

bool idem__move_refuses(const char *mark, const struct idem_op *op, char *text,
                        size_t cap)
{
    struct idem_move move = {0};

    if (!idem__move_closes(idem_str(mark))) {
        return false;
    }
    if (idem__move_read(idem_str(mark), &move) != 0) {
        (void)snprintf(text, cap, "the store's mark of a move is damaged");
        return starts_something(op);
    }
    if (move.state == IDEM_MOVE_FILLING) {
        (void)snprintf(text, cap,
                       "a move into this store is not complete: repeat idem "
                       "export --open | idem import");
        return starts_something(op);
    }
    (void)snprintf(text, cap, "the store was moved%s%s: use %s",
                   move.place[0] == '\0' ? "" : " to ", move.place,
                   move.place[0] == '\0' ? "the one that it was moved to"
                                         : "that one");
    /* No caller looks for a record in a store that was left, so an import would be
     * lost. */
    return starts_something(op) || op->verb == IDEM_OP_IMPORT;
}

/* ---- The op ---- */

void idem__move_answer(struct idem_op *op, const char *mark,
                       const struct idem_now *now)
{
    (void)snprintf(op->u.move.found, sizeof(op->u.move.found), "%s", mark);
    op->u.move.found_floor = now->fence_floor;
    op->u.move.found_ms = now->store_ms;
    /* Either the mark is the one that this op or an earlier copy of it set, or another
     * process was faster. */
    if (op->u.move.set && !idem__slice_equal(idem_str(mark), op->u.move.mark)) {
        (void)idem__op_fail(op, IDEM_ELOST,
                            "another process has marked the store meanwhile");
    }
}

bool idem__move_run(struct idem_op *op, char mark[IDEM_MARK_MAX],
                    const struct idem_now *now)
{
    /* The mark replaces only the one that the caller saw, and only once: an earlier copy of
     * this op may have set it. */
    bool sets = op->u.move.set &&
                idem__slice_equal(idem_str(mark), op->u.move.was) &&
                !idem__slice_equal(idem_str(mark), op->u.move.mark);

    op->changed = sets;
    if (sets) {
        if (op->u.move.mark.len > 0) {
            memcpy(mark, op->u.move.mark.base, op->u.move.mark.len);
        }
        mark[op->u.move.mark.len] = '\0';
    }
    idem__move_answer(op, mark, now);
    return sets;
}
