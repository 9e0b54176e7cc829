#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The compiler of a kernel that is built once: precompiled.sh COMPILER ARGUMENT…
#
# Reading headers is 70 % of the compiler's time, and most files include the same ones.
# precompiled.h names these; with kernel/fork.c, whose flags are everyone's, they are compiled
# for all others.  They must be the first include, and no macro that they mention may
# differ: the names that kbuild gives each file have others until then (precompiled_names.h).
set -eu
where=$(dirname "$0")
headers=$where/precompiled.h
for source; do :; done

precompile() {
	for arg; do
		shift
		case $arg in
		-Wp,-MMD,* | -D*KBUILD_* | -include | */include/linux/*.h | -c | -o | *.o | *.c) ;;
		*) set -- "$@" "$arg" ;;
		esac
	done
	"$@" -x c-header -o "$headers.gch" "$headers"
	sha256sum <"$headers.gch" >"$headers.gch.sum" # so that ccache need not read all of it for each file
}

case " $* " in
# They define macros that change these headers, or are linked for user space.
*/init/main.c\  | */lib/string.c\  | */um/vdso/*.c\ ) exec "$@" ;;
*\ -nostdinc\ *\ -DKBUILD_BASENAME=*\ -c\ *.c\ ) ;;
*) exec "$@" ;;
esac
case $source in */kernel/fork.c) precompile "$@" ;; esac
[ -e "$headers.gch" ] || exec "$@"

read_compiled() {
	for arg; do
		shift
		case $arg in
		-D*KBUILD_*) arg=-DLAB_${arg#-D} ;;
		-nostdinc) set -- "$@" -include "$headers" -include "$where/precompiled_names.h" ;;
		esac
		set -- "$@" "$arg"
	done
	"$@"
}

case $source in
*/net/ipv4/testctl/*) read_compiled "$@" ;;
# pr_fmt is defined again; a file may use a name that a header it does not include has taken.
*) read_compiled "$@" -w 2>/dev/null || exec "$@" ;;
esac
