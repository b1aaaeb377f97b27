
/*
 * A body that is held until its outcome is recorded: a little of it in memory,
 * more in a file.
 */


#include "ngx_http_idempotency.h"

#include <sys/mman.h>


#define NGX_HTTP_IDEM_FIRST  4096
#define NGX_HTTP_IDEM_PIECE  65536


static ngx_int_t ngx_http_idem_body_grow(ngx_http_request_t *r,
    ngx_http_idem_body_t *body, size_t size);
static ngx_int_t ngx_http_idem_body_write(ngx_http_request_t *r,
    ngx_http_idem_body_t *body, u_char *data, size_t len);


ngx_int_t
ngx_http_idem_body_add(ngx_http_request_t *r, ngx_http_idem_body_t *body,
    u_char *data, size_t len, off_t expected)
{
    size_t      size, used;
    ngx_buf_t  *b;

    if (len == 0) {
        return NGX_OK;
    }

    if (body->file == NULL && body->len + (off_t) len <= NGX_HTTP_IDEM_MEMORY
        && expected <= NGX_HTTP_IDEM_MEMORY)
    {
        b = body->memory;

        if (b == NULL || (size_t) (b->end - b->last) < len) {
            used = (size_t) body->len;
            size = ngx_max((size_t) ngx_max(expected, 0), used + len);
            size = ngx_max(size, 2 * used);

            if (expected < 0) {
                size = ngx_max(size, NGX_HTTP_IDEM_FIRST);
            }

            if (ngx_http_idem_body_grow(r, body, size) != NGX_OK) {
                return NGX_ERROR;
            }

            b = body->memory;
        }

        b->last = ngx_cpymem(b->last, data, len);
        body->len += len;
        return NGX_OK;
    }

    b = body->memory;

    if (b != NULL) {
        if (ngx_http_idem_body_write(r, body, b->pos, b->last - b->pos)
            != NGX_OK)
        {
            body->file = NULL;
            return NGX_ERROR;
        }

        (void) ngx_pfree(r->pool, b->start);
        body->memory = NULL;
    }

    if (ngx_http_idem_body_write(r, body, data, len) != NGX_OK) {
        return NGX_ERROR;
    }

    body->len += len;
    return NGX_OK;
}


/* A whole body whose memory outlives the request. */

ngx_int_t
ngx_http_idem_body_borrow(ngx_http_request_t *r, ngx_http_idem_body_t *body,
    struct idem_slice bytes)
{
    ngx_buf_t  *b;

    if (bytes.len == 0) {
        return NGX_OK;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->pos = (u_char *) bytes.base;
    b->last = b->pos + bytes.len;
    b->start = b->pos;
    b->end = b->last;
    b->memory = 1;

    body->memory = b;
    body->len = bytes.len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_idem_body_grow(ngx_http_request_t *r, ngx_http_idem_body_t *body,
    size_t size)
{
    ngx_buf_t  *b;

    b = ngx_create_temp_buf(r->pool, size);
    if (b == NULL) {
        return NGX_ERROR;
    }

    if (body->memory != NULL) {
        b->last = ngx_cpymem(b->last, body->memory->pos,
                             body->memory->last - body->memory->pos);
        (void) ngx_pfree(r->pool, body->memory->start);
    }

    body->memory = b;
    return NGX_OK;
}


static ngx_int_t
ngx_http_idem_body_write(ngx_http_request_t *r, ngx_http_idem_body_t *body,
    u_char *data, size_t len)
{
    ssize_t                    n;
    ngx_buf_t                  b;
    ngx_chain_t                cl;
    ngx_temp_file_t           *tf;
    ngx_http_core_loc_conf_t  *clcf;

    if (len == 0) {
        return NGX_OK;
    }

    tf = body->file;

    if (tf == NULL) {
        tf = ngx_pcalloc(r->pool, sizeof(ngx_temp_file_t));
        if (tf == NULL) {
            return NGX_ERROR;
        }

        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

        tf->file.fd = NGX_INVALID_FILE;
        tf->file.log = r->connection->log;
        tf->path = clcf->client_body_temp_path;
        tf->pool = r->pool;
        tf->clean = 1;
        tf->access = 0600;

        body->file = tf;
    }

    ngx_memzero(&b, sizeof(ngx_buf_t));
    b.pos = data;
    b.last = data + len;
    b.memory = 1;
    cl.buf = &b;
    cl.next = NULL;

    n = ngx_write_chain_to_temp_file(tf, &cl);
    if (n < 0) {
        return NGX_ERROR;
    }

    tf->offset += n;
    return NGX_OK;
}


ngx_int_t
ngx_http_idem_body_slice(ngx_http_idem_body_t *body, struct idem_slice *slice,
    void **map, ngx_log_t *log)
{
    *map = NULL;
    *slice = idem_bytes(NULL, 0);

    if (body->memory != NULL) {
        *slice = idem_bytes(body->memory->start, (size_t) body->len);
        return NGX_OK;
    }

    if (body->file == NULL) {
        return NGX_OK;
    }

    *map = mmap(NULL, (size_t) body->len, PROT_READ, MAP_PRIVATE,
                body->file->file.fd, 0);

    if (*map == MAP_FAILED) {
        *map = NULL;
        ngx_log_error(NGX_LOG_CRIT, log, ngx_errno, "mmap() failed");
        return NGX_ERROR;
    }

    *slice = idem_bytes(*map, (size_t) body->len);
    return NGX_OK;
}


void
ngx_http_idem_body_unmap(ngx_http_idem_body_t *body, void *map)
{
    if (map != NULL) {
        (void) munmap(map, (size_t) body->len);
    }
}


ngx_int_t
ngx_http_idem_body_send(ngx_http_request_t *r, ngx_http_idem_body_t *body,
    ngx_uint_t last)
{
    size_t        size;
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t   out;

    out.next = NULL;

    for ( ;; ) {
        b = body->piece;

        if (b != NULL && b->pos < b->last) {
            return NGX_AGAIN;
        }

        if (b == NULL) {
            b = body->memory != NULL ? body->memory : ngx_calloc_buf(r->pool);
            if (b == NULL) {
                return NGX_ERROR;
            }

            body->piece = b;
        }

        if (body->file != NULL) {

            if (b->start == NULL) {
                b->start = ngx_palloc(r->pool, NGX_HTTP_IDEM_PIECE);
                if (b->start == NULL) {
                    return NGX_ERROR;
                }

                b->temporary = 1;
            }

            size = (size_t) ngx_min(body->len - body->sent,
                                    NGX_HTTP_IDEM_PIECE);
            b->pos = b->start;
            b->last = b->start + size;

            if (ngx_read_file(&body->file->file, b->pos, size, body->sent)
                != (ssize_t) size)
            {
                return NGX_ERROR;
            }

            body->sent += size;

        } else {
            body->sent = body->len;
        }

        body->done = (body->sent == body->len);

        b->last_buf = (last && body->done);
        b->last_in_chain = b->last_buf;
        out.buf = b;

        rc = ngx_http_idem_next_body_filter(r, &out);

        if (rc == NGX_ERROR || body->done) {
            return rc;
        }
    }
}
