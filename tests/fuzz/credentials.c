/* Where credentials are read from. The first byte of the input says what the rest
 * is:
 *
 * - a shared file of AWS. It is refused at a line of its own, or it can be written
 *   again from what was read, and says the same then; a setting that is looked up
 *   is the last one of its name.
 * - a time. It is read as a calendar reads it.
 * - what an endpoint or a program printed, or STS, in XML. The keys that it has can stand in a
 *   header line.
 */
#include "aws/client/settings.h"
#include "aws/client/clock.h"
#include "aws/client/source.h"
#include "base/bytes.h"
#include "fuzz.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- Files ------------------------------------------------------------- */

static bool lies_in(struct idem_slice part, struct idem_slice text)
{
    const char *p = part.base;
    const char *from = text.base;

    return part.len == 0 || (p >= from && p + part.len <= from + text.len);
}

/* The line that says the same and nothing else. */
static void write_line(struct idem__buffer *out,
                       const struct idem__aws_ini_line *line)
{
    bool section = line->kind == IDEM__AWS_INI_SECTION;
    bool more = line->kind == IDEM__AWS_INI_MORE;

    idem__buffer_str(out, section                                      ? "["
                          : more || line->kind == IDEM__AWS_INI_NESTED ? "\t"
                                                                       : "");
    if (!more) {
        idem__buffer_add(out, line->name.base, line->name.len);
        idem__buffer_str(out, section ? "]" : "=");
    }
    if (!section && line->value.len > 0) {
        idem__buffer_add(out, line->value.base, line->value.len);
    }
    idem__buffer_str(out, "\n");
}

/* 0, and the lines written anew; or the code. */
static int rewrite(struct idem_slice text, struct idem__buffer *out)
{
    struct idem__aws_ini_line line;
    struct idem__aws_ini ini;
    const char *flaw = NULL;
    unsigned before = 0;
    int rc;

    idem__aws_ini_begin(&ini, text);
    while ((rc = idem__aws_ini_next(&ini, &line, &flaw)) == 1) {
        must(ini.number > before);
        must(line.kind == IDEM__AWS_INI_MORE || lies_in(line.name, text));
        must(line.kind == IDEM__AWS_INI_SECTION || lies_in(line.value, text));
        before = ini.number;
        write_line(out, &line);
    }
    must(rc == 0 ||
         (rc == IDEM_ECONFIG && flaw != NULL && ini.number > before));
    return rc;
}

/* The last setting "x" of a section [a], by another way. */
static void look_up(struct idem_slice text)
{
    struct idem_slice value = {NULL, 0};
    struct idem_slice last = {NULL, 0};
    struct idem__aws_ini_line line;
    struct idem__aws_ini ini;
    const char *flaw;
    bool here = false;
    int rc = idem__aws_ini_find(text, "", idem_str("a"), NULL, "x", &value);

    if (rc == IDEM_ECONFIG) {
        return;
    }
    idem__aws_ini_begin(&ini, text);
    while (idem__aws_ini_next(&ini, &line, &flaw) == 1) {
        if (line.kind == IDEM__AWS_INI_SECTION) {
            here = same_bytes(line.name, idem_str("a")) ||
                   same_bytes(line.name, idem_str("\"a\""));
        } else if (line.kind == IDEM__AWS_INI_SETTING && here &&
                   (same_bytes(line.name, idem_str("x")) ||
                    same_bytes(line.name, idem_str("X")))) {
            last = line.value;
        }
    }
    must(rc == (last.len > 0));
    must(rc == 0 || same_bytes(value, last));
}

static void read_file(struct idem_slice input)
{
    struct idem__buffer first = {.base = NULL};
    struct idem__buffer second = {.base = NULL};
    char *copy = text_of(input);
    struct idem_slice text = idem_bytes(copy, input.len);

    if (rewrite(text, &first) == 0) {
        look_up(text);
        must(rewrite(idem__buffer_slice(&first), &second) == 0);
        must(same_bytes(idem__buffer_slice(&first),
                        idem__buffer_slice(&second)));
    }
    must(!first.failed && !second.failed);
    idem__buffer_free(&first);
    idem__buffer_free(&second);
    free(copy);
}

/* ---- Times ------------------------------------------------------------- */

static void read_time(struct idem_slice input)
{
    char *copy = text_of(input);
    int64_t ms = -1;

    if (idem__aws_time_parse(input, &ms)) {
        struct tm tm = {.tm_isdst = 0};
        char *rest = strptime(copy, "%Y-%m-%d", &tm);
        char zone[8];
        int hours = 0, minutes = 0, scale = 100;

        must(rest != NULL && strchr("Tt ", *rest) != NULL);
        rest = strptime(rest + 1, "%H:%M:%S", &tm);
        must(rest != NULL);
        if (*rest == '.') {
            for (rest++; isdigit((unsigned char)*rest); rest++, scale /= 10) {
                ms -= (*rest - '0') * scale;
            }
        }
        (void)snprintf(zone, sizeof(zone), "%s", rest);
        if (zone[0] != 'Z' && zone[0] != 'z') {
            must(sscanf(zone + 1, "%2d%*[:]%2d", &hours, &minutes) == 2 ||
                 sscanf(zone + 1, "%2d%2d", &hours, &minutes) == 2);
        }
        minutes += 60 * hours;
        must(ms == ((int64_t)timegm(&tm) -
                    (zone[0] == '-' ? -60 : 60) * (int64_t)minutes) *
                       1000);
    } else {
        must(ms == -1);
    }
    free(copy);
}

/* ---- Answers ----------------------------------------------------------- */

static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~') {
            return false;
        }
    }
    return true;
}

static void check_keys(int rc, const struct idem__aws_credentials *keys,
                       const struct idem_error *error)
{
    must(rc == 0 || rc == IDEM_ECONFIG);
    must(rc == 0 || error->text[0] != '\0');
    if (rc == 0) {
        must(keys->access_key[0] != '\0' && keys->secret_key[0] != '\0');
        must(is_printable(keys->access_key) && is_printable(keys->secret_key) &&
             is_printable(keys->token));
    }
}

static void read_keys(struct idem_slice input, bool xml)
{
    static struct idem__aws_credentials keys;
    struct idem_error error = {.code = 0};
    char *copy = text_of(input);

    memset(&keys, 0, sizeof(keys));
    input.base = copy;
    check_keys(xml ? idem__aws_read_role(input, &keys, &error)
                   : idem__aws_read_keys(input, "Token", "a test", &keys,
                                         &error),
               &keys, &error);
    must(!xml || error.code != 0 || keys.token[0] != '\0');
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);

    switch (take_up_to(&tape, 3)) {
    case 0:
        read_file(take_rest(&tape));
        break;
    case 1:
        read_time(take_rest(&tape));
        break;
    case 2:
        read_keys(take_rest(&tape), /* xml= */ false);
        break;
    default:
        read_keys(take_rest(&tape), /* xml= */ true);
        break;
    }
    return 0;
}
