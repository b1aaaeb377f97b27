/* The stored form of records. The first byte of the input says what the rest is:
 *
 * - bytes that may be a record. One that is accepted is within every limit that
 *   the library relies on, points into what it was read from, and is written back
 *   byte for byte, but for what no longer counts in the fields that are bound to
 *   others: then what is written back is the form that stays. The length of the fields and the checksum are put right first
 *   where the input asks for it, or nothing would ever get past them.
 * - a record to be made. It is read back with all of its members; it never fits
 *   into less; and no byte of it can be changed without being found out.
 */
#include "base/bytes.h"
#include "base/hash.h"
#include "contract/store.h"
#include "core/record.h"
#include "fuzz.h"

#include <stdlib.h>

enum {
    SUM_LEN = 16,
    AT_FIELDS_LEN = 20,
    AT_FIELDS = 184
};

static const uint8_t id[IDEM_ID_LEN] = "the id of no key in particular.";

static void put_sum(uint8_t *head, size_t len)
{
    struct idem_slice parts[] = {{id, sizeof(id)}, {head, len}};
    uint8_t digest[IDEM__SHA256_LEN];

    must(idem__sha256(parts, 2, digest) == 0);
    memcpy(head + len, digest, SUM_LEN);
}

static void points_into(struct idem_slice part, struct idem_slice whole)
{
    const uint8_t *from = whole.base;
    const uint8_t *p = part.base;

    must(part.len == 0 || (p >= from && p + part.len <= from + whole.len));
}

/* A head that we wrote ourselves has one form. */
static void stays(const uint8_t *head, size_t len)
{
    uint8_t *again = malloc(len);
    struct idem_record r;
    size_t again_len = 0;

    must(again != NULL);
    must(idem__record_decode(id, idem_bytes(head, len), &r, NULL) == 0);
    must(idem__record_encode(&r, again, len, &again_len) == 0);
    must(same_bytes(idem_bytes(again, again_len), idem_bytes(head, len)));
    free(again);
}

static void write_back(const struct idem_record *r, struct idem_slice head)
{
    uint8_t *back = malloc(head.len);
    size_t len = 0;
    size_t i;

    must(back != NULL);
    must(idem__record_fault(r) == NULL);
    points_into(r->owner, head);
    points_into(r->fingerprint, head);
    points_into(r->result.content_type, head);
    points_into(r->result.meta, head);
    points_into(r->error, head);
    points_into(r->note, head);
    points_into(r->traceparent, head);
    points_into(r->unknown_fields, head);
    for (i = 0; i < r->history_len; i++) {
        points_into(r->history[i].owner, head);
    }
    must(idem__record_encode(r, back, head.len, &len) == 0);
    if (!same_bytes(idem_bytes(back, len), head)) {
        stays(back, len);
    }
    free(back);
}

static void read_bytes(struct tape *tape, unsigned how)
{
    struct idem_slice body = take_rest(tape);
    struct idem_error error = {0};
    struct idem_record r;
    size_t len = body.len + ((how & 1) != 0 ? SUM_LEN : 0);
    uint8_t *head = malloc(len + 1); /* Never too much for ASan to see. */
    int rc;

    must(head != NULL);
    if (body.len > 0) {
        memcpy(head, body.base, body.len);
    }
    if ((how & 2) != 0 && body.len >= AT_FIELDS) {
        memcpy(head, "IDR1\1", 5);
        idem__put_u32(head + AT_FIELDS_LEN, (uint32_t)(body.len - AT_FIELDS));
    }
    if ((how & 1) != 0) {
        put_sum(head, body.len);
    }
    memset(&r, 0x5a, sizeof(r));
    rc = idem__record_decode(id, idem_bytes(head, len), &r, &error);
    must(rc == 0 || rc == IDEM_ECORRUPT);
    must(rc == error.code && (rc == 0) == (error.text[0] == '\0'));
    if (rc == 0) {
        write_back(&r, idem_bytes(head, len));
    } else {
        must(r.fence == 0x5a5a5a5a5a5a5a5a); /* Untouched. */
    }
    free(head);
}

/* Whatever is changed, however little: it is found out. */
static void change(struct tape *tape, const struct idem_record *r,
                   uint8_t *head, size_t len)
{
    struct idem_record read;
    size_t at = take_u64(tape) % len;
    uint8_t bits = take_u8(tape);
    uint8_t other[IDEM_ID_LEN];

    head[at] ^= bits != 0 ? bits : 1;
    must(idem__record_decode(r->id, idem_bytes(head, len), &read, NULL) ==
         IDEM_ECORRUPT);
    head[at] ^= bits != 0 ? bits : 1;
    must(idem__record_decode(r->id, idem_bytes(head, at), &read, NULL) ==
         IDEM_ECORRUPT);
    memcpy(other, r->id, sizeof(other));
    other[at % sizeof(other)] ^= bits != 0 ? bits : 1;
    must(idem__record_decode(other, idem_bytes(head, len), &read, NULL) ==
         IDEM_ECORRUPT);
}

static void make_record(struct tape *tape)
{
    static uint8_t big[IDEM_HEAD_MAX];
    struct idem_record made;
    struct idem_record read;
    uint8_t *head;
    size_t len;
    size_t less;

    take_record(tape, &made);
    must(idem__record_encode(&made, big, sizeof(big), &len) == 0);
    head = malloc(len);
    must(head != NULL);
    must(idem__record_encode(&made, head, len, &less) == 0 && less == len);
    must(memcmp(head, big, len) == 0);
    must(idem__record_encode(&made, big, len - 1, &less) == IDEM_EINVALID);

    must(idem__record_decode(made.id, idem_bytes(head, len), &read, NULL) == 0);
    read.scope = made.scope;
    read.key = made.key;
    read.result.bytes = made.result.bytes;
    read.input = made.input;
    must(same_record(&made, &read));
    must(idem__record_check_body(made.result.bytes, read.result_len,
                                 read.result_digest) == 0);
    must(idem__record_check_body(made.input, read.input_len,
                                 read.input_digest) == 0);
    must(idem__record_check_body(made.input, read.input_len + 1,
                                 read.input_digest) == IDEM_ECORRUPT);
    change(tape, &made, head, len);
    free(head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tape tape = tape_of(data, len);
    unsigned how = take_u8(&tape);

    if ((how & 4) != 0) {
        make_record(&tape);
    } else {
        read_bytes(&tape, how & 3);
    }
    return 0;
}
