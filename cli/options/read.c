/* Values that are too long for a command line: from a file or from stdin. */
#include "options/read.h"

#include "text/error.h"
#include "text/exit_status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_ROOM 65536

/* Reads to the end of @fd, or until there is more than @max. 0 or an errno. */
static int read_all(int fd, size_t max, char **ret_data, size_t *ret_len)
{
    size_t room = 0;
    size_t len = 0;
    char *data = NULL;
    ssize_t n = 1;
    int err;

    while (n != 0 && len <= max) {
        if (len + 1 >= room) { /* One more for the NUL. */
            char *bigger;

            room = room == 0 ? FIRST_ROOM : room * 2;
            bigger = realloc(data, room);
            if (bigger == NULL) {
                err = ENOMEM;
                goto err_after_alloc;
            }
            data = bigger;
        }
        n = read(fd, data + len, room - 1 - len);
        if (n < 0 && errno != EINTR) {
            err = errno;
            goto err_after_alloc;
        }
        len += n > 0 ? (size_t)n : 0;
    }
    data[len] = '\0';
    *ret_data = data;
    *ret_len = len;
    return 0;

err_after_alloc:
    free(data);
    return err;
}

/* Standard input can be read once: a second reader would get nothing. */
static int take_stdin(const char *option)
{
    static const char *taken_by;

    if (taken_by != NULL) {
        cli_say("--%s: standard input is already used by --%s", option,
                taken_by);
        return CLI_USAGE;
    }
    taken_by = option;
    return 0;
}

static int read_fd(const char *option, const char *name, int fd, size_t max,
                   char **ret_data, size_t *ret_len)
{
    int err = read_all(fd, max, ret_data, ret_len);

    if (err == 0) {
        return 0;
    }
    cli_say("--%s: cannot read %s: %s", option, name, strerror(err));
    return err == ENOMEM ? CLI_INTERNAL : CLI_USAGE;
}

int cli_read_file(const char *option, const char *file, size_t max,
                  char **ret_data, size_t *ret_len)
{
    int status;
    int fd;

    fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        cli_say("--%s: cannot open \"%s\": %s", option, file, strerror(errno));
        return CLI_USAGE;
    }

    status = read_fd(option, file, fd, max, ret_data, ret_len);

    (void)close(fd);
    return status;
}

static int copy_text(const char *text, char **ret_data, size_t *ret_len)
{
    char *copy = strdup(text);

    if (copy == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    *ret_data = copy;
    *ret_len = strlen(text);
    return 0;
}

int cli_read_some(const char *option, const char *spec, bool text_ok,
                  size_t max, char **ret_data, size_t *ret_len)
{
    int status;

    if (strcmp(spec, "-") == 0) {
        status = take_stdin(option);
        return status != 0 ? status
                           : read_fd(option, "standard input", STDIN_FILENO,
                                     max, ret_data, ret_len);
    }
    if (spec[0] == '@') {
        return cli_read_file(option, spec + 1, max, ret_data, ret_len);
    }
    if (text_ok) {
        return copy_text(spec, ret_data, ret_len);
    }
    cli_say("--%s: expected @FILE, or - for standard input", option);
    return CLI_USAGE;
}

int cli_read_arg(const char *option, const char *spec, bool text_ok, size_t max,
                 char **ret_data, size_t *ret_len)
{
    int status = cli_read_some(option, spec, text_ok, max, ret_data, ret_len);

    if (status == 0 && *ret_len > max) {
        cli_say("--%s: longer than the %zu bytes that are allowed", option,
                max);
        free(*ret_data);
        return CLI_USAGE;
    }
    return status;
}
