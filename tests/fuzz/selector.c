/* Whatever the selector and the text are: a run ends within its steps, what comes of
 * it is canonical JSON, and the key that is made of it is one. A run over the same
 * text gives the same, and canonical text stays what it is.
 */
#include "fuzz.h"
#include "key/selector.h"

#include <idem/key.h>
#include <stdlib.h>
#include <string.h>

/* True: @selector has values of @json, which are in @ret_values. */
static bool run(struct idem_selector *selector, struct idem_slice json,
                struct idem_slice *ret_values, struct idem_error *why)
{
    int rc = idem_selector_run(selector, json, 0, why);

    must(rc == 0 || rc == IDEM_EINVALID);
    must(selector->steps <= IDEM__SELECTOR_STEPS_MAX);
    must(idem__tree_len(&selector->tree) <= IDEM__SELECTOR_NODES_MAX + 2);
    must(selector->tree.text.len <= 2 * (size_t)IDEM__SELECTOR_TEXT_MAX);
    if (rc != 0) {
        must(why->text[0] != '\0');
        return false;
    }
    rc = idem_selector_values(selector, ret_values, why);
    must(rc == 0 || rc == IDEM_EINVALID || rc == IDEM_ENOTFOUND);
    return rc == 0;
}

/* The values are one array, and "." has no other canonical text for it. */
static void check_values(struct idem_selector *all, struct idem_slice values)
{
    struct idem_slice again;
    struct idem_error error;
    const char *p;

    /* Lists in lists may be deeper, and one value may be there many times. */
    if (!run(all, values, &again, &error)) {
        must(strstr(error.text, "levels") != NULL ||
             strstr(error.text, "too many values") != NULL ||
             strstr(error.text, "bytes") != NULL);
        return;
    }
    p = again.base;
    must(again.len == values.len + 2 && p[0] == '[');
    must(same_bytes(idem_bytes(p + 1, values.len), values));
}

static void check_key(struct idem_selector *selector)
{
    struct idem_key_text key;
    struct idem_error why;
    int rc = idem_key_of(selector, &key, &why);

    must(rc == 0 || rc == IDEM_EINVALID || rc == IDEM_ENOTFOUND);
    if (rc == 0) {
        must(key.len > 0 && key.len <= IDEM_KEY_MAX);
        must(strlen(key.text) == key.len);
        must(key.text[0] != '=' ||
             (key.len > 1 && strchr("=[#", key.text[1]) != NULL));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const uint8_t *end = len == 0 ? NULL : memchr(data, '\0', len);
    struct idem_selector *selector = NULL, *all = NULL;
    struct idem_slice values, json;
    struct idem_error why;
    char *kept;
    int rc;

    if (end == NULL) {
        return 0;
    }
    json = idem_bytes(end + 1, len - (size_t)(end + 1 - data));
    rc = idem_selector_create((const char *)data, &selector, &why);
    must(rc == 0 || rc == IDEM_EINVALID);
    if (rc != 0) {
        must(why.text[0] != '\0');
        return 0;
    }
    must(idem_selector_create(".", &all, &why) == 0);
    if (run(selector, json, &values, &why)) {
        kept = malloc(values.len + 1);
        must(kept != NULL);
        memcpy(kept, values.base, values.len);
        values.base = kept;
        check_values(all, values);
        check_key(selector);
        free(kept);
    }
    idem_selector_destroy(selector);
    idem_selector_destroy(all);
    return 0;
}
