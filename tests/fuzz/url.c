/* Addresses of stores. Any text is taken apart as the manual says. One that names
 * a file of the current folder is opened: what is made lies there under that very
 * name, for its owner only, and keeps what is put into it; or it is refused, and
 * nothing is made.
 */
#include "fuzz.h"
#include "store/sqlite/path.h"

#include <grp.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- Taking apart ---- */

/* By the number, or the name, of a group; -1: there is none. */
static int64_t group_of(const char *name)
{
    char *end;
    const struct group *group;
    size_t digits = strspn(name, "0123456789");

    if (digits > 0 && name[digits] == '\0' && digits <= 10 &&
        strtoull(name, &end, 10) < (gid_t)-1) {
        return (int64_t)strtoull(name, NULL, 10);
    }
    group = getgrnam(name);
    return group == NULL ? -1 : (int64_t)group->gr_gid;
}

static void take_apart(const char *text)
{
    static const char option[] = "?group=";
    char path[IDEM__PATH_MAX + 1];
    struct idem_error error = {0};
    size_t len = strcspn(text, "?");
    bool option_ok = strncmp(text + len, option, strlen(option)) == 0 &&
                     text[len + strlen(option)] != '\0';
    gid_t gid = 1;
    bool exists;
    int rc = idem__path_split(text, path, &gid, &error);

    must(rc == error.code);
    if (len > IDEM__PATH_MAX) {
        must(rc == IDEM_ECONFIG);
        return;
    }
    must(strlen(path) == len && memcmp(path, text, len) == 0);
    if (text[len] == '\0') {
        must(rc == 0 && gid == (gid_t)-1);
    } else if (!option_ok) {
        must(rc == IDEM_EINVALID);
    } else {
        int64_t want = group_of(text + len + strlen(option));

        must(want < 0 ? rc == IDEM_ECONFIG : rc == 0 && gid == (gid_t)want);
    }
    rc = idem__path_check(path, &exists, &error);
    must(rc == 0 || rc == IDEM_ECONFIG || rc == IDEM_EDENIED);
}

/* ---- Opening ---- */

static void use(const char *url)
{
    struct idem_request request = IDEM_REQUEST_INIT;
    struct idem_store *store;
    struct idem_attempt *attempt;
    int round;

    request.key = idem_str("k");
    request.on_expired_lease = IDEM_HOLD;
    for (round = 0; round < 2; round++) {
        must(idem_open(url, NULL, &store, NULL) == 0);
        must(idem_begin(store, &request, &attempt, NULL) == 0);
        must(attempt->verdict == (round == 0 ? IDEM_STARTED : IDEM_REPLAY));
        must(round > 0 || idem_complete(attempt, NULL, NULL) == 0);
        idem_attempt_destroy(attempt);
        idem_close(store);
    }
}

static void open_file(const char *url, const char *path)
{
    bool shared = strchr(path, '?') != NULL;
    char *name = strndup(path, strcspn(path, "?"));
    struct idem_store *store = NULL;
    struct stat st;
    int rc = idem_open(url, NULL, &store, NULL);

    must(name != NULL);
    if (rc == 0) {
        idem_close(store);
        must(lstat(name, &st) == 0 && S_ISREG(st.st_mode));
        must((st.st_mode & 07777) == (shared ? 0660 : 0600));
        use(url);
        must(fuzz_clean_folder() > 0);
    } else {
        must(store == NULL && rc != IDEM_ECORRUPT);
        must(fuzz_clean_folder() == 0);
    }
    free(name);
}

static void open_url(const char *url)
{
    struct idem_store *store = NULL;
    int rc;

    if (strncmp(url, "sqlite:", 7) == 0) {
        if (strchr(url, '/') == NULL) {
            open_file(url, url + 7);
        }
        return;
    }
    rc = idem_open(url, NULL, &store, NULL);
    must((rc == 0) == (strcmp(url, "memory:") == 0));
    must(rc == 0 || rc == IDEM_EINVALID);
    idem_close(store);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_hush();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = text_of(idem_bytes(data, len));

    fuzz_enter_folder();
    take_apart(text);
    open_url(text);
    fuzz_leave_folder();
    free(text);
    return 0;
}
