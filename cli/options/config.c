/* Defaults of options from configuration files. */
#include "options/config.h"

#include "options/value.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_FILE "/etc/idem.conf"
#define FILE_MAX ((size_t)64 << 10)

static bool enabled;

/* Options that name an operation, an attempt or a decision, and so are never a
 * default: one operation would have two identities. The input is part of a
 * fingerprint. */
static const char *const forbidden[] = {
    "key",
    "key-file",
    "key-from-args",
    "key-from",
    "scope",
    "fingerprint",
    "fingerprint-from",
    "input",
    "select",
    "token",
    "fence",
    "reason",
    "match",
    "yes",
    "force",
    "strict",
    NULL,
};

/* Options whose default is in the environment, which goes before the files. */
static const struct {
    const char *option;
    const char *variable;
} variables[] = {
    {"store", "IDEM_STORE"},
    {"owner", "IDEM_OWNER"},
    {"who", "IDEM_OWNER"},
    {"journal", "IDEM_JOURNAL"},
};

void cli_config_enable(void)
{
    enabled = true;
}

/* ---- One line -------------------------------------------------------------- */

/* Where we are in a file. */
struct place {
    const char *path;
    int line;
    const char *section; /* NULL: before the first one. */
};

static int refuse(const struct place *at, const char *what, const char *name)
{
    char shown[64];

    cli_say("%s:%d: %s%s%s%s; see: man idem.conf", at->path, at->line, what,
            name != NULL ? " \"" : "",
            name != NULL ? cli_escape(idem_str(name), shown, sizeof(shown))
                         : "",
            name != NULL ? "\"" : "");
    return CLI_CONFIG;
}

static bool is_in(const char *const *list, const char *name)
{
    for (; *list != NULL; list++) {
        if (strcmp(*list, name) == 0) {
            return true;
        }
    }
    return false;
}

static const struct cli_option *find(const struct cli_command *command,
                                     const char *name)
{
    const struct cli_option *o;

    for (o = command->options; o->name != NULL; o++) {
        if (strcmp(o->name, name) == 0) {
            return o;
        }
    }
    return NULL;
}

static bool any_command_has(const char *name)
{
    size_t i;

    for (i = 0; cli_commands[i] != NULL; i++) {
        if (find(cli_commands[i], name) != NULL) {
            return true;
        }
    }
    return false;
}

static bool is_in_environment(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = strcmp(variables[i].option, name) == 0
                                ? secure_getenv(variables[i].variable)
                                : NULL;

        if (value != NULL && *value != '\0') {
            return true;
        }
    }
    return false;
}

static int set_flag(const struct place *at, const struct cli_option *option,
                    const char *value)
{
    static const char *const on[] = {"yes", "true", "on", "1", NULL};
    static const char *const off[] = {"no", "false", "off", "0", NULL};

    if (!is_in(on, value) && !is_in(off, value)) {
        return refuse(at, "is not yes or no:", value);
    }
    *(bool *)option->target = is_in(on, value);
    return 0;
}

static int set(const struct place *at, const struct cli_command *command,
               const struct cli_option *option, const char *value)
{
    if (option->kind == CLI_FLAG) {
        return set_flag(at, option, value);
    }
    if (cli_set_value(command, option, value) != 0) {
        return refuse(at, "the value cannot be used:", value);
    }
    if (option->given != NULL) {
        *option->given = true;
    }
    return 0;
}

static int take_setting(const struct place *at,
                        const struct cli_command *command, const bool *seen,
                        const char *name, const char *value)
{
    bool ours = at->section == NULL || strcmp(at->section, command->name) == 0;
    const struct cli_command *owner =
        at->section == NULL ? NULL : cli_command_find(at->section);
    const struct cli_option *option;

    if (is_in(forbidden, name)) {
        return refuse(at, "a file may not set what names an operation:", name);
    }
    if (owner != NULL ? find(owner, name) == NULL : !any_command_has(name)) {
        return refuse(at, "unknown option", name);
    }
    option = ours ? find(command, name) : NULL;
    if (option == NULL || seen[option - command->options] ||
        is_in_environment(name)) {
        return 0;
    }
    return set(at, command, option, value);
}

static char *trim(char *text)
{
    size_t len;

    text += strspn(text, " \t\r");
    len = strlen(text);
    while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL) {
        text[--len] = '\0';
    }
    return text;
}

/* [SECTION] */
static int take_section(struct place *at, char *line)
{
    size_t len = strlen(line);

    if (line[len - 1] != ']') {
        return refuse(at, "a section is not closed:", line);
    }
    line[len - 1] = '\0';
    at->section = trim(line + 1);
    return cli_command_find(at->section) != NULL
               ? 0
               : refuse(at, "unknown command", at->section);
}

static int take_line(struct place *at, const struct cli_command *command,
                     const bool *seen, char *line)
{
    char *equals;

    line = trim(line);
    if (*line == '\0' || *line == '#' || *line == ';') {
        return 0;
    }
    if (*line == '[') {
        return take_section(at, line);
    }
    equals = strchr(line, '=');
    if (equals == NULL) {
        return refuse(at, "a line is OPTION = VALUE, not", line);
    }
    *equals = '\0';
    return take_setting(at, command, seen, trim(line), trim(equals + 1));
}

int cli_config_apply_text(const struct cli_command *command, const bool *seen,
                          const char *path, char *text)
{
    struct place at = {.path = path};
    int status = 0;

    while (text != NULL && status == 0) {
        char *line = strsep(&text, "\n");

        at.line++;
        status = take_line(&at, command, seen, line);
    }
    return status;
}

/* ---- Files ----------------------------------------------------------------- */

/* True if the file @fd is one to read. A file of another user is not ours to
 * follow: root skips it (sudo keeps $HOME), anybody else is told. */
static int check_file(int fd, const char *path, bool *ret_read)
{
    struct stat st;

    *ret_read = false;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        cli_say("%s: not a regular file", path);
        return CLI_CONFIG;
    }
    if (geteuid() == 0 && st.st_uid != 0) {
        return 0;
    }
    if (st.st_uid != 0 && st.st_uid != geteuid()) {
        cli_say("%s: belongs to another user (uid %u); only root's and your "
                "own are read",
                path, (unsigned)st.st_uid);
        return CLI_CONFIG;
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        cli_say("%s: others may write it; chmod go-w %s", path, path);
        return CLI_CONFIG;
    }
    *ret_read = true;
    return 0;
}

/* The text of @fd with a NUL, which stays as long as the program: options point
 * into it. */
static int read_text(int fd, const char *path, char **ret_text)
{
    char *text = malloc(FILE_MAX + 1);
    ssize_t len = text != NULL ? read(fd, text, FILE_MAX + 1) : -1;

    if (len < 0 || (size_t)len > FILE_MAX ||
        memchr(text, '\0', (size_t)len) != NULL) {
        cli_say("%s: cannot be read: %s", path,
                len < 0 ? strerror(errno)
                        : "it is too long, or has a NUL in it");
        free(text);
        return CLI_CONFIG;
    }
    text[len] = '\0';
    *ret_text = text;
    return 0;
}

/* A file that is not there is none; one that cannot be opened is an error: what
 * it would have said is unknown. */
static int load(const char *path, char **ret_text)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is_read;
    int status;

    *ret_text = NULL;
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return 0;
    }
    if (fd < 0) {
        cli_say("%s: cannot be opened: %s", path, strerror(errno));
        return CLI_CONFIG;
    }
    status = check_file(fd, path, &is_read);
    if (status == 0 && is_read) {
        status = read_text(fd, path, ret_text);
    }
    (void)close(fd);
    return status;
}

static int apply_file(const struct cli_command *command, const bool *seen,
                      const char *path)
{
    static char *texts[2]; /* Kept: what was set points into them. */
    char **text = texts[0] == NULL ? &texts[0] : &texts[1];
    int status = load(path, text);

    return status != 0 || *text == NULL
               ? status
               : cli_config_apply_text(command, seen, path, *text);
}

static bool user_file(char path[PATH_MAX])
{
    const char *config = secure_getenv("XDG_CONFIG_HOME");
    const char *home = secure_getenv("HOME");
    int len = -1;

    if (config != NULL && *config == '/') {
        len = snprintf(path, PATH_MAX, "%s/idem/idem.conf", config);
    } else if (home != NULL && *home == '/') {
        len = snprintf(path, PATH_MAX, "%s/.config/idem/idem.conf", home);
    }
    return len > 0 && len < PATH_MAX;
}

int cli_config_apply(const struct cli_command *command, const bool *seen)
{
    static char path[PATH_MAX];
    int status;

    if (!enabled) {
        return 0;
    }
    status = apply_file(command, seen, SYSTEM_FILE);
    return status == 0 && user_file(path) ? apply_file(command, seen, path)
                                          : status;
}
