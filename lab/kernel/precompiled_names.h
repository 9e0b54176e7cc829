/* SPDX-License-Identifier: GPL-2.0 */
/* The names of the file that is compiled, after the headers that were compiled before. */
#define KBUILD_MODFILE LAB_KBUILD_MODFILE
#define KBUILD_BASENAME LAB_KBUILD_BASENAME
#define KBUILD_MODNAME LAB_KBUILD_MODNAME
#define __KBUILD_MODNAME LAB___KBUILD_MODNAME
