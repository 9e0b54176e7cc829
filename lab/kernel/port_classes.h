/* SPDX-License-Identifier: GPL-2.0 */
/* The one class of a port whose AQM is a qdisc of Linux's, by which that is put below it: a part of lab_port.c. */
#ifndef TESTCTL_PORT_CLASSES_H
#define TESTCTL_PORT_CLASSES_H

static int port_graft(struct Qdisc *sch, unsigned long class, struct Qdisc *child, struct Qdisc **old,
		      struct netlink_ext_ack *why)
{
	struct lab_port *port = qdisc_priv(sch);

	*old = qdisc_replace(sch, child ? child : &noop_qdisc, &port->child);
	port->packets = 0;
	port->bytes = 0;
	count(port);
	return 0;
}

static struct Qdisc *port_leaf(struct Qdisc *sch, unsigned long class)
{
	return ((struct lab_port *)qdisc_priv(sch))->child;
}

static unsigned long port_find(struct Qdisc *sch, u32 classid)
{
	return ((struct lab_port *)qdisc_priv(sch))->child ? CHILD_CLASS : 0;
}

static void port_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (walker->stop || !((struct lab_port *)qdisc_priv(sch))->child)
		return;
	if (walker->count >= walker->skip && walker->fn(sch, CHILD_CLASS, walker) < 0)
		walker->stop = 1;
	else
		walker->count++;
}

static int port_dump_class(struct Qdisc *sch, unsigned long class, struct sk_buff *to, struct tcmsg *message)
{
	message->tcm_handle |= TC_H_MIN(CHILD_CLASS);
	message->tcm_info = ((struct lab_port *)qdisc_priv(sch))->child->handle;
	return 0;
}

static void port_emptied(struct Qdisc *sch, unsigned long class)
{
}

static const struct Qdisc_class_ops port_classes = {
	.graft = port_graft,
	.leaf = port_leaf,
	.find = port_find,
	.walk = port_walk,
	.dump = port_dump_class,
	.qlen_notify = port_emptied,
};

#endif
