/* The lines of an answer's head, its body and its trailer, as libcurl gives them.
 * Nothing is read after a flaw; the body is what came, and no more than it may be;
 * what a 1xx or a trailer says is not what the answer says; and an answer that
 * shows neither its length nor its checksum is never whole.
 */
#include "aws/client/client.h"

#include "fuzz.h"

#include <stdlib.h>

static int clock_of(void *ctx, struct idem_clock_reading *ret_reading)
{
    (void)ctx;
    *ret_reading = (struct idem_clock_reading){.wall_ms = FUZZ_NOW_MS,
                                               .boot_ms = FUZZ_BOOT_MS};
    return 0;
}

/* One line of the input with its end: of the head; after it "+" is body, and the
 * rest a trailer. */
static bool give(struct idem__aws_slot *slot, struct idem_slice line)
{
    struct idem__aws_arrival *arrival = &slot->arrival;
    struct idem__aws_arrival before = *arrival;
    struct idem__aws_request *request = slot->request;
    bool over = arrival->head_over && arrival->final;
    size_t len = request->answer_len;
    /* A copy of its own, so that nothing is read beyond it unseen. */
    char *copy = malloc(line.len);
    size_t used;

    must(copy != NULL);
    memcpy(copy, line.base, line.len);
    if (over && copy[0] == '+') {
        used = idem__aws_on_body(copy, 1, line.len, slot);
        must(used == 0 || (request->answer_len == len + line.len &&
                           memcmp(request->answer + len, copy, line.len) == 0));
    } else {
        used = idem__aws_on_header(copy, 1, line.len, slot);
        if (over) {
            before.head_len = arrival->head_len;
            before.flaw = arrival->flaw;
            must(memcmp(&before, arrival, sizeof(before)) == 0);
        }
    }
    free(copy);
    must(used == line.len || used == 0);
    must((used == 0) == (arrival->flaw != NULL || arrival->no_memory));
    must(request->answer_len <= request->answer_max);
    must(memchr(request->error_type, '\0', sizeof(request->error_type)) !=
         NULL);
    must(memchr(request->request_id, '\0', sizeof(request->request_id)) !=
         NULL);
    return used > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    struct idem__aws_request request = {.answer_max = 1 + take_u8(&tape)};
    struct idem__aws_options options = {.host = {.clock = clock_of}};
    struct idem__learned_clock clock = {.turns = 0};
    struct idem__aws_slot slot = {
        .request = &request,
        .options = &options,
        .clock = &clock,
    };
    struct idem_slice text;
    const char *p;
    bool goes_on = true;

    text = take_rest(&tape);
    p = text.base;
    request.status = 200;
    idem__aws_answer_reset(&slot);
    while (text.len > 0 && goes_on) {
        const char *end = memchr(p, '\n', text.len);
        size_t n = end == NULL ? text.len : (size_t)(end - p) + 1;

        goes_on = give(&slot, idem_bytes(p, n));
        p += n;
        text.len -= n;
    }
    if (goes_on && idem__aws_answer_flaw(&slot) == NULL) {
        must(slot.arrival.has_length || slot.arrival.chunked ||
             slot.arrival.has_crc32);
        must(!slot.arrival.encoded);
    }
    idem__aws_request_finish(&request);
    return 0;
}
