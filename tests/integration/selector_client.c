/* Runs selectors that come on standard input: a selector, a NUL, a JSON text, a NUL,
 * and so on. For each pair two lines: what it selects, and the key of that, in
 * hexadecimal; or a letter and the sentence of the refusal. */
#include <idem/key.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a refusal comes from: the selector, the text, or that nothing is there. */
static void refuse(char letter, const struct idem_error *why)
{
    (void)printf("%c %s\n", letter, why->text);
}

static void say_values(struct idem_selector *selector)
{
    struct idem_slice values;
    struct idem_error why = {0};
    int rc = idem_selector_values(selector, &values, &why);

    if (rc == 0) {
        (void)printf("v %.*s\n", (int)values.len, (const char *)values.base);
    } else {
        refuse(rc == IDEM_ENOTFOUND ? 'n' : 'r', &why);
    }
}

static void say_key(struct idem_selector *selector)
{
    struct idem_key_text key;
    struct idem_error why = {0};
    int rc = idem_key_of(selector, &key, &why);
    size_t i;

    if (rc != 0) {
        refuse(rc == IDEM_ENOTFOUND ? 'n' : 'r', &why);
        return;
    }
    (void)printf("k ");
    for (i = 0; i < key.len; i++) {
        (void)printf("%02x", (unsigned char)key.text[i]);
    }
    (void)printf("\n");
}

static void select_once(const char *text, struct idem_slice json)
{
    struct idem_selector *selector = NULL;
    struct idem_error why = {0};
    char letter = 'c';
    int rc = idem_selector_create(text, &selector, &why);

    if (rc == 0) {
        letter = 'r';
        rc = idem_selector_run(selector, json, 0, &why);
    }
    if (rc != 0) {
        refuse(letter, &why);
        refuse(letter, &why);
    } else {
        say_values(selector);
        say_key(selector);
    }
    idem_selector_destroy(selector);
}

int main(void)
{
    char *text = NULL, *json = NULL;
    size_t text_cap = 0, json_cap = 0;
    ssize_t len;

    while (getdelim(&text, &text_cap, '\0', stdin) > 0) {
        len = getdelim(&json, &json_cap, '\0', stdin);
        if (len < 1) {
            return 1;
        }
        select_once(text, idem_bytes(json, (size_t)len - 1));
    }
    free(text);
    free(json);
    return 0;
}
