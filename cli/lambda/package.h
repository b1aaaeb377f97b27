/* idem lambda package: a function with all that it needs, as a zip file. */
#ifndef IDEM_CLI_LAMBDA_PACKAGE_H
#define IDEM_CLI_LAMBDA_PACKAGE_H

/* Writes @output: this program (or @program, a function that is linked with
 * libidem) with a loader and libraries of its own, and @files beside it. An exit
 * status, after saying why. */
int cli_lambda_package(const char *output, const char *program, int files_len,
                       char **files);

#endif
