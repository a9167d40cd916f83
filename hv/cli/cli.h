// SPDX-License-Identifier: BSD-3-Clause
/* vpmuctl's commands. Each gets its own words, argv[0] its name, and returns vpmuctl's exit status.
 */
#ifndef CLI_H
#define CLI_H

/* Where arguments are wrong; EX_USAGE of sysexits.h. */
#define CLI_USAGE 64

int cli_doctor(int argc, char **argv);
int cli_domain(int argc, char **argv);
int cli_fleet(int argc, char **argv);
int cli_leases(int argc, char **argv);
int cli_revoke(int argc, char **argv);

#endif
