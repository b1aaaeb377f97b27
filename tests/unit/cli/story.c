/* The status line of idem run. */
#include "run/story.h"

#include "test.h"
#include "text.h"

#include <unistd.h>

/* What story_tell() writes about an error of @text, with a NUL. */
static void tell(const char *text, char line[4096])
{
    struct story story;
    int ends[2];
    ssize_t n;

    story_init(&story, idem_str("shop"), idem_str("order-42"));
    story_set_error(&story, text);
    assert_int_equal(pipe(ends), 0);
    story_tell(&story, 69, ends[1], NULL);
    n = read(ends[0], line, 4095);
    assert_true(n > 0);
    line[n] = '\0';
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* An error is told as it is; one that is no text, letter by letter: the line is
 * JSON whatever a path is made of. */
TEST(story, isJsonWhateverAnErrorSays)
{
    char line[4096];

    tell("there is no directory /caf\xc3\xa9: make it first", line);
    assert_non_null(strstr(line, "\"error\":\"there is no directory "
                                 "/caf\xc3\xa9: make it first\""));
    tell("there is no directory /caf\xe9: make it first", line);
    assert_non_null(strstr(line, "\"error\":\"there is no directory "
                                 "/caf\\\\xe9: make it first\""));
    assert_true(cli_is_utf8(idem_str(line)));
}
