/* A libcurl of long ago, for aws_transport.py: it has the functions that we use,
 * and says that it is too old for them. */
#include <stdlib.h>

/* As <curl/curl.h> has it, as far as it is looked at. */
struct version {
    int age;
    const char *version;
    unsigned version_num;
};

struct version *curl_version_info(int age);
struct version *curl_version_info(int age)
{
    static struct version old = {.version = "7.79.1", .version_num = 0x074f01};

    (void)age;
    return &old;
}

#define OLD(name)                                                              \
    void curl_##name(void);                                                    \
    void curl_##name(void)                                                     \
    {                                                                          \
        abort();                                                               \
    }

OLD(global_init)
OLD(easy_init)
OLD(easy_cleanup)
OLD(easy_setopt)
OLD(easy_getinfo)
OLD(easy_perform)
OLD(easy_reset)
OLD(easy_strerror)
OLD(multi_init)
OLD(multi_cleanup)
OLD(multi_setopt)
OLD(multi_add_handle)
OLD(multi_remove_handle)
OLD(multi_socket_action)
OLD(multi_perform)
OLD(multi_poll)
OLD(multi_assign)
OLD(multi_info_read)
