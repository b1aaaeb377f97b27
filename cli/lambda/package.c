/* A program for a system with other libraries brings its own. The package holds
 *
 *     bootstrap     starts lib/main, by lib/ld.so
 *     lib/ld.so     the loader of this system
 *     lib/main      this program, or one that is linked with libidem
 *     lib/...       its libraries, and those of what it loads
 *     FILE ...      the handler, and what it needs
 *
 * A program that is linked statically has no loader and no library, and so can be
 * packed on a machine with another processor.
 */
#include "lambda/package.h"

#include "lambda/elf.h"
#include "lambda/lambda.h"
#include "options/read.h"
#include "process/self.h"
#include "text/error.h"
#include "text/exit_status.h"
#include "text/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_MAX ((size_t)256 << 20)

struct package {
    struct cli_zip *zip;
    char loader[256];     /* Of this system. */
    char *libraries[200]; /* Their names, so far. */
    size_t libraries_len;
    const char *arch; /* One of cli_arches; NULL: that of the program. */
    bool is_static;   /* The program needs no loader and no library. */
    bool has_postgres;
    bool failed;
};

/* ---- Files ------------------------------------------------------------- */

static void fail(struct package *p, const char *what, const char *why)
{
    char shown[256];

    (void)cli_escape(idem_str(what), shown, sizeof(shown));
    cli_say("%s: %s", shown, why);
    p->failed = true;
}

/* The caller frees it; NULL, after saying why. */
static char *read_file(struct package *p, const char *path, size_t *ret_len)
{
    char spec[4097];
    char *data;

    (void)snprintf(spec, sizeof(spec), "@%s", path);
    if (cli_read_arg(path, spec, /* text_ok= */ false, FILE_MAX, &data,
                     ret_len) != 0) {
        p->failed = true;
        return NULL;
    }
    return data;
}

static void fail_arch(struct package *p, const char *path,
                      const struct cli_elf *elf)
{
    char why[256];

    (void)snprintf(why, sizeof(why),
                   "this file is for %s, and the package for %s", elf->arch,
                   p->arch);
    fail(p, path, why);
}

/* A function whose interpreter is not there fails at its first event. */
static void check_interpreter(struct package *p, const char *path,
                              const char *data, size_t len)
{
    struct idem_slice interpreter = cli_interpreter(data, len);
    char shown[64];
    char shown_path[128];

    if (interpreter.len == 0 || cli_interpreter_is_on_lambda(interpreter)) {
        return;
    }
    (void)cli_escape(interpreter, shown, sizeof(shown));
    (void)cli_escape(idem_str(path), shown_path, sizeof(shown_path));
    cli_say(
        "%s: its first line needs %s, and the runtime provided.al2023 has sh "
        "and bash; name an interpreter of a layer (#!/opt/bin/...), or "
        "one that is packaged as a FILE too (#!/var/task/...)",
        shown_path, shown);
    p->failed = true;
}

static void add_file(struct package *p, const char *path, const char *name,
                     bool executable)
{
    size_t len;
    char *data = read_file(p, path, &len);
    struct cli_elf elf;

    if (data != NULL && cli_elf_read(data, len, &elf) &&
        strcmp(elf.arch, p->arch) != 0) {
        fail_arch(p, path, &elf);
    } else if (data != NULL && executable) {
        check_interpreter(p, path, data, len);
    }
    if (data != NULL && !cli_zip_add(p->zip, name, data, len, executable)) {
        p->failed = true;
    }
    free(data);
}

/* ---- Libraries --------------------------------------------------------- */

static bool is_added(const struct package *p, const char *name)
{
    size_t i;

    for (i = 0; i < p->libraries_len; i++) {
        if (strcmp(p->libraries[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void add_library(struct package *p, const char *name, const char *path)
{
    char inside[300];

    if (is_added(p, name)) {
        return;
    }
    if (p->libraries_len == sizeof(p->libraries) / sizeof(p->libraries[0]) ||
        (p->libraries[p->libraries_len] = strdup(name)) == NULL) {
        fail(p, name, "there are too many libraries");
        return;
    }
    p->libraries_len++;
    (void)snprintf(inside, sizeof(inside), "lib/%s", name);
    add_file(p, path, inside, /* executable= */ false);
}

/* A line of the loader: "	libz.so.1 => /lib/libz.so.1 (0x...)". */
static void take_line(struct package *p, char *line)
{
    char *arrow = strstr(line, " => ");
    char *name = line + strspn(line, " \t");
    char *path;

    if (arrow == NULL) {
        return; /* The loader, or what the kernel has. */
    }
    *arrow = '\0';
    path = arrow + 4;
    path[strcspn(path, " \n")] = '\0';
    if (strncmp(path, "not", 4) == 0) {
        fail(p, name, "this library is needed, and is not here");
    } else {
        add_library(p, name, path);
    }
}

static int spawn_loader(const struct package *p, const char *path, int out,
                        pid_t *ret_pid)
{
    char list[] = "--list";
    char loader[sizeof(p->loader)];
    char object[4096];
    char *argv[] = {loader, list, object, NULL};
    posix_spawn_file_actions_t actions;
    int rc;

    (void)snprintf(loader, sizeof(loader), "%s", p->loader);
    (void)snprintf(object, sizeof(object), "%s", path);
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return ENOMEM;
    }
    rc = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (rc == 0) {
        rc = posix_spawn(ret_pid, loader, &actions, NULL, argv, environ);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* All that @path, a program or a library, is linked with. */
static void add_libraries_of(struct package *p, const char *path)
{
    char *line = NULL;
    size_t cap = 0;
    int status = 0;
    int ends[2];
    FILE *lines;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        fail(p, path, strerror(errno));
        return;
    }
    lines = fdopen(ends[0], "r");
    if (lines == NULL || spawn_loader(p, path, ends[1], &pid) != 0) {
        fail(p, path, "the loader cannot be started");
        (void)close(ends[1]);
        if (lines != NULL) {
            (void)fclose(lines);
        }
        return;
    }
    (void)close(ends[1]);
    while (getline(&line, &cap, lines) > 0) {
        take_line(p, line);
    }
    free(line);
    (void)fclose(lines);
    (void)waitpid(pid, &status, 0);
    if (status != 0) {
        fail(p, path, "it cannot be loaded here");
    }
}

/* The first of the libraries @names that is here and has @symbol, with all that it is
 * linked with. False: none is. */
static bool add_if_here(struct package *p, const char *const *names,
                        const char *symbol)
{
    void *library = NULL;
    void *function;
    Dl_info info;

    for (; library == NULL && *names != NULL; names++) {
        library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) {
            break;
        }
    }
    function = library == NULL ? NULL : dlsym(library, symbol);
    if (function == NULL || dladdr(function, &info) == 0) {
        return false;
    }
    add_library(p, *names, info.dli_fname);
    add_libraries_of(p, info.dli_fname);
    return true;
}

/* Likewise; the package fails if none of them is here. */
static void add_loaded(struct package *p, const char *const *names,
                       const char *symbol, const char *install)
{
    if (!add_if_here(p, names, symbol)) {
        cli_say("%s is not installed and will not be in the package: apt "
                "install %s",
                symbol, install);
        p->failed = true;
    }
}

/* The store in PostgreSQL is a package of its own, and few functions need it. */
static void add_postgres(struct package *p)
{
    static const char *const library[] = {"libidem-postgres.so.0", NULL};
    static const char *const scheme[] = {"libidem-postgresql.so.0", NULL};

    p->has_postgres = add_if_here(p, library, "idem_postgres_kind") &&
                      add_if_here(p, scheme, "idem_postgresql_scheme");
}

/* ---- The program -------------------------------------------------------- */

/* A program for another processor is no choice of this one's. */
static void fail_program(struct package *p, const char *program,
                         const struct cli_elf *elf)
{
    char why[256];

    if (strcmp(program, SELF_PROGRAM) != 0) {
        fail_arch(p, program, elf);
        return;
    }
    (void)snprintf(why, sizeof(why),
                   "this idem is for %s; give a statically linked one for %s "
                   "with --program (idem-VERSION-linux-%s.tar.xz of a release, "
                   "or tools/static %s)",
                   elf->arch, p->arch, p->arch, p->arch);
    fail(p, p->arch, why);
}

/* What starts lib/main: a launcher with a loader beside it, or where the program
 * needs no loader, two lines for the shell that provided.al2023 has. */
static void add_bootstrap(struct package *p, const char *program,
                          const struct cli_elf *elf)
{
    static const char script[] =
        "#!/bin/sh\n"
        "exec \"${LAMBDA_TASK_ROOT:-/var/task}/lib/main\" lambda\n";

    if (p->is_static) {
        if (!cli_zip_add(p->zip, "bootstrap", script, sizeof(script) - 1,
                         /* executable= */ true)) {
            p->failed = true;
        }
        return;
    }
    if (strcmp(elf->arch, cli_arch_here()) != 0) {
        fail(
            p, program,
            "its libraries are those of another processor; give a program that "
            "is linked statically");
    } else if (cli_bootstrap_len == 0) {
        fail(p, program,
             "this build of idem has no launcher for packages; give "
             "a program that is linked statically");
    } else if (elf->loader.len >= sizeof(p->loader)) {
        fail(p, program, "the path of its loader is too long");
    } else if (!cli_zip_add(p->zip, "bootstrap", cli_bootstrap,
                            cli_bootstrap_len, /* executable= */ true)) {
        p->failed = true;
    } else {
        memcpy(p->loader, elf->loader.base, elf->loader.len);
        p->loader[elf->loader.len] = '\0';
        add_file(p, p->loader, "lib/ld.so", /* executable= */ true);
    }
}

/* The program, and the bootstrap that starts it. */
static void add_main(struct package *p, const char *program)
{
    size_t len;
    char *data = read_file(p, program, &len);
    struct cli_elf elf;

    if (data == NULL) {
        return;
    }
    if (!cli_elf_read(data, len, &elf)) {
        fail(p, program, "not a program for Linux (an ELF file)");
    } else if (p->arch != NULL && strcmp(elf.arch, p->arch) != 0) {
        fail_program(p, program, &elf);
    } else {
        p->arch = elf.arch;
        p->is_static = elf.loader.len == 0;
        add_bootstrap(p, program, &elf);
        if (!p->failed && !cli_zip_add(p->zip, "lib/main", data, len,
                                       /* executable= */ true)) {
            p->failed = true;
        }
    }
    free(data);
}

/* ---- The handler ------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text);

    return len > strlen(end) && strcmp(text + len - strlen(end), end) == 0;
}

/* A file at the top, under its own name. */
static void add_handler_file(struct package *p, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    struct stat st;
    char from_here[4096];

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
        fail(p, path, "not a regular file");
    } else if (strcmp(name, "bootstrap") == 0 || strcmp(name, "lib") == 0) {
        fail(p, path, "the package has one of its own");
    } else {
        add_file(p, path, name, (st.st_mode & S_IXUSR) != 0);
        if (!p->failed && ends_with(name, ".so")) {
            (void)snprintf(from_here, sizeof(from_here), "%s%s",
                           slash == NULL ? "./" : "", path);
            add_libraries_of(p, from_here);
        }
    }
}

/* ---- All of it --------------------------------------------------------- */

static void fill(struct package *p, const char *program, int files_len,
                 char **files)
{
    static const char *const aws[] = {"libidem-aws.so.0", NULL};
    static const char *const scheme[] = {"libidem-dynamodb.so.0", NULL};
    static const char *const jq[] = {"libjq.so.1", NULL};
    const char *path = program == NULL ? SELF_PROGRAM : program;
    int i;

    add_main(p, path);
    if (!p->failed && !p->is_static) {
        char real[4096] = "";

        /* The loader's own /proc/self/exe is another one. */
        if (realpath(path, real) == NULL) {
            fail(p, path, strerror(errno));
        } else {
            add_libraries_of(p, real);
        }
    }
    if (!p->failed && !p->is_static) {
        add_loaded(p, aws, "idem_dynamodb_kind", "libidem-aws0");
        add_loaded(p, scheme, "idem_dynamodb_scheme", "libidem-aws0");
        add_loaded(p, jq, "jq_init", "libjq1");
        add_postgres(p);
    }
    for (i = 0; !p->failed && i < files_len; i++) {
        add_handler_file(p, files[i]);
    }
}

int cli_lambda_package(const char *output, const char *arch,
                       const char *program, int files_len, char **files)
{
    struct package p = {.zip = cli_zip_create(output), .arch = arch};
    size_t len;
    size_t i;
    int status;

    if (p.zip == NULL) {
        return CLI_CONFIG;
    }
    fill(&p, program, files_len, files);
    status = cli_zip_finish(p.zip, p.failed, &len);
    if (status == 0 && !p.failed) {
        (void)printf("%s: for %s, %zu bytes, %zu libraries%s\n", output, p.arch,
                     len, p.libraries_len,
                     p.is_static || p.has_postgres
                         ? ""
                         : ", and no store in PostgreSQL, which is not "
                           "installed here: apt install libidem-postgres0");
    }
    for (i = 0; i < p.libraries_len; i++) {
        free(p.libraries[i]);
    }
    return p.failed ? CLI_CONFIG : status;
}
