/* Addresses of stores. Any text is taken apart as the manual says. One that names
 * a file of the current folder is opened: what is made lies there under that very
 * name, for its owner only, and keeps what is put into it; or it is refused, and
 * nothing is made.
 */
#include "fuzz.h"
#include "store/sqlite/place.h"

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

    if (digits > 0 && name[digits] == '\0' &&
        strtoull(name, &end, 10) < (gid_t)-1) {
        return (int64_t)strtoull(name, NULL, 10);
    }
    group = getgrnam(name);
    return group == NULL ? -1 : (int64_t)group->gr_gid;
}

/* True if the options at @text are such; *@ret_gid is the last group's, -2: it is
 * none that exists. */
static bool options_of(const char *text, int64_t *ret_gid)
{
    char *copy = strdup(text);
    char *rest = copy;
    const char *option;
    bool good = true;

    must(copy != NULL);
    *ret_gid = -1;
    while (good && *ret_gid != -2 && (option = strsep(&rest, "&")) != NULL) {
        good = strlen(option) < 300;
        if (good && strncmp(option, "group=", 6) == 0 && option[6] != '\0') {
            *ret_gid = group_of(option + 6);
            *ret_gid = *ret_gid < 0 ? -2 : *ret_gid;
        } else {
            good = good && (strcmp(option, "network=yes") == 0 ||
                            strcmp(option, "create=no") == 0);
        }
    }
    free(copy);
    return good;
}

static void take_apart(const char *text)
{
    struct idem_error error = {0};
    size_t len = strcspn(text, "?");
    struct idem__place place;
    const char *slash;
    int64_t gid = -1;
    int rc = idem__path_split(text, &place, &error);

    must(rc == error.code);
    if (len > IDEM__PATH_MAX) {
        must(rc == IDEM_ECONFIG);
        return;
    }
    must(strlen(place.path) == len && memcmp(place.path, text, len) == 0);
    slash = strrchr(place.path, '/');
    if (strlen(slash != NULL ? slash + 1 : place.path) > IDEM__NAME_MAX) {
        must(rc == IDEM_ECONFIG);
    } else if (text[len] == '\0') {
        must(rc == 0 && place.gid == (gid_t)-1);
    } else if (!options_of(text + len + 1, &gid)) {
        must(rc == IDEM_EINVALID);
    } else {
        must(gid == -2 ? rc == IDEM_ECONFIG
                       : rc == 0 && place.gid == (gid_t)gid);
    }
    rc = idem__path_check(&place, &error);
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
    const char *options = strchr(path, '?');
    bool shared = options != NULL && strstr(options, "group=") != NULL;
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
    if (strncmp(url, "dynamodb:", 9) == 0) {
        return; /* That is for the target aws. */
    }
    rc = idem_open(url, NULL, &store, NULL);
    must((rc == 0) == (strcmp(url, "memory:") == 0));
    must(rc == 0 || rc == IDEM_EINVALID);
    idem_close(store);
}

FUZZ_HUSHED

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
