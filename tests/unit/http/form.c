/* Tests of src/http/form.c. */
#include <idem/form.h>
#include <idem/http.h>

#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define FRAMES IDEM_FORM_FRAMES_TYPE
#define ERROR IDEM_FORM_ERROR_TYPE
#define BYTES IDEM_FORM_BYTES_TYPE
#define OUT "\1\0\0\0\2ab"

static struct idem_form read_form(const char *type, const char *meta,
                                  struct idem_slice bytes, bool not_kept)
{
    struct idem_result result = {.bytes = bytes,
                                 .content_type = idem_str(type),
                                 .meta = idem_str(meta),
                                 .not_kept = not_kept};
    struct idem_form form;

    idem_form_read(&result, &form);
    return form;
}

/* The form is what content type and metadata state; a head of HTTP goes first, and what
 * does not keep to its form is damaged. */
TEST(form, isWhatTypeAndMetadataState)
{
    static const struct {
        const char *type;
        const char *meta;
        struct idem_slice bytes;
        enum idem_form_kind kind;
        int exit_status;
        int http_status;
    } rows[] = {
        {"", "", {"", 0}, IDEM_FORM_NOTHING, 0, 200},
        {"text/plain", "", {"", 0}, IDEM_FORM_NOTHING, 0, 200},
        {"", "exit 0\n", {"", 0}, IDEM_FORM_NOTHING, 0, 200},
        {"", "", {"ab", 2}, IDEM_FORM_BYTES, 0, 200},
        {BYTES, "exit 0\n", {"ab", 2}, IDEM_FORM_BYTES, 0, 200},
        {"text/html", "their own", {"ab", 2}, IDEM_FORM_BYTES, 0, 200},
        {"application/json", "", {"{}", 2}, IDEM_FORM_JSON, 0, 200},
        {"Application/JSON ; charset=x", "", {"{", 1}, IDEM_FORM_JSON, 0, 200},
        {"application/geo+json", "", {"{}", 2}, IDEM_FORM_JSON, 0, 200},
        {"application/jsonp", "", {"{}", 2}, IDEM_FORM_BYTES, 0, 200},
        {FRAMES, "exit 0\n", {OUT, 7}, IDEM_FORM_OUTPUT, 0, 200},
        {FRAMES, "exit 0\n", {"", 0}, IDEM_FORM_NOTHING, 0, 200},
        {FRAMES, "exit 3\n", {OUT, 7}, IDEM_FORM_FAILURE, 3, 200},
        {BYTES, "signal 9\n", {"", 0}, IDEM_FORM_FAILURE, 137, 200},
        {BYTES, "exit 255\n", {"", 0}, IDEM_FORM_FAILURE, 255, 200},
        /* Named complete: no failure, and the status stays. */
        {FRAMES, "exit 3 complete\n", {OUT, 7}, IDEM_FORM_OUTPUT, 3, 200},
        {BYTES, "exit 255 complete\n", {"ab", 2}, IDEM_FORM_BYTES, 255, 200},
        {"", "exit 1 complete\n", {"", 0}, IDEM_FORM_NOTHING, 1, 200},
        {"", "exit 1 complete", {"", 0}, IDEM_FORM_NOTHING, 0, 200},
        {"", "exit 1 completed\n", {"", 0}, IDEM_FORM_NOTHING, 0, 200},
        {"",
         "HTTP 404 complete\nETag: x\n",
         {"ab", 2},
         IDEM_FORM_HTTP,
         IDEM_FORM_EXIT_HTTP,
         404},
        {"", "HTTP 404 complete", {"ab", 2}, IDEM_FORM_DAMAGED, 0, 200},
        /* No process ends so: somebody else's metadata. */
        {BYTES, "exit 256\n", {"ab", 2}, IDEM_FORM_BYTES, 0, 200},
        {BYTES, "signal 128\n", {"ab", 2}, IDEM_FORM_BYTES, 0, 200},
        {"application/json", "exit 1\n", {"{}", 2}, IDEM_FORM_FAILURE, 1, 200},
        {"", "HTTP 201\n", {"", 0}, IDEM_FORM_HTTP, 0, 201},
        {"text/html",
         "HTTP 404\nETag: x\n",
         {"ab", 2},
         IDEM_FORM_HTTP,
         IDEM_FORM_EXIT_HTTP,
         404},
        {ERROR, "", {"{}", 2}, IDEM_FORM_ERROR, IDEM_FORM_EXIT_ERROR, 200},
        /* Content types that lie: a server can send any. */
        {FRAMES, "HTTP 200\n", {OUT, 7}, IDEM_FORM_HTTP, 0, 200},
        {FRAMES, "HTTP 200\n", {"ab", 2}, IDEM_FORM_HTTP, 0, 200},
        {ERROR, "HTTP 200\n", {"{}", 2}, IDEM_FORM_HTTP, 0, 200},
        {FRAMES, "exit 0\n", {"ab", 2}, IDEM_FORM_DAMAGED, 0, 200},
        {FRAMES, "", {"{}", 2}, IDEM_FORM_DAMAGED, 0, 200},
        {FRAMES, "exit 3\n", {OUT, 6}, IDEM_FORM_DAMAGED, 3, 200},
        {"APPLICATION/VND.IDEM.OUTPUT",
         "",
         {"ab", 2},
         IDEM_FORM_DAMAGED,
         0,
         200},
        /* Cut off in the length, in the bytes, in the next frame. */
        {FRAMES, "exit 0\n", {OUT, 3}, IDEM_FORM_DAMAGED, 0, 200},
        {FRAMES, "exit 0\n", {OUT, 6}, IDEM_FORM_DAMAGED, 0, 200},
        {FRAMES, "exit 0\n", {OUT "\2\0\0", 10}, IDEM_FORM_DAMAGED, 0, 200},
        {"", "HTTP 99\n", {"ab", 2}, IDEM_FORM_DAMAGED, 0, 200},
        {"", "HTTP 200", {"ab", 2}, IDEM_FORM_DAMAGED, 0, 200},
        {"", "HTTP 200\nETag x\n", {"ab", 2}, IDEM_FORM_DAMAGED, 0, 200},
        {"a\nb", "HTTP 200\n", {"ab", 2}, IDEM_FORM_DAMAGED, 0, 200},
    };
    size_t i;

    for (i = 0; i < COUNT(rows); i++) {
        struct idem_form form =
            read_form(rows[i].type, rows[i].meta, rows[i].bytes, false);

        if (form.kind != rows[i].kind ||
            form.exit_status != rows[i].exit_status ||
            form.http_status != rows[i].http_status) {
            fail_with("row %zu is %d, exit %d, HTTP %d", i, (int)form.kind,
                      form.exit_status, form.http_status);
        }
    }
}

/* A result that was not kept says how it ended all the same. */
TEST(form, isNotKeptWhateverItWas)
{
    struct idem_slice none = {NULL, 0};
    struct idem_form form = read_form(FRAMES, "exit 3\n", none, true);

    assert_int_equal(form.kind, IDEM_FORM_NOT_KEPT);
    assert_int_equal(form.exit_status, 3);
    form = read_form("", "HTTP 500\n", none, true);
    assert_int_equal(form.kind, IDEM_FORM_NOT_KEPT);
    assert_int_equal(form.http_status, 500);
}

/* Nothing of what is damaged comes out; a whole one comes in its pieces. */
TEST(form, givesPiecesOfWhatIsWhole)
{
    struct idem_form form =
        read_form(FRAMES, "", idem_bytes(OUT "\2\0\0\0\1!", 13), false);
    struct idem_slice rest = form.bytes;
    struct idem_slice piece;
    enum idem_stream stream;

    assert_true(idem_form_next(&form, &rest, &stream, &piece));
    assert_int_equal(stream, IDEM_STREAM_STDOUT);
    assert_text(piece, "ab");
    assert_true(idem_form_next(&form, &rest, &stream, &piece));
    assert_int_equal(stream, IDEM_STREAM_STDERR);
    assert_text(piece, "!");
    assert_false(idem_form_next(&form, &rest, &stream, &piece));

    form = read_form(FRAMES, "", idem_bytes(OUT "\2\0\0\0\3!", 13), false);
    rest = form.bytes;
    assert_false(idem_form_next(&form, &rest, &stream, &piece));

    form = read_form("text/plain", "", idem_str("receipt 7"), false);
    rest = form.bytes;
    assert_true(idem_form_next(&form, &rest, &stream, &piece));
    assert_text(piece, "receipt 7");
    assert_false(idem_form_next(&form, &rest, &stream, &piece));

    /* A body is one piece, whatever its server called it. */
    form = read_form(FRAMES, "HTTP 200\n", idem_bytes(OUT, 7), false);
    rest = form.bytes;
    assert_true(idem_form_next(&form, &rest, &stream, &piece));
    assert_int_equal(piece.len, 7);
}

/* Each row: content type, metadata, bytes; what a body is sent as, and whether nobody
 * had said it. */
TEST(form, hasTheContentTypeThatWasSaid)
{
    static const struct {
        const char *type;
        const char *meta;
        struct idem_slice bytes;
        const char *want;
        bool plain;
    } rows[] = {
        {"", "", {"caf\xc3\xa9", 5}, "text/plain; charset=utf-8", true},
        {"", "", {"\xff", 1}, BYTES, true},
        {"", "", {"", 0}, "", true},
        {BYTES, "exit 0\n", {"ab", 2}, "text/plain; charset=utf-8", true},
        {BYTES, "", {"ab", 2}, BYTES, false},
        {FRAMES,
         "",
         {OUT "\2\0\0\0\1\xff", 13},
         "text/plain; charset=utf-8",
         true},
        {"text/html", "exit 0\n", {"ab", 2}, "text/html", false},
        {"a\r\nSet-Cookie: b",
         "",
         {"ab", 2},
         "text/plain; charset=utf-8",
         true},
        {"", "HTTP 200\n", {"ab", 2}, "", false},
        {FRAMES, "HTTP 200\n", {"ab", 2}, FRAMES, false},
    };

    EACH(row, rows) {
        struct idem_form form =
            read_form(row->type, row->meta, row->bytes, false);

        assert_text(idem_form_content_type(&form), row->want);
        assert_int_equal(idem_form_is_plain(&form), row->plain);
    }
}

/* ---- The page ---------------------------------------------------------- */

static const char *const words[] = {
    [IDEM_WAY_PRINT] = "printed",
    [IDEM_WAY_COMPLAIN] = "standard error",
    [IDEM_WAY_VALUE] = "JSON value",
    [IDEM_WAY_ANSWER] = "answer",
    [IDEM_WAY_RESPONSE] = "response object",
    [IDEM_WAY_ERROR] = "function error",
    [IDEM_WAY_FAILED] = "409 `failed`",
    [IDEM_WAY_NOT_KEPT] = "not kept",
    [IDEM_WAY_CORRUPT] = "corrupt",
};

static const char *const kinds[] = {
    [IDEM_FORM_NOTHING] = "nothing",
    [IDEM_FORM_BYTES] = "bytes",
    [IDEM_FORM_JSON] = "JSON",
    [IDEM_FORM_OUTPUT] = "two streams",
    [IDEM_FORM_FAILURE] = "a command that failed",
    [IDEM_FORM_HTTP] = "an HTTP answer",
    [IDEM_FORM_ERROR] = "a Lambda error",
    [IDEM_FORM_NOT_KEPT] = "not kept",
    [IDEM_FORM_DAMAGED] = "damaged",
};

static char *read_page(void)
{
    FILE *f = fopen(FORMS_PAGE, "re");
    char *text = calloc(1, 65536);

    assert_non_null(f);
    assert_non_null(text);
    assert_true(fread(text, 1, 65535, f) > 0);
    (void)fclose(f);
    return text;
}

/* The table of docs/forms.md is the one in the source, row by row. */
TEST(form, isReplayedAsThePageSays)
{
    char *page = read_page();
    char row[256];
    int kind;

    for (kind = IDEM_FORM_NOTHING; kind <= IDEM_FORM_DAMAGED; kind++) {
        int len = snprintf(row, sizeof(row), "\n| %s |", kinds[kind]);
        int front;

        for (front = IDEM_FRONT_RUN; front <= IDEM_FRONT_GATEWAY; front++) {
            len += snprintf(row + len, sizeof(row) - (size_t)len, " %s |",
                            words[idem_form_way((enum idem_form_kind)kind,
                                                (enum idem_front)front)]);
        }
        (void)snprintf(row + len, sizeof(row) - (size_t)len, "\n");
        if (strstr(page, row) == NULL) {
            fail_with("docs/forms.md lacks the row%s", row);
        }
    }
    free(page);
}
