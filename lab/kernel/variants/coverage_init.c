// SPDX-License-Identifier: GPL-2.0
/*
 * User Mode Linux is a program: its constructors, which register each object's
 * counters, run before the kernel, whose own function prints a line then, and
 * reads what is not there yet.
 */
struct gcov_info;

void gcov_info_link(struct gcov_info *info);
void __wrap___gcov_init(struct gcov_info *info);

void __wrap___gcov_init(struct gcov_info *info)
{
	gcov_info_link(info);
}
