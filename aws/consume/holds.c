/* The messages that a consumer holds: their states, their order, and what is due. */
#include "aws/consume/holds.h"

#include "base/heap.h"
#include "base/list.h"
#include "core/slice.h"

enum {
    GATHER_MS = 100, /* How long a deletion waits for others. */
    SLACK_MS = 2000, /* Extend this long before others may receive it. */
};

/* ---- The list --------------------------------------------------------------- */

size_t idem__holds_count(const struct idem__holds *holds,
                         enum idem__hold_state state)
{
    const struct idem__hold *hold;
    size_t n = 0;

    for (hold = holds->first; hold != NULL; hold = hold->next) {
        n += hold->state == state;
    }
    return n;
}

static struct idem__hold *find(const struct idem__holds *holds,
                               struct idem_slice id)
{
    struct idem__hold *hold = holds->first;

    while (hold != NULL && !idem__slice_equal(hold->message.id, id)) {
        hold = hold->next;
    }
    return hold;
}

static char *copy_text(struct idem_slice text)
{
    char *copy = idem__alloc(text.len + 1);

    if (copy != NULL) {
        if (text.len > 0) {
            memcpy(copy, text.base, text.len);
        }
        copy[text.len] = '\0';
    }
    return copy;
}

/* Copies @text to *@to, and moves that past the copy. */
static struct idem_slice put(struct idem_slice text, char **to)
{
    struct idem_slice copy = {*to, text.len};

    if (text.len > 0) {
        memcpy(*to, text.base, text.len);
    }
    (*to)[text.len] = '\0';
    *to += text.len + 1;
    return copy;
}

/* Makes a hold, with its texts in the same piece of memory, except the receipt, which may
 * be replaced. */
static struct idem__hold *make(const struct idem__sqs_message *message)
{
    size_t len = message->id.len + message->body.len + message->group.len + 3;
    struct idem__hold *hold = idem__alloc(sizeof(*hold) + len);
    char *to = (char *)(hold + 1);

    if (hold == NULL) {
        return NULL;
    }
    memset(hold, 0, sizeof(*hold));
    hold->receipt = copy_text(message->receipt);
    if (hold->receipt == NULL) {
        idem__free(hold);
        return NULL;
    }
    hold->message.id = put(message->id, &to);
    hold->message.group = put(message->group, &to);
    hold->message.body = put(message->body, &to);
    return hold;
}

static int take_receipt(struct idem__hold *hold,
                        const struct idem__sqs_message *message)
{
    char *receipt = copy_text(message->receipt);

    if (receipt == NULL) {
        return IDEM_ENOMEM;
    }
    idem__free(hold->receipt);
    hold->receipt = receipt;
    hold->serial++;
    return 0;
}

int idem__holds_add(struct idem__holds *holds,
                    const struct idem__sqs_message *message, int64_t visible_ms,
                    bool *ret_again)
{
    struct idem__hold *hold = find(holds, message->id);

    *ret_again = hold != NULL;
    if (hold != NULL && take_receipt(hold, message) != 0) {
        return IDEM_ENOMEM;
    }
    if (hold == NULL) {
        hold = make(message);
        if (hold == NULL) {
            return IDEM_ENOMEM;
        }
        hold->state = IDEM__HOLD_WAITING;
        IDEM__LIST_APPEND(holds, hold);
        holds->len++;
    }
    hold->message.receives = message->receives;
    hold->message.sent_ms = message->sent_ms;
    hold->visible_ms = visible_ms;
    hold->retry_ms = 0;
    hold->lost = false;
    return 0;
}

void idem__holds_remove(struct idem__holds *holds, struct idem__hold *hold)
{
    IDEM__LIST_REMOVE(holds, hold);
    holds->len--;
    idem__free(hold->receipt);
    idem__free(hold);
}

/* ---- What the caller does --------------------------------------------------- */

/* True if an earlier message of its group is still held and not being deleted. */
static bool is_behind(const struct idem__hold *hold)
{
    const struct idem__hold *other = hold->prev;

    if (hold->message.group.len == 0) {
        return false;
    }
    while (other != NULL &&
           (other->state == IDEM__HOLD_DELETING ||
            !idem__slice_equal(other->message.group, hold->message.group))) {
        other = other->prev;
    }
    return other != NULL;
}

struct idem__hold *idem__holds_next(struct idem__holds *holds, int64_t now_ms)
{
    struct idem__hold *hold;

    for (hold = holds->first; hold != NULL; hold = hold->next) {
        bool ready = hold->state == IDEM__HOLD_WAITING ||
                     (hold->state == IDEM__HOLD_KEPT && hold->due_ms <= now_ms);

        if (ready && now_ms < hold->visible_ms && !is_behind(hold)) {
            hold->state = IDEM__HOLD_GIVEN;
            hold->message.given++;
            return hold;
        }
    }
    return NULL;
}

void idem__hold_delete(struct idem__hold *hold, int64_t now_ms)
{
    hold->state = IDEM__HOLD_DELETING;
    hold->due_ms = now_ms + GATHER_MS;
}

void idem__hold_keep(struct idem__hold *hold, int64_t now_ms, int64_t ms,
                     int64_t jitter_ms)
{
    hold->state = IDEM__HOLD_KEPT;
    hold->due_ms = now_ms + ms + jitter_ms;
    hold->need_ms = hold->due_ms + SLACK_MS;
}

static void show(struct idem__hold *hold, int64_t now_ms, int64_t ms)
{
    hold->state = IDEM__HOLD_SHOWING;
    hold->due_ms = now_ms;
    hold->show_ms = ms;
}

/* The rest of its group would overtake it, so gives back those messages, too: in the queue
 * they wait for it. */
size_t idem__holds_leave(struct idem__holds *holds, struct idem__hold *hold,
                         int64_t now_ms, int64_t ms)
{
    struct idem__hold *other;
    size_t n = 0;

    for (other = hold->next; other != NULL && hold->message.group.len > 0;
         other = other->next) {
        if (idem__slice_equal(other->message.group, hold->message.group) &&
            (other->state == IDEM__HOLD_WAITING ||
             other->state == IDEM__HOLD_KEPT)) {
            show(other, now_ms, /* ms= */ 0);
            n++;
        }
    }
    show(hold, now_ms, ms);
    if (ms < 0 && !hold->in_call) {
        idem__holds_remove(holds, hold);
    }
    return n;
}

/* A KEPT message must stay invisible for the rest of its time, so it is given back with
 * that. */
size_t idem__holds_give_back(struct idem__holds *holds, int64_t now_ms)
{
    struct idem__hold *hold;
    size_t n = 0;

    for (hold = holds->first; hold != NULL; hold = hold->next) {
        if (hold->state == IDEM__HOLD_WAITING) {
            show(hold, now_ms, /* ms= */ 0);
            n++;
        } else if (hold->state == IDEM__HOLD_KEPT) {
            show(hold, now_ms,
                 hold->due_ms > now_ms ? hold->due_ms - now_ms : 0);
            n++;
        }
    }
    return n;
}

/* ---- What is due ------------------------------------------------------------ */

static bool is_over(const struct idem__hold *hold, int64_t now_ms)
{
    return !hold->in_call &&
           (now_ms >= hold->visible_ms ||
            (hold->state == IDEM__HOLD_SHOWING && hold->show_ms < 0));
}

size_t idem__holds_sweep(struct idem__holds *holds, int64_t now_ms)
{
    struct idem__hold *hold = holds->first;
    size_t lost = 0;

    while (hold != NULL) {
        struct idem__hold *next = hold->next;

        if (is_over(hold, now_ms)) {
            switch (hold->state) {
            case IDEM__HOLD_GIVEN:
                lost += !hold->lost;
                hold->lost = true;
                break;
            case IDEM__HOLD_WAITING:
            case IDEM__HOLD_KEPT:
                lost++;
                idem__holds_remove(holds, hold);
                break;
            case IDEM__HOLD_SHOWING:
                idem__holds_remove(holds, hold);
                break;
            case IDEM__HOLD_DELETING:
                break; /* A receipt may be valid after the message is visible. */
            }
        }
        hold = next;
    }
    return lost;
}

size_t idem__holds_to_delete(struct idem__holds *holds, int64_t now_ms,
                             bool flush, struct idem__hold **ret_picked)
{
    struct idem__hold *hold;
    bool due = flush;
    size_t n = 0;

    for (hold = holds->first; hold != NULL && n < IDEM__SQS_BATCH;
         hold = hold->next) {
        if (hold->state == IDEM__HOLD_DELETING && !hold->in_call &&
            hold->retry_ms <= now_ms) {
            due = due || hold->due_ms <= now_ms;
            ret_picked[n++] = hold;
        }
    }
    return due || n == IDEM__SQS_BATCH ? n : 0;
}

/* Returns when the visibility of @hold must change, and sets until when it is hidden then.
 * IDEM_NEVER: it need not change. */
static int64_t change_at(const struct idem__holds *holds,
                         const struct idem__hold *hold, int64_t now_ms,
                         int64_t *ret_until_ms)
{
    int64_t at_ms = IDEM_NEVER;

    *ret_until_ms = now_ms + holds->visibility_ms;
    switch (hold->state) {
    case IDEM__HOLD_GIVEN:
        if (!hold->lost) {
            at_ms = hold->visible_ms - holds->visibility_ms / 2;
        }
        break;
    case IDEM__HOLD_WAITING:
        at_ms = hold->visible_ms - holds->visibility_ms / 2;
        break;
    case IDEM__HOLD_KEPT:
        *ret_until_ms = hold->need_ms;
        if (hold->due_ms <= now_ms) {
            *ret_until_ms = now_ms + holds->visibility_ms;
            at_ms = hold->visible_ms - SLACK_MS;
        } else if (hold->visible_ms < hold->need_ms) {
            at_ms = now_ms;
        }
        break;
    case IDEM__HOLD_SHOWING:
        *ret_until_ms = now_ms + hold->show_ms;
        if (hold->show_ms >= 0) {
            at_ms = hold->due_ms;
        }
        break;
    case IDEM__HOLD_DELETING:
        break;
    }
    return at_ms > hold->retry_ms || at_ms == IDEM_NEVER ? at_ms
                                                         : hold->retry_ms;
}

size_t idem__holds_to_change(struct idem__holds *holds, int64_t now_ms,
                             struct idem__hold **ret_picked,
                             int64_t *ret_seconds)
{
    struct idem__hold *hold;
    size_t n = 0;

    for (hold = holds->first; hold != NULL && n < IDEM__SQS_BATCH;
         hold = hold->next) {
        int64_t until_ms;

        if (!hold->in_call &&
            change_at(holds, hold, now_ms, &until_ms) <= now_ms) {
            int64_t seconds = (until_ms - now_ms + 999) / 1000;

            ret_picked[n] = hold;
            ret_seconds[n++] = seconds > IDEM__SQS_VISIBILITY_MAX_S
                                   ? IDEM__SQS_VISIBILITY_MAX_S
                                   : seconds;
        }
    }
    return n;
}

static void earlier(int64_t *at_ms, int64_t other_ms)
{
    if (other_ms < *at_ms) {
        *at_ms = other_ms;
    }
}

int64_t idem__holds_due_ms(const struct idem__holds *holds, int64_t now_ms)
{
    const struct idem__hold *hold;
    int64_t due_ms = IDEM_NEVER;

    for (hold = holds->first; hold != NULL; hold = hold->next) {
        int64_t until_ms;

        if (hold->in_call) {
            continue;
        }
        if (hold->state == IDEM__HOLD_KEPT && hold->due_ms > now_ms) {
            earlier(&due_ms, hold->due_ms);
        }
        if (hold->state == IDEM__HOLD_DELETING) {
            earlier(&due_ms, hold->due_ms > hold->retry_ms ? hold->due_ms
                                                           : hold->retry_ms);
        } else {
            earlier(&due_ms, change_at(holds, hold, now_ms, &until_ms));
            if (hold->state != IDEM__HOLD_GIVEN || !hold->lost) {
                earlier(&due_ms, hold->visible_ms);
            }
        }
    }
    return due_ms;
}
