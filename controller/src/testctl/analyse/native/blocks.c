// SPDX-License-Identifier: Apache-2.0
/*
 * The frames of a capture: pcap (µs, ns, and Kuznetzov's with longer record headers) and
 * pcapng (section, interface, enhanced, simple and obsolete packet blocks).
 *
 * Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.  No byte behind `size` is
 * read.
 */
#include "capture.h"

enum { FILE_HEADER = 24, RECORD_HEADER = 16, KUZNETZOV = 8, LEAST_BLOCK = 12 };
enum { SECTION = 0x0a0d0d0a, INTERFACE = 1, OBSOLETE = 2, SIMPLE = 3, ENHANCED = 6 };
enum { TSRESOL = 9, TSOFFSET = 14, EPB_FLAGS = 2, OPB_FLAGS = 2, PACKET_OUTGOING = 4 };
enum { NS = 1000000000 };

static uint32_t word(const struct walk *walk, const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return walk->big_endian ? __builtin_bswap32(value) : value;
}

static uint16_t half(const struct walk *walk, const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return walk->big_endian ? __builtin_bswap16(value) : value;
}

static int damaged(struct walk *walk, enum damage damage)
{
	walk->damage = damage;
	return 0;
}

/* A file's first bytes: its format; 0 with damage, or if there are too few. */
static int begin(struct walk *walk, const uint8_t *data, uint64_t size, uint64_t *at)
{
	uint32_t magic;

	if (size < LEAST_BLOCK)
		return 0;
	memcpy(&magic, data, sizeof(magic));
	if (magic == SECTION) {
		walk->format = PCAPNG;
		return 1;
	}
	walk->big_endian =
		magic != 0xa1b2c3d4 && magic != 0xa1b23c4d && magic != 0xa1b2cd34;
	magic = word(walk, data);
	if (magic != 0xa1b2c3d4 && magic != 0xa1b23c4d && magic != 0xa1b2cd34)
		return damaged(walk, NO_CAPTURE);
	if (size < FILE_HEADER)
		return 0;
	walk->format = PCAP;
	/* before 2.3 the two lengths were the other way round (pcap-savefile(5)) */
	walk->swapped = half(walk, data + 4) == 2 && half(walk, data + 6) < 3;
	walk->fraction_ns = magic == 0xa1b23c4d ? 1 : 1000;
	walk->extra = magic == 0xa1b2cd34 ? KUZNETZOV : 0;
	walk->interfaces[0].link = word(walk, data + 20) & 0xffff;
	walk->known = 1;
	*at += FILE_HEADER;
	return 1;
}

static int pcap_record(struct walk *walk, const uint8_t *data, uint64_t size,
		       uint64_t *at, struct frame *frame)
{
	const uint8_t *record = data + *at;
	uint32_t header = RECORD_HEADER + walk->extra, fraction;

	if (size - *at < header)
		return 0;
	frame->captured = word(walk, record + (walk->swapped ? 12 : 8));
	frame->original = word(walk, record + (walk->swapped ? 8 : 12));
	if (frame->captured > MOST_FRAME)
		return damaged(walk, BAD_LENGTH);
	if (size - *at - header < frame->captured)
		return 0;
	fraction = word(walk, record + 4);
	frame->time_ns =
		(int64_t)word(walk, record) * NS + (int64_t)fraction * walk->fraction_ns;
	if (fraction >= NS / walk->fraction_ns) {
		walk->odd_time++;
		frame->time_ns = walk->last_ns;
	}
	frame->bytes = record + header;
	frame->link = walk->interfaces[0].link;
	frame->side = NOT_SAID;
	if (walk->extra)
		frame->side = record[22] == PACKET_OUTGOING ? OUTBOUND
			      : record[22] == 0		    ? INBOUND
							    : NOT_SAID;
	*at += header + frame->captured;
	return 1;
}

/* The value of an option of a block, `size` bytes from `at` on; NULL without it, or where
 * it is shorter than `least`. */
static const uint8_t *option(const struct walk *walk, const uint8_t *at, uint32_t size,
			     uint16_t code, uint32_t least)
{
	while (size >= 4) {
		uint16_t kind = half(walk, at), length = half(walk, at + 2);
		uint32_t padded = (length + 3U) & ~3U;

		if (!kind || padded > size - 4)
			return NULL;
		if (kind == code)
			return length >= least ? at + 4 : NULL;
		at += 4 + padded;
		size -= 4 + padded;
	}
	return NULL;
}

static int64_t signed_long(const struct walk *walk, const uint8_t *at)
{
	uint64_t low = word(walk, at), high = word(walk, at + 4);

	return (int64_t)(walk->big_endian ? low << 32 | high : high << 32 | low);
}

static void add_interface(struct walk *walk, const uint8_t *body, uint32_t size)
{
	struct interface *interface = &walk->interfaces[walk->known];
	const uint8_t *value;
	uint8_t resolution = 6;

	interface->link = half(walk, body);
	value = option(walk, body + 8, size - 8, TSRESOL, 1);
	if (value)
		resolution = *value;
	value = option(walk, body + 8, size - 8, TSOFFSET, 8);
	interface->offset_s = value ? signed_long(walk, value) : 0;
	interface->decimal = 0;
	if (resolution & 0x80) {
		resolution &= 0x7f;
		interface->per_second = 1ULL << (resolution < 63 ? resolution : 63);
	} else {
		interface->per_second = 1;
		for (int i = 0; i < resolution && i < 19; i++)
			interface->per_second *= 10;
		if (resolution <= 9)
			interface->decimal = (uint32_t)(NS / interface->per_second);
	}
	walk->known++;
}

static int64_t time_of(const struct interface *interface, uint64_t units)
{
	uint64_t whole = units / interface->per_second,
		 rest = units % interface->per_second;
	uint64_t ns = interface->decimal ? rest * interface->decimal
					 : (uint64_t)((unsigned __int128)rest * NS /
						      interface->per_second);

	return (int64_t)((whole + (uint64_t)interface->offset_s) * NS + ns);
}

/* An enhanced (or obsolete) packet block: interface, time, lengths, bytes, options. */
static int packet_block(struct walk *walk, uint32_t kind, const uint8_t *body,
			uint32_t size, struct frame *frame)
{
	uint32_t number, padded;
	const uint8_t *flags;

	if (size < 20)
		return damaged(walk, BAD_BLOCK);
	number = kind == ENHANCED ? word(walk, body) : half(walk, body);
	frame->captured = word(walk, body + 12);
	frame->original = word(walk, body + 16);
	padded = (frame->captured + 3U) & ~3U;
	if (frame->captured > size - 20)
		return damaged(walk, BAD_LENGTH);
	if (number >= walk->known)
		return damaged(walk, BAD_INTERFACE);
	frame->time_ns =
		time_of(&walk->interfaces[number],
			(uint64_t)word(walk, body + 4) << 32 | word(walk, body + 8));
	frame->bytes = body + 20;
	frame->link = walk->interfaces[number].link;
	frame->side = NOT_SAID;
	flags = padded < size - 20 ? option(walk, body + 20 + padded, size - 20 - padded,
					    EPB_FLAGS, 4)
				   : NULL;
	if (flags)
		frame->side = (word(walk, flags) & 3) == 1   ? INBOUND
			      : (word(walk, flags) & 3) == 2 ? OUTBOUND
							     : NOT_SAID;
	return 1;
}

/* It has no time: the packet before it has one. */
static int simple_block(struct walk *walk, const uint8_t *body, uint32_t size,
			struct frame *frame)
{
	if (size < 4)
		return damaged(walk, BAD_BLOCK);
	if (!walk->known)
		return damaged(walk, BAD_INTERFACE);
	frame->original = word(walk, body);
	frame->captured = frame->original < size - 4 ? frame->original : size - 4;
	frame->time_ns = walk->last_ns;
	frame->bytes = body + 4;
	frame->link = walk->interfaces[0].link;
	frame->side = NOT_SAID;
	walk->without_time++;
	return 1;
}

static int pcapng_block(struct walk *walk, const uint8_t *data, uint64_t size,
			uint64_t *at, struct frame *frame)
{
	while (size - *at >= LEAST_BLOCK) {
		const uint8_t *block = data + *at, *body = block + 8;
		uint32_t kind, length, bytes;

		memcpy(&kind, block, sizeof(kind));
		if (kind == SECTION) {
			uint32_t order;

			memcpy(&order, block + 8, sizeof(order));
			if (order != 0x1a2b3c4d && order != 0x4d3c2b1a)
				return damaged(walk,
					       *at || walk->at ? BAD_BLOCK : NO_CAPTURE);
			walk->big_endian = order == 0x4d3c2b1a;
			walk->known = 0;
		}
		kind = word(walk, block);
		length = word(walk, block + 4);
		if (length % 4 || length < LEAST_BLOCK || length > MOST_RECORD)
			return damaged(walk, BAD_LENGTH);
		if (size - *at < length)
			return 0;
		if (word(walk, block + length - 4) != length)
			return damaged(walk, BAD_BLOCK);
		bytes = length - LEAST_BLOCK;
		if (kind == INTERFACE) {
			if (bytes < 8)
				return damaged(walk, BAD_BLOCK);
			if (walk->known == INTERFACES)
				return damaged(walk, BAD_INTERFACE);
			add_interface(walk, body, bytes);
		} else if (kind == ENHANCED || kind == OBSOLETE || kind == SIMPLE) {
			int done = kind == SIMPLE
					   ? simple_block(walk, body, bytes, frame)
					   : packet_block(walk, kind, body, bytes, frame);

			*at += done ? length : 0;
			return done;
		}
		*at += length;
	}
	return 0;
}

int next_frame(struct walk *walk, const uint8_t *data, uint64_t size, uint64_t *at,
	       struct frame *frame)
{
	if (!walk->format && !begin(walk, data, size, at))
		return 0;
	if (walk->format == PCAP)
		return pcap_record(walk, data, size, at, frame);
	return pcapng_block(walk, data, size, at, frame);
}
