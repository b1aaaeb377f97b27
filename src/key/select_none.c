/* Selecting where libidem was built without libjq. */
#include <idem/key.h>

#include "core/error.h"

int idem_select_create(const char *program,
                       const struct idem_select_options *options,
                       struct idem_select **ret_select,
                       struct idem_error *ret_error)
{
    (void)program;
    (void)options;
    (void)ret_select;
    return idem__error(ret_error, IDEM_ECONFIG,
                       "this libidem was built without libjq, which is needed "
                       "to select with a jq program");
}

int idem_select_run(struct idem_select *select, struct idem_slice json,
                    struct idem_slice *ret_output, struct idem_error *ret_error)
{
    (void)select;
    (void)json;
    (void)ret_output;
    return idem__error_plain(ret_error, IDEM_EINVALID);
}

bool idem_select_cut_off(const struct idem_select *select)
{
    (void)select;
    return false;
}

int idem_select_start(struct idem_select *select, struct idem_slice json,
                      struct idem_selection **ret_selection,
                      struct idem_error *ret_error)
{
    (void)select;
    (void)json;
    (void)ret_selection;
    return idem__error_plain(ret_error, IDEM_EINVALID);
}

int idem_select_start_request(struct idem_select *select,
                              const struct idem_select_request *request,
                              struct idem_selection **ret_selection,
                              struct idem_error *ret_error)
{
    (void)select;
    (void)request;
    (void)ret_selection;
    return idem__error_plain(ret_error, IDEM_EINVALID);
}

int idem_selection_fd(const struct idem_selection *selection)
{
    (void)selection;
    return -1;
}

int64_t idem_selection_left_ms(const struct idem_selection *selection)
{
    (void)selection;
    return 0;
}

bool idem_selection_ready(struct idem_selection *selection)
{
    (void)selection;
    return true;
}

int idem_selection_output(const struct idem_selection *selection,
                          struct idem_slice *ret_output,
                          struct idem_error *ret_error)
{
    (void)selection;
    (void)ret_output;
    return idem__error_plain(ret_error, IDEM_EINVALID);
}

struct idem_slice idem_selection_text(const struct idem_selection *selection)
{
    (void)selection;
    return idem_bytes("", 0);
}

bool idem_selection_cut_off(const struct idem_selection *selection)
{
    (void)selection;
    return false;
}

void idem_selection_destroy(struct idem_selection *selection)
{
    (void)selection;
}

struct idem_slice idem_select_text(struct idem_select *select,
                                   struct idem_slice output)
{
    (void)select;
    return output;
}

void idem_select_destroy(struct idem_select *select)
{
    (void)select;
}
