/* Calls and answers as text. What was asked is taken from the op that the library
 * made of it: so each attempt has the nonce that it really has. */
#include "history.h"

#include "../lib/history_line.h"
#include "host.h"
#include "table.h"

#include <idem/operator.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The call that a client is in. */
struct pending {
    bool on;
    bool sent;
    bool resolves;
    bool made; /* A claim, before it is known whether it stands. */
    unsigned boot;
    int64_t store_ms;
    char time[32];
    char key[8];
    uint8_t nonce[16];
    /* Beside the one that is answered there may be done */
    unsigned again;    /* so many that the library sent, */
    unsigned doubled;  /* and so many that the network made of them. */
    struct line asked; /* Verb and fields. */
};

static FILE *out;
static FILE *body; /* Of this schedule, before it is known how it is headed. */
static char *body_text;
static size_t body_len;
static unsigned long calls;
static unsigned boot;
static int64_t last_ms;
static unsigned last_part; /* So that later is later within a millisecond. */
static struct pending pendings[CLIENTS_MAX];

bool history_open(const char *path)
{
    out = fopen(path, "w");
    return out != NULL;
}

void history_close(void)
{
    if (out != NULL && fclose(out) != 0) {
        abort();
    }
    out = NULL;
}

static void clock_text(const struct world *w, char time[32])
{
    last_part = w->now == last_ms && last_part < 999 ? last_part + 1 : 0;
    last_ms = w->now;
    (void)snprintf(time, 32, "%" PRId64 ".%03u", w->now, last_part);
}

void history_start(void)
{
    if (out == NULL) {
        return;
    }
    body = open_memstream(&body_text, &body_len);
    memset(pendings, 0, sizeof(pendings));
    calls = 0;
    boot = 1;
}

void history_end(struct world *w)
{
    if (out == NULL) {
        return;
    }
    (void)fclose(body);
    fprintf(out, "history seed-%" PRIu64 " ", w->seed);
    if (w->config.mode == DYNAMODB || w->config.mode == POSTGRES ||
        (w->config.mode == REMOTE && w->config.by_wall) || w->config.doubtful) {
        fprintf(out, "clock=none\n");
    } else {
        /* A remote client knows the time by what it learned; the longer ago, the
         * less. It is on the safe side then. */
        fprintf(out, "early=0 late=%s\n",
                w->config.mode == EMBEDDED ? "0" : "never");
    }
    (void)fwrite(body_text, 1, body_len, out);
    free(body_text);
}

void history_reboot(void)
{
    boot++;
}

void history_deleted(const struct world *w)
{
    char time[32];

    if (out != NULL) {
        clock_text(w, time);
        fprintf(body, "call %d.%lu %s - purge boot=1 store=%" PRId64 "\n",
                CLIENTS_MAX, ++calls, time, w->now);
    }
}

/* ---- What is asked ---- */

static void add_nonce(struct line *line, const uint8_t nonce[16])
{
    uint64_t word;

    memcpy(&word, nonce, sizeof(word));
    line_add(line, " nonce=%" PRIx64, word);
}

static void ask_begin(struct line *line, const struct idem_op *op)
{
    line_add(line, "begin");
    line_request(line, &op->u.begin);
    if (op->u.begin.join_fence != 0) {
        line_add(line, " join=%" PRIu64, op->u.begin.join_fence);
    }
    add_nonce(line, op->nonce);
}

static void ask_end(struct line *line, const struct idem_op *op)
{
    line_add(line, "%s fence=%" PRIu64, line_verb(&op->u.end), op->fence);
    line_outcome(line, &op->u.end);
    add_nonce(line, op->nonce);
}

static void ask_resolve(struct line *line, const struct idem_op *op)
{
    const struct idem_outcome *outcome = &op->u.resolve.outcome;

    line_add(line, "resolve fence=%" PRIu64 " as=%s", op->fence,
             idem_status_name(outcome->status));
    line_outcome(line, outcome);
    line_word(line, "who", op->u.resolve.who);
    if ((op->u.resolve.flags & IDEM_RESOLVE_FORCE) != 0) {
        line_add(line, " force=1");
    }
    add_nonce(line, op->nonce);
}

static void ask_import(struct line *line, const struct idem_op *op)
{
    const struct idem_record *r = op->u.import.record;

    line_add(line, "import fence=%" PRIu64 " as=%s attempts=%u policy=%s",
             r->fence, idem_status_name(idem_record_status(r)), r->attempts,
             line_policy(r->on_expired_lease));
    line_ms(line, "retention", r->retention_ms);
    line_ms(line, "expires", r->expires_ms);
    line_content(line, &r->result);
    line_word(line, "text",
              r->status == IDEM_STATUS_FAILED ? r->error : r->note);
    line_word(line, "print", r->fingerprint);
    add_nonce(line, r->nonce);
}

static void ask(struct line *line, const struct idem_op *op)
{
    switch (op->verb) {
    case IDEM_OP_BEGIN:
        ask_begin(line, op);
        return;
    case IDEM_OP_END:
        ask_end(line, op);
        return;
    case IDEM_OP_RENEW:
        line_add(line, "renew fence=%" PRIu64, op->fence);
        line_ms(line, "lease", op->u.renew.lease_ms);
        add_nonce(line, op->nonce);
        return;
    case IDEM_OP_EXPIRE:
        line_add(line, "expire fence=%" PRIu64, op->fence);
        add_nonce(line, op->nonce);
        return;
    case IDEM_OP_RESOLVE:
        ask_resolve(line, op);
        return;
    case IDEM_OP_IMPORT:
        ask_import(line, op);
        return;
    case IDEM_OP_PURGE:
        line_add(line, "purge");
        return;
    case IDEM_OP_GET:
    case IDEM_OP_LIST:
    case IDEM_OP_COUNT:
    case IDEM_OP_LIMIT:
    case IDEM_OP_MOVE:
        break;
    }
    line_add(line, "get");
}

/* ---- Calls ---- */

void history_call(struct client *c, const struct key *key)
{
    struct pending *p = &pendings[c->no];

    if (out == NULL) {
        return;
    }
    memset(p, 0, sizeof(*p));
    p->on = true;
    (void)snprintf(p->key, sizeof(p->key), key == NULL ? "-" : "k%d",
                   key == NULL ? 0 : key->no);
}

static unsigned long print_call(const struct client *c, const struct pending *p)
{
    fprintf(body, "call %d.%lu %s %s %s boot=%u store=%" PRId64 "\n", c->no,
            ++calls, p->time, p->key, p->asked.text, p->boot, p->store_ms);
    return calls;
}

static void print_copies(const struct client *c, struct pending *p)
{
    for (; p->again > 0 || p->doubled > 0; p->doubled--) {
        p->doubled += p->again;
        p->again = 0;
        (void)print_call(c, p);
    }
}

void history_submit(struct client *c, const struct idem_op *op)
{
    struct pending *p = &pendings[c->no];

    if (out == NULL) {
        return;
    }
    if (p->sent && memcmp(p->nonce, op->nonce, sizeof(p->nonce)) == 0) {
        p->again++;
        return;
    }
    /* What a waiter asked before was answered, and did nothing; a copy of it
     * may still do something. */
    print_copies(c, p);
    memcpy(p->nonce, op->nonce, sizeof(p->nonce));
    p->sent = true;
    p->resolves = op->verb == IDEM_OP_RESOLVE;
    p->boot = c->world->config.mode == EMBEDDED ? boot : 1;
    p->store_ms = truth_ms(c->world);
    clock_text(c->world, p->time);
    p->asked.len = 0;
    ask(&p->asked, op);
}

void history_again(const struct flight *f)
{
    if (out != NULL && f->client != NULL && f->call == f->client->call) {
        pendings[f->client->no].again++;
    }
}

void history_made(const struct flight *f)
{
    history_again(f);
    if (out != NULL && f->client != NULL && f->call == f->client->call) {
        pendings[f->client->no].made = true;
    }
}

void history_doubled(const struct flight *f)
{
    if (out != NULL && f->client != NULL && f->call == f->client->call) {
        pendings[f->client->no].doubled++;
    }
}

/* ---- Answers ---- */

static const char *answer_name(const struct pending *p, int rc,
                               const struct idem_attempt *attempt)
{
    if ((rc == IDEM_EUNAVAILABLE || rc == IDEM_EFULL) && p->made) {
        return "?"; /* Nothing that stands. */
    }
    if (rc == IDEM_EINVALID && !p->resolves) {
        return "?";
    }
    if (rc == IDEM_ECORRUPT && p->again + p->doubled == 0) {
        return "NOTHING"; /* It is never written over. */
    }
    return line_answer(rc, attempt);
}

/* The call of @c and its copies, and what it was answered unless it is NULL. */
static void print(struct client *c, struct pending *p, const char *answer)
{
    bool unknown = answer == NULL || answer[0] == '?';
    unsigned long no;
    char time[32];

    if (!p->on || !p->sent) {
        return;
    }
    if (unknown && c->world->config.mode != EMBEDDED) {
        p->again++; /* What is on its way may do it, and come once more. */
    }
    no = print_call(c, p);
    if (answer != NULL) {
        clock_text(c->world, time);
        fprintf(body, "ret %d.%lu %s %s store=%" PRId64 "\n", c->no, no, time,
                answer, truth_ms(c->world));
    }
    if (!unknown && strncmp(answer, "NOTHING", 7) == 0) {
        p->again = 0; /* Where nothing was done, none of them did it. */
    }
    print_copies(c, p);
}

void history_told(struct client *c, int rc, const struct idem_attempt *attempt,
                  const struct idem_record *record)
{
    struct pending *p = &pendings[c->no];
    struct line line = {.len = 0};

    if (out == NULL) {
        return;
    }
    line_add(&line, "%s", answer_name(p, rc, attempt));
    if (rc == 0) {
        line_shown(&line, attempt, record);
    }
    print(c, p, line.text);
    p->on = false;
}

void history_crash(struct client *c)
{
    struct pending *p = &pendings[c->no];

    if (out != NULL) {
        print(c, p, NULL);
        p->on = false;
    }
}
