/* The commands that mend: what to type when a person must decide. */
#include "record/remedy.h"

#include "contract/kind.h"
#include "text/text.h"

#include <stdlib.h>

/* Characters that no shell looks at twice. */
static bool is_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || (c != '\0' && strchr("_./:@%+,-", c));
}

static bool is_printable(unsigned char c)
{
    return c >= ' ' && c <= '~';
}

static bool all(struct idem_slice s, bool (*is)(unsigned char))
{
    const unsigned char *bytes = s.base;
    size_t i;

    for (i = 0; i < s.len; i++) {
        if (!is(bytes[i])) {
            return false;
        }
    }
    return true;
}

static void print_single_quoted(FILE *f, struct idem_slice s)
{
    const char *bytes = s.base;
    size_t i;

    (void)fputc('\'', f);
    for (i = 0; i < s.len; i++) {
        if (bytes[i] == '\'') {
            (void)fputs("'\\''", f);
        } else {
            (void)fputc(bytes[i], f);
        }
    }
    (void)fputc('\'', f);
}

/* $'...' is the only form in which every byte can be typed and read. */
static void print_dollar_quoted(FILE *f, struct idem_slice s)
{
    const unsigned char *bytes = s.base;
    size_t i;

    (void)fputs("$'", f);
    for (i = 0; i < s.len; i++) {
        if (is_printable(bytes[i]) && bytes[i] != '\'' && bytes[i] != '\\') {
            (void)fputc(bytes[i], f);
        } else {
            (void)fprintf(f, "\\%03o", bytes[i]);
        }
    }
    (void)fputc('\'', f);
}

void cli_print_quoted(FILE *f, struct idem_slice s)
{
    if (s.len > 0 && all(s, is_plain)) {
        (void)fwrite(s.base, 1, s.len, f);
    } else if (cli_is_seen(s)) {
        print_single_quoted(f, s);
    } else {
        print_dollar_quoted(f, s);
    }
}

void cli_print_url(FILE *f, const char *url)
{
    char shown[IDEM_STORE_URL_MAX + 1];

    cli_print_quoted(f, idem_str(idem_url_hide(url, shown, sizeof(shown))));
}

/* The scope is said where it is not the one that would be taken anyhow. */
static void print_scope(FILE *f, struct idem_slice scope)
{
    const char *usual = secure_getenv("IDEM_SCOPE");

    if (scope.len > 0 || (usual != NULL && *usual != '\0')) {
        (void)fputs(" --scope=", f);
        cli_print_quoted(f, scope);
    }
}

static bool has_mark(struct idem_slice key)
{
    size_t len = strlen(CLI_ESCAPED);

    return key.len >= len && memcmp(key.base, CLI_ESCAPED, len) == 0;
}

/* No argument can hold a NUL; such a key goes through a file. A key that looks
 * like an option follows "--". */
static void print_key(FILE *f, struct idem_slice key)
{
    const char *bytes = key.base;

    if (key.len > 0 && memchr(bytes, '\0', key.len) != NULL) {
        (void)fputs(" --key-file=FILE", f);
        return;
    }
    (void)fputs(key.len > 0 && bytes[0] == '-' ? " -- " : " ", f);
    if (has_mark(key)) {
        (void)fputs(CLI_ESCAPED, f); /* Or it would be taken for one. */
    }
    cli_print_quoted(f, key);
}

void cli_print_remedy(FILE *f, const char *command, const char *options,
                      const struct idem_record *record, const char *store_url)
{
    (void)fprintf(f, "idem %s", command);
    if (store_url != NULL) {
        (void)fputs(" --store=", f);
        cli_print_url(f, store_url);
    }
    print_scope(f, record->scope);
    (void)fputs(options, f);
    print_key(f, record->key);
}

static void print_decision(FILE *f, const char *command, const char *decision,
                           const struct idem_record *record,
                           const char *store_url)
{
    char options[128];

    (void)snprintf(options, sizeof(options), " --fence %llu%s --reason TEXT",
                   (unsigned long long)record->fence, decision);
    (void)fputs("\n  ", f);
    cli_print_remedy(f, command, options, record, store_url);
}

bool cli_is_http(const struct idem_record *record)
{
    static const char end[] = "/nginx";
    size_t len = sizeof(end) - 1;
    const char *owner = record->owner.base;

    return record->owner.len > len &&
           memcmp(owner + record->owner.len - len, end, len) == 0;
}

void cli_print_resolve(FILE *f, const struct idem_record *record,
                       const char *store_url)
{
    print_decision(f, "resolve",
                   cli_is_http(record)
                       ? " --complete @FILE --http-status N --content-type TYPE"
                       : " --complete @FILE",
                   record, store_url);
    print_decision(f, "resolve", " --release", record, store_url);
}

void cli_print_reopen(FILE *f, const struct idem_record *record,
                      const char *store_url)
{
    print_decision(f, "reopen", "", record, store_url);
}
