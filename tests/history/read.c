/* Reading histories. */
#include "history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MS = 1000,
    DEFAULT_SLACK = MS,
};

void history_init(struct history *h)
{
    memset(h, 0, sizeof(*h));
    h->early = DEFAULT_SLACK;
    h->late = DEFAULT_SLACK;
    words_init(&h->words);
}

void history_finish(struct history *h)
{
    words_finish(&h->words);
    free(h->ops);
    memset(h, 0, sizeof(*h));
}

/* ---- Values ---- */

/* A decimal number of milliseconds, with up to three decimals. */
static bool read_ms(const char *text, int64_t *ret)
{
    char *end;
    int64_t n;
    int64_t unit = MS;

    if (strcmp(text, "never") == 0) {
        *ret = IDEM_NEVER;
        return true;
    }
    errno = 0;
    n = strtoll(text, &end, 10);
    if (end == text || errno != 0 || n > INT64_MAX / MS || n < INT64_MIN / MS) {
        return false;
    }
    n *= MS;
    if (*end == '.') {
        for (end++; *end >= '0' && *end <= '9' && unit > 1; end++) {
            unit /= 10;
            n += (text[0] == '-' ? '0' - *end : *end - '0') * unit;
        }
    }
    *ret = n;
    return *end == '\0';
}

static bool read_number(const char *text, int64_t *ret)
{
    char *end;

    errno = 0;
    *ret = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && *ret >= 0;
}

static bool read_status(const char *text, int64_t *ret)
{
    int64_t status;

    for (status = IDEM_STATUS_IN_PROGRESS; status <= IDEM_STATUS_RETRY;
         status++) {
        const char *name = idem_status_name((enum idem_status)status);

        if (name != NULL && strcmp(text, name) == 0) {
            *ret = status;
            return true;
        }
    }
    return false;
}

static bool read_policy(const char *text, int64_t *ret)
{
    *ret = strcmp(text, "hold") == 0 ? IDEM_HOLD : IDEM_RERUN;
    return *ret == IDEM_HOLD || strcmp(text, "rerun") == 0;
}

/* ---- Fields ---- */

enum kind {
    FIELD_MS,
    FIELD_NUMBER,
    FIELD_STATUS,
    FIELD_POLICY,
    FIELD_WORD
};

struct field {
    const char *name;
    enum kind kind;
    size_t offset;
};

#define IN_OP(member) offsetof(struct op, member)

static const struct field call_fields[] = {
    {"as", FIELD_STATUS, IN_OP(as)},
    {"attempts", FIELD_NUMBER, IN_OP(attempts)},
    {"boot", FIELD_NUMBER, IN_OP(boot)},
    {"budget", FIELD_NUMBER, IN_OP(budget)},
    {"cap", FIELD_NUMBER, IN_OP(cap)},
    {"content", FIELD_WORD, IN_OP(content)},
    {"expect", FIELD_MS, IN_OP(expect)},
    {"expires", FIELD_MS, IN_OP(expires)},
    {"fence", FIELD_NUMBER, IN_OP(fence)},
    {"force", FIELD_NUMBER, IN_OP(force)},
    {"join", FIELD_NUMBER, IN_OP(join)},
    {"lease", FIELD_MS, IN_OP(lease)},
    {"nonce", FIELD_WORD, IN_OP(nonce)},
    {"pause", FIELD_MS, IN_OP(pause)},
    {"policy", FIELD_POLICY, IN_OP(policy)},
    {"print", FIELD_WORD, IN_OP(print)},
    {"retention", FIELD_MS, IN_OP(retention)},
    {"run", FIELD_NUMBER, IN_OP(run)},
    {"store", FIELD_MS, IN_OP(store_call)},
    {"text", FIELD_WORD, IN_OP(text)},
    {"wait", FIELD_NUMBER, IN_OP(wait)},
    {"who", FIELD_WORD, IN_OP(who)},
    {NULL, FIELD_MS, 0},
};

static const struct field answer_fields[] = {
    {"added", FIELD_NUMBER, IN_OP(shown.added)},
    {"attempts", FIELD_NUMBER, IN_OP(shown.attempts)},
    {"content", FIELD_WORD, IN_OP(shown.content)},
    {"fence", FIELD_NUMBER, IN_OP(shown.fence)},
    {"join", FIELD_NUMBER, IN_OP(join)},
    {"left", FIELD_MS, IN_OP(shown.left)},
    {"policy", FIELD_POLICY, IN_OP(shown.policy)},
    {"status", FIELD_STATUS, IN_OP(shown.status)},
    {"store", FIELD_MS, IN_OP(store_back)},
    {"takeover", FIELD_NUMBER, IN_OP(shown.takeover)},
    {"text", FIELD_WORD, IN_OP(shown.text)},
    {NULL, FIELD_MS, 0},
};

static bool read_value(struct history *h, const struct field *field,
                       const char *text, struct op *op)
{
    void *to = (char *)op + field->offset;

    switch (field->kind) {
    case FIELD_MS:
        return read_ms(text, to);
    case FIELD_NUMBER:
        return read_number(text, to);
    case FIELD_STATUS:
        return read_status(text, to);
    case FIELD_POLICY:
        return read_policy(text, to);
    case FIELD_WORD:
        break;
    }
    *(word *)to = text[0] == '\0' ? WORD_NONE : words_add(&h->words, text);
    return true;
}

/* Reads "name=value" words up to the end of the line. Returns NULL, or the bad word. */
static const char *read_fields(struct history *h, const struct field *fields,
                               char **rest, struct op *op)
{
    char *text;

    while ((text = strtok_r(NULL, " ", rest)) != NULL) {
        const struct field *field = fields;
        char *value = strchr(text, '=');

        if (value == NULL) {
            return text;
        }
        *value++ = '\0';
        while (field->name != NULL && strcmp(field->name, text) != 0) {
            field++;
        }
        if (field->name == NULL || !read_value(h, field, value, op)) {
            return text;
        }
    }
    return NULL;
}

/* ---- Lines ---- */

static const struct verb_name {
    const char *name;
    enum verb verb;
    int64_t as;
} verbs[] = {
    {"begin", VERB_BEGIN, 0},
    {"complete", VERB_END, IDEM_STATUS_COMPLETED},
    {"fail", VERB_END, IDEM_STATUS_FAILED},
    {"release", VERB_END, IDEM_STATUS_RELEASED},
    {"unknown", VERB_END, IDEM_STATUS_UNKNOWN},
    {"retry", VERB_END, IDEM_STATUS_RETRY},
    {"renew", VERB_RENEW, 0},
    {"expire", VERB_EXPIRE, 0},
    {"get", VERB_GET, 0},
    {"resolve", VERB_RESOLVE, 0},
    {"import", VERB_IMPORT, 0},
    {"purge", VERB_PURGE, 0},
    {NULL, VERB_GET, 0},
};

/* The verbs that may have an answer, or-ed. */
#define OF(verb) (1u << VERB_##verb)
#define OWNERS (OF(END) | OF(RENEW) | OF(EXPIRE))

static const struct answer_name {
    const char *name;
    int answer;
    unsigned verbs;
} answers[] = {
    {"STARTED", IDEM_STARTED, OF(BEGIN)},
    {"REPLAY", IDEM_REPLAY, OF(BEGIN)},
    {"FAILED", IDEM_FAILED, OF(BEGIN)},
    {"UNKNOWN", IDEM_UNKNOWN, OF(BEGIN)},
    {"RELEASED", IDEM_RELEASED, OF(BEGIN)},
    {"MISMATCH", IDEM_MISMATCH, OF(BEGIN)},
    {"BUSY", IDEM_BUSY, OF(BEGIN)},
    {"OK", ANSWER_OK, ~OF(BEGIN)},
    {"LOST", ANSWER_LOST, OWNERS | OF(RESOLVE)},
    {"NOTFOUND", ANSWER_NOTFOUND, OF(GET) | OF(RESOLVE)},
    {"INVALID", ANSWER_INVALID, OF(RESOLVE)},
    {"NOTHING", ANSWER_NOTHING, ~0u},
    {"?", ANSWER_NONE, ~0u},
    {NULL, 0, 0},
};

static struct op *add_op(struct history *h, word id)
{
    struct op *op;

    if (h->len == h->cap) {
        h->cap = h->cap == 0 ? 64 : h->cap * 2;
        h->ops = realloc(h->ops, h->cap * sizeof(*h->ops));
        if (h->ops == NULL) {
            abort();
        }
    }
    op = &h->ops[h->len++];
    memset(op, 0, sizeof(*op));
    op->id = id;
    op->nonce = id;
    op->boot = 1;
    op->policy = IDEM_RERUN;
    op->lease = IDEM_NEVER;
    op->retention = IDEM_NEVER;
    op->expires = IDEM_NEVER;
    op->back = INT64_MAX;
    op->store_call = INT64_MIN;
    op->store_back = INT64_MIN;
    op->shown = (struct shown){-1, -1, -1, -1, -1, -1, -1, 0, 0};
    h->words.tags[id] = (uint32_t)h->len;
    return op;
}

/* Reads "call ID TIME KEY VERB ..." from ID on. Returns NULL, or the mistake. */
static const char *read_call(struct history *h, unsigned line, char **rest)
{
    const struct verb_name *verb = verbs;
    const char *id = strtok_r(NULL, " ", rest);
    const char *time = strtok_r(NULL, " ", rest);
    const char *key = strtok_r(NULL, " ", rest);
    const char *name = strtok_r(NULL, " ", rest);
    struct op *op;
    word w;

    if (name == NULL) {
        return "a call has an ID, a time, a key and a verb";
    }
    w = words_add(&h->words, id);
    if (h->words.tags[w] != 0) {
        return "another call has this ID";
    }
    op = add_op(h, w);
    op->line = line;
    op->key = strcmp(key, "-") == 0 ? WORD_NONE : words_add(&h->words, key);
    while (verb->name != NULL && strcmp(verb->name, name) != 0) {
        verb++;
    }
    op->verb = verb->verb;
    op->as = verb->as;
    if (verb->name == NULL ||
        (op->key == WORD_NONE) != (op->verb == VERB_PURGE)) {
        return "there is no such verb, or not with this key";
    }
    if (!read_ms(time, &op->call)) {
        return "this is no time";
    }
    return read_fields(h, call_fields, rest, op);
}

static const char *read_answer(struct history *h, unsigned line, char **rest)
{
    const struct answer_name *answer = answers;
    const char *id = strtok_r(NULL, " ", rest);
    const char *time = strtok_r(NULL, " ", rest);
    const char *name = strtok_r(NULL, " ", rest);
    struct op *op;
    word w;

    if (name == NULL) {
        return "an answer has an ID, a time and a word";
    }
    w = words_add(&h->words, id);
    if (h->words.tags[w] == 0) {
        return "there is no call before it with this ID";
    }
    op = &h->ops[h->words.tags[w] - 1];
    if (op->line_back != 0) {
        return "it was answered before";
    }
    op->line_back = line;
    while (answer->name != NULL && strcmp(answer->name, name) != 0) {
        answer++;
    }
    if ((answer->verbs & 1u << op->verb) == 0) {
        return "there is no such answer to this verb";
    }
    op->answer = answer->answer;
    if (!read_ms(time, &op->back) || op->back < op->call) {
        return "this is no time, or one before the call";
    }
    return read_fields(h, answer_fields, rest, op);
}

/* Reads "history NAME ..." from NAME on. */
static const char *read_name(struct history *h, char **rest)
{
    const char *name = strtok_r(NULL, " ", rest);
    char *text;

    if (name == NULL) {
        return "a history has a name";
    }
    h->name = words_add(&h->words, name);
    while ((text = strtok_r(NULL, " ", rest)) != NULL) {
        if (strcmp(text, "clock=none") == 0) {
            h->no_clock = true;
        } else if (!(strncmp(text, "early=", 6) == 0 &&
                     read_ms(text + 6, &h->early)) &&
                   !(strncmp(text, "late=", 5) == 0 &&
                     read_ms(text + 5, &h->late))) {
            return text;
        }
    }
    return NULL;
}

static const char *read_line(struct history *h, struct reader *reader)
{
    char *rest = NULL;
    const char *kind = strtok_r(reader->text, " ", &rest);

    if (kind == NULL || kind[0] == '#') {
        return NULL;
    }
    if (strcmp(kind, "call") == 0) {
        return read_call(h, reader->line, &rest);
    }
    if (strcmp(kind, "ret") == 0) {
        return read_answer(h, reader->line, &rest);
    }
    if (strcmp(kind, "history") == 0) {
        return read_name(h, &rest);
    }
    return "a line begins with history, call or ret";
}

/* False at the end. */
static bool next_line(struct reader *reader)
{
    ssize_t len = getline(&reader->text, &reader->text_cap, reader->file);

    if (len <= 0 || reader->text[len - 1] != '\n') {
        return false;
    }
    reader->text[len - 1] = '\0';
    reader->line++;
    return true;
}

int history_read(struct history *h, struct reader *reader, bool merge)
{
    bool any = false;

    while (reader->pending || next_line(reader)) {
        const char *wrong;

        if (!reader->pending && !merge && any &&
            strncmp(reader->text, "history ", 8) == 0) {
            reader->pending = true;
            return 1;
        }
        reader->pending = false;
        wrong = read_line(h, reader);
        any = any || h->name != WORD_NONE || h->len > 0;
        if (wrong != NULL) {
            fprintf(stderr, "%s:%u: %s\n", reader->path, reader->line, wrong);
            return -1;
        }
    }
    return any ? 1 : 0;
}

/* ---- Putting in order ---- */

static int by_call(const void *a, const void *b)
{
    const struct op *x = a;
    const struct op *y = b;

    if (x->call != y->call) {
        return x->call < y->call ? -1 : 1;
    }
    return x->line < y->line ? -1 : x->line > y->line;
}

static void seal_op(struct history *h, struct op *op)
{
    if (op->store_call == INT64_MIN) {
        op->store_call = op->call;
    }
    if (op->answer == ANSWER_NONE) {
        op->back = INT64_MAX;
        op->store_back = INT64_MAX;
    } else if (op->store_back == INT64_MIN) {
        op->store_back = op->back;
    }
    h->purged = h->purged || op->verb == VERB_PURGE;
}

void history_seal(struct history *h)
{
    bool boots = false;
    size_t kept = 0;
    size_t i;

    for (i = 0; i < h->len; i++) {
        boots = boots || h->ops[i].boot != h->ops[0].boot;
    }
    for (i = 0; i < h->len; i++) {
        struct op *op = &h->ops[i];
        bool reads = op->verb == VERB_GET;

        if (op->answer == ANSWER_NOTHING ||
            (op->answer == ANSWER_NONE && reads)) {
            continue;
        }
        seal_op(h, op);
        if (boots && op->answer == ANSWER_NONE) {
            op->boot = 0; /* It may be done in another boot. */
        }
        h->ops[kept++] = *op;
    }
    h->len = kept;
    qsort(h->ops, h->len, sizeof(*h->ops), by_call);
}
