/* The first line of a script, as execve(2) and env(1) read it. */
#include "lambda/package.h"

#include <string.h>

/* The next word of @line, which loses it. */
static struct idem_slice next_word(struct idem_slice *line)
{
    const char *p = line->base;
    size_t from = 0;
    size_t to;

    while (from < line->len && (p[from] == ' ' || p[from] == '\t')) {
        from++;
    }
    to = from;
    while (to < line->len && p[to] != ' ' && p[to] != '\t') {
        to++;
    }
    *line = idem_bytes(p + to, line->len - to);
    return idem_bytes(p + from, to - from);
}

static bool is(struct idem_slice word, const char *text)
{
    return word.len == strlen(text) && memcmp(word.base, text, word.len) == 0;
}

static bool begins_with(struct idem_slice word, const char *text)
{
    return word.len > strlen(text) &&
           memcmp(word.base, text, strlen(text)) == 0;
}

/* env's own options, and what it sets for the program. */
static bool is_for_env(struct idem_slice word)
{
    return begins_with(word, "-") || memchr(word.base, '=', word.len) != NULL;
}

struct idem_slice cli_interpreter(const char *data, size_t len)
{
    const char *end;
    struct idem_slice line;
    struct idem_slice word;

    if (len < 2 || memcmp(data, "#!", 2) != 0) {
        return idem_bytes(NULL, 0);
    }
    end = memchr(data, '\n', len);
    line = idem_bytes(data + 2,
                      (size_t)((end != NULL ? end : data + len) - (data + 2)));
    word = next_word(&line);
    if (is(word, "/usr/bin/env") || is(word, "/bin/env")) {
        do {
            word = next_word(&line);
        } while (word.len > 0 && is_for_env(word));
    }
    return word;
}

bool cli_interpreter_is_on_lambda(struct idem_slice interpreter)
{
    static const char *const there[] = {
        "sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash",
    };
    size_t i;

    for (i = 0; i < sizeof(there) / sizeof(there[0]); i++) {
        if (is(interpreter, there[i])) {
            return true;
        }
    }
    return begins_with(interpreter, "/opt/") ||
           begins_with(interpreter, "/var/task/");
}
