/* What the tests of the journal share: a store, a journal, what is in it. */
#include "lib.h"

#include "temp.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

static struct idem_answer *answer;

void place_open(struct place *p)
{
    p->directory = temp_path("journal");
    (void)snprintf(p->url, sizeof(p->url), "sqlite:%s", temp_path("idem.db"));
    assert_ok(idem_open(p->url, NULL, &p->store, &why));
    assert_ok(
        idem_journal_open(p->directory, /* create= */ true, &p->journal, &why));
}

void place_close(struct place *p)
{
    idem_answer_destroy(answer);
    answer = NULL;
    idem_journal_close(p->journal);
    idem_close(p->store);
}

struct idem_attempt *started(struct place *p, const char *key)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_attempt *attempt;

    request.key = idem_str(key);
    request.on_expired_lease = IDEM_HOLD;
    assert_ok(idem_begin(p->store, &request, &attempt, &why));
    assert_int_equal(attempt->verdict, IDEM_STARTED);
    return attempt;
}

struct idem_outcome completed(const char *text)
{
    struct idem_outcome outcome = {
        .status = IDEM_STATUS_COMPLETED,
        .result = {.bytes = idem_str(text)},
    };

    return outcome;
}

struct idem_journal_entry *hold(struct place *p,
                                const struct idem_attempt *attempt,
                                const struct idem_outcome *outcome)
{
    struct idem_journal_entry *entry;

    assert_ok(
        idem_journal_put(p->journal, p->store, attempt, outcome, &entry, &why));
    return entry;
}

const char *put(struct place *p, const struct idem_attempt *attempt,
                const struct idem_outcome *outcome)
{
    static char name[80];
    struct idem_journal_entry *entry = hold(p, attempt, outcome);

    (void)strcpy(name, idem_journal_entry_name(entry));
    idem_journal_leave(entry);
    return name;
}

const char *put_key(struct place *p, const char *key)
{
    struct idem_outcome outcome = completed("receipt 7");
    struct idem_attempt *attempt = started(p, key);
    const char *name = put(p, attempt, &outcome);

    idem_attempt_destroy(attempt);
    return name;
}

const struct idem_record *record_of(struct place *p, const char *key)
{
    idem_answer_destroy(answer);
    answer = NULL;
    assert_ok(idem_get(p->store, idem_str(""), idem_str(key), &answer, &why));
    return idem_answer_record(answer);
}

void assert_completed(struct place *p, const char *key, const char *text)
{
    const struct idem_record *record = record_of(p, key);

    assert_int_equal(record->status, IDEM_STATUS_COMPLETED);
    assert_text(record->result.bytes, text);
}

static void copy(char buf[64], struct idem_slice s)
{
    (void)snprintf(buf, 64, "%.*s", (int)(s.len < 63 ? s.len : 63),
                   s.len > 0 ? (const char *)s.base : "");
}

static int note(void *ctx, const struct idem_journal_info *info,
                const struct idem_error *error)
{
    struct told *told = ctx;

    told->by_state[info->state]++;
    if (told->len < COUNT(told->of)) {
        told->of[told->len].state = info->state;
        told->of[told->len].code = error->code;
        told->of[told->len].status = info->outcome.status;
        (void)snprintf(told->of[told->len].name,
                       sizeof(told->of[told->len].name), "%s", info->name);
        copy(told->of[told->len].key, info->key);
        copy(told->of[told->len].result, info->outcome.result.bytes);
    }
    told->len++;
    return 0;
}

struct told replay(struct place *p, const struct idem_journal_filter *filter)
{
    struct told told = {.len = 0};

    assert_ok(
        idem_journal_replay(p->journal, p->store, filter, note, &told, &why));
    return told;
}

struct told list(struct place *p, const struct idem_journal_filter *filter)
{
    struct told told = {.len = 0};

    assert_ok(idem_journal_list(p->journal, filter, note, &told, &why));
    return told;
}

void assert_replay(struct place *p, enum idem_journal_state state, unsigned n)
{
    struct told told = replay(p, NULL);

    assert_int_equal(told.len, n);
    assert_int_equal(told.by_state[state], n);
}

void assert_list(struct place *p, enum idem_journal_state state, unsigned n)
{
    struct told told = list(p, NULL);

    assert_int_equal(told.len, n);
    assert_int_equal(told.by_state[state], n);
}

unsigned files(const struct place *p, const char *ending)
{
    DIR *stream = opendir(p->directory);
    struct dirent *entry;
    unsigned n = 0;

    assert_non_null(stream);
    while ((entry = readdir(stream)) != NULL) {
        const char *name = entry->d_name;
        size_t len = strlen(name);

        n += name[0] != '.' && len >= strlen(ending) &&
             strcmp(name + len - strlen(ending), ending) == 0;
    }
    (void)closedir(stream);
    return n;
}

void assert_files(const struct place *p, const char *ending, unsigned n)
{
    assert_int_equal(files(p, ending), n);
    assert_int_equal(files(p, ""), n);
}

static int open_file(const struct place *p, const char *name)
{
    char path[1024];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", p->directory, name);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

struct idem_slice read_entry(struct place *p, const char *name, void *buf,
                             size_t size)
{
    int fd = open_file(p, name);
    ssize_t len = read(fd, buf, size);

    assert_true(len > 0 && (size_t)len < size);
    (void)close(fd);
    return idem_bytes(buf, (size_t)len);
}

void damage(struct place *p, const char *name, long len, long at)
{
    int fd = open_file(p, name);
    uint8_t byte;

    if (len >= 0) {
        assert_int_equal(ftruncate(fd, len), 0);
    }
    if (at >= 0) {
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    (void)close(fd);
}
