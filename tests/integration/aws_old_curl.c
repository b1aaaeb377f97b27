/* Preloaded by aws_transport.py: libcurl says that it is one of long ago. */
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
