/* A key-value file for one host, on LMDB: one writer at a time among all processes,
 * commits that are flushed, and a file that is whole after a crash.
 *
 * A function that returns an int gives 0 or more, or an enum idem_code with its
 * sentence in @error, which may be NULL. */
#ifndef EXAMPLE_STORE_KV_H
#define EXAMPLE_STORE_KV_H

#include <idem.h>

struct kv;

/* A read sees one state until the end, with no later writes in it. */
struct kv_txn {
    struct kv *kv;
    struct MDB_txn *read;
    struct MDB_txn *write; /* NULL: it may only read. */
};

/* A process has a file open once, however often this is called. @path is not
 * kept. With @create false the file must be there. */
int kv_open(const char *path, bool create, struct kv **ret_kv,
            struct idem_error *error);
void kv_close(struct kv *kv);

/* With @write it waits for other writers, without a time limit. */
int kv_begin(struct kv *kv, bool write, struct kv_txn *ret_txn,
             struct idem_error *error);

/* 1, or 0 where there is no @key. The value is valid until kv_end(). */
int kv_get(struct kv_txn *txn, struct idem_slice key,
           struct idem_slice *ret_value, struct idem_error *error);

/* The first key after @after, in the order of their bytes. 1, or 0: the last. */
int kv_next(struct kv_txn *txn, struct idem_slice after,
            struct idem_slice *ret_key, struct idem_slice *ret_value,
            struct idem_error *error);

/* An empty value is none. It is not seen by kv_get() of the same transaction. */
int kv_put(struct kv_txn *txn, struct idem_slice key, struct idem_slice value,
           struct idem_error *error);

/* 0: on the disk. IDEM_EFULL: nothing was done. IDEM_EUNKNOWN: nobody knows. */
int kv_commit(struct kv_txn *txn, struct idem_error *error);

/* Ends a transaction that was begun, or that kv_begin() failed to begin; what was
 * not committed was not done. */
void kv_end(struct kv_txn *txn);

#endif
