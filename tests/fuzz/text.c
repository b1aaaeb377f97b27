/* How values read, for people and for shells. What is escaped is UTF-8 without
 * control characters, is not too long, and says no other bytes; what is quoted is,
 * after a shell has read it, what it was; UTF-8 is what Unicode's table of it says;
 * a time that is shown is that time, and a duration that is shown is not more than
 * it is.
 */
#include "fuzz.h"
#include "options/command.h"
#include "options/value.h"
#include "record/verdict.h"
#include "text/error.h"
#include "text/text.h"

#include <idem/setting.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- UTF-8 ---- */

/* By what it decodes to. */
static bool is_utf8(struct idem_slice bytes)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const uint8_t *p = bytes.base;
    size_t i = 0;

    while (i < bytes.len) {
        unsigned more = p[i] < 0x80             ? 0
                        : (p[i] & 0xe0) == 0xc0 ? 1
                        : (p[i] & 0xf0) == 0xe0 ? 2
                        : (p[i] & 0xf8) == 0xf0 ? 3
                                                : 4;
        uint32_t c = more == 0 ? p[i] : p[i] & (0x3fu >> more);
        unsigned k;

        if (more == 4 || more >= bytes.len - i) {
            return false;
        }
        for (k = 1; k <= more; k++) {
            if ((p[i + k] & 0xc0) != 0x80) {
                return false;
            }
            c = c << 6 | (p[i + k] & 0x3f);
        }
        if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
            return false;
        }
        i += more + 1;
    }
    return true;
}

/* ---- Escapes ---- */

static size_t unescape(const char *text, uint8_t *buf)
{
    size_t n = 0;

    while (*text != '\0') {
        unsigned byte = (unsigned char)*text;

        must(byte >= ' ' && byte != 0x7f);
        if (byte == '\\') {
            must(sscanf(text, "\\x%2x", &byte) == 1);
            text += 3;
        }
        buf[n++] = (uint8_t)byte;
        text++;
    }
    return n;
}

static void escape(struct idem_slice bytes, size_t size)
{
    size_t cap = bytes.len * 4 + 1;
    char *whole = malloc(cap);
    char *part = malloc(size);
    uint8_t *back = malloc(cap);
    size_t n;

    must(whole != NULL && part != NULL && back != NULL);
    must(cli_escape(bytes, whole, cap) == whole);
    must(is_utf8(idem_str(whole)));
    n = unescape(whole, back);
    must(same_bytes(idem_bytes(back, n), bytes));

    (void)cli_escape(bytes, part, size);
    n = strlen(part);
    must(n < size && is_utf8(idem_str(part)));
    if (strcmp(part, whole) != 0) {
        must(n >= 3 && strcmp(part + n - 3, "...") == 0);
        must(strncmp(part, whole, n - 3) == 0 && strlen(whole) >= size);
    }
    free(back);
    free(part);
    free(whole);
}

static void print_escaped(struct idem_slice bytes)
{
    size_t cap = bytes.len * 4 + 1;
    char *whole = malloc(cap);
    char *printed = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&printed, &len);

    must(f != NULL && whole != NULL);
    cli_print_escaped(f, bytes);
    must(fclose(f) == 0);
    must(strcmp(printed, cli_escape(bytes, whole, cap)) == 0);
    free(printed);
    free(whole);
}

static void hex(struct idem_slice bytes)
{
    char *text = malloc(2 * bytes.len + 1);
    const uint8_t *p = bytes.base;
    size_t i;

    must(text != NULL);
    cli_hex(bytes, text);
    must(strlen(text) == 2 * bytes.len);
    for (i = 0; i < bytes.len; i++) {
        unsigned byte;

        must(sscanf(text + 2 * i, "%2x", &byte) == 1 && byte == p[i]);
    }
    free(text);
}

/* ---- Quotes ---- */

/* One word as bash reads it: bare, '...', or $'...'. */
static size_t unquote(const char *word, size_t len, uint8_t *buf)
{
    const char *end = word + len;
    size_t n = 0;

    while (word < end) {
        if (*word == '\'') {
            for (word++; *word != '\''; word++) {
                buf[n++] = (uint8_t)*word;
            }
            word++;
        } else if (*word == '$') {
            for (word += 2; *word != '\'';) {
                unsigned byte = (unsigned char)*word;

                if (byte == '\\') {
                    must(sscanf(word, "\\%3o", &byte) == 1);
                    word += 3;
                }
                buf[n++] = (uint8_t)byte;
                word++;
            }
            word++;
        } else if (*word == '\\') {
            buf[n++] = (uint8_t)word[1];
            word += 2;
        } else {
            must(strchr(" \t\n;&|<>()$`\"*?[]#~={}!", *word) == NULL);
            buf[n++] = (uint8_t)*word++;
        }
    }
    must(word == end);
    return n;
}

static void quote(struct idem_slice bytes)
{
    uint8_t *back = malloc(bytes.len * 4 + 16);
    char *quoted = NULL;
    size_t len = 0;
    size_t i;
    FILE *f = open_memstream(&quoted, &len);

    must(f != NULL && back != NULL);
    cli_print_quoted(f, bytes);
    must(fclose(f) == 0);
    must(len > 0); /* Or the word would be lost. */
    for (i = 0; i < len; i++) {
        must((unsigned char)quoted[i] >= ' ' && quoted[i] != 0x7f);
    }
    must(is_utf8(idem_bytes(quoted, len)));
    i = unquote(quoted, len, back);
    must(same_bytes(idem_bytes(back, i), bytes));
    free(quoted);
    free(back);
}

/* ---- Times ---- */

static void show_time(int64_t ms)
{
    struct tm tm = {.tm_isdst = 0};
    char text[32];
    int64_t year;
    int thousandths;
    int end = -1;

    cli_time_text(ms, text);
    if (ms == 0 || ms == IDEM_NEVER) {
        must(strcmp(text, ms == 0 ? "-" : "never") == 0);
        return;
    }
    if (sscanf(text, "%ld-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &year, &tm.tm_mon,
               &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &thousandths,
               &end) == 7) {
        tm.tm_year = (int)(year - 1900);
        tm.tm_mon--;
        must(text[end] == '\0');
        must((int64_t)timegm(&tm) * 1000 + thousandths == ms);
    } else {
        /* Too far away for a calendar. */
        must(sscanf(text, "%ldms%n", &year, &end) == 1 && text[end] == '\0');
        must(year == ms);
    }
}

static void show_duration(int64_t ms)
{
    static const struct cli_command command = {.name = "fuzz"};
    int64_t read = -1;
    struct cli_option option = {.name = "t",
                                .kind = CLI_DURATION,
                                .target = &read,
                                .arg = "TIME",
                                .or_never = true,
                                .max = INT64_MAX};
    char text[32];

    idem_setting_time(ms, text);
    option.min = ms == IDEM_NEVER ? -1 : 0;
    must(cli_set_value(&command, &option, text) == 0);
    must(read <= ms && ms - read <= ms / 10);
}

/* A word is nearest to itself, and a long one is near to none. */
static void offer(const char *word)
{
    struct cli_nearest nearest = {.word = word};

    cli_nearest_offer(&nearest, "retention");
    cli_nearest_offer(&nearest, word);
    must(strlen(word) <= 32 ? nearest.best != NULL && nearest.distance <= 1
                            : nearest.best == NULL);
}

FUZZ_HUSHED

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    size_t size = 4 + take_up_to(&tape, 60);
    int64_t ms = take_ms(&tape);
    struct idem_slice bytes = take_rest(&tape);
    char *text = text_of(bytes);

    escape(bytes, size);
    print_escaped(bytes);
    hex(bytes);
    quote(bytes);
    must(cli_is_utf8(bytes) == is_utf8(bytes));
    show_time(ms);
    show_duration(ms);
    offer(text);
    free(text);
    return 0;
}
