/* Loads mod_idem as a SQLite would that is too old, or that is the second one of its
 * process: old_host MOD_IDEM. Prints what it is told. */
#include <dlfcn.h>
#include <sqlite3ext.h>
#include <stdio.h>
#include <stdlib.h>

typedef int init_fn(sqlite3 *db, char **ret_message,
                    const struct sqlite3_api_routines *api);

static int version = 3036000;

static int version_number(void)
{
    return version;
}

static const char *version_text(void)
{
    return "3.36.0";
}

__attribute__((format(printf, 1, 2))) static char *print(const char *format,
                                                         ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) {
        abort();
    }
    va_end(args);
    return text;
}

/* No connection can be had: it fails as one without memory. */
static int create_module(sqlite3 *db, const char *name,
                         const sqlite3_module *module, void *aux,
                         void (*destroy)(void *))
{
    (void)db;
    (void)name;
    (void)module;
    (void)aux;
    (void)destroy;
    return SQLITE_NOMEM;
}

static const struct sqlite3_api_routines tables[] = {
    {.libversion = version_text,
     .libversion_number = version_number,
     .mprintf = print,
     .create_module_v2 = create_module},
    {.libversion = version_text,
     .libversion_number = version_number,
     .mprintf = print,
     .create_module_v2 = create_module},
};

static void load(init_fn *init, const struct sqlite3_api_routines *api)
{
    char *message = NULL;
    int rc = init(NULL, &message, api);

    (void)printf("%d %s\n", rc, message == NULL ? "" : message);
    free(message);
}

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    init_fn *init;

    if (library == NULL) {
        (void)fprintf(stderr, "usage: old_host MOD_IDEM\n");
        return 64;
    }
    *(void **)&init = dlsym(library, "sqlite3_modidem_init");
    load(init, &tables[0]);
    version = 3037000;
    load(init, &tables[0]);
    load(init, &tables[1]);
    load(init, &tables[0]);
    return 0;
}
