// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of a node: the time of its transfers, what it counted, its fault.
 */
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "xemu.h"

#define XEMU_MAX_LATENCY	(86400ull * NSEC_PER_SEC)

static struct xemu_channel *xemu_channel_of(struct device *dev)
{
	return container_of(dev, struct xemu_channel, dev);
}

static ssize_t latency_ns_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", READ_ONCE(xemu_channel_of(dev)->latency_ns));
}

static ssize_t latency_ns_store(struct device *dev, struct device_attribute *attr, const char *buf,
				size_t count)
{
	u64 value;
	int err = kstrtou64(buf, 0, &value);

	if (err)
		return err;
	if (value > XEMU_MAX_LATENCY)
		return -ERANGE;
	WRITE_ONCE(xemu_channel_of(dev)->latency_ns, value);
	return count;
}
static DEVICE_ATTR_RW(latency_ns);

static ssize_t bytes_per_s_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", READ_ONCE(xemu_channel_of(dev)->bytes_per_s));
}

static ssize_t bytes_per_s_store(struct device *dev, struct device_attribute *attr,
				 const char *buf, size_t count)
{
	u64 value;
	int err = kstrtou64(buf, 0, &value);

	if (err)
		return err;
	WRITE_ONCE(xemu_channel_of(dev)->bytes_per_s, value);
	return count;
}
static DEVICE_ATTR_RW(bytes_per_s);

static ssize_t xemu_clear(atomic64_t *counter, const char *buf, size_t count)
{
	u64 value;
	int err = kstrtou64(buf, 0, &value);

	if (err)
		return err;
	if (value)
		return -EINVAL;
	atomic64_set(counter, 0);
	return count;
}

#define XEMU_COUNTER(name)								\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf)	\
{											\
	return sysfs_emit(buf, "%lld\n", atomic64_read(&xemu_channel_of(dev)->name));	\
}											\
static ssize_t name##_store(struct device *dev, struct device_attribute *attr,		\
			    const char *buf, size_t count)				\
{											\
	return xemu_clear(&xemu_channel_of(dev)->name, buf, count);			\
}											\
static DEVICE_ATTR_RW(name)

XEMU_COUNTER(ops);
XEMU_COUNTER(bytes);
XEMU_COUNTER(errors);

static ssize_t fault_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct xemu_channel *channel = xemu_channel_of(dev);
	struct xemu_fault fault;

	spin_lock(&channel->fault_lock);
	fault = channel->fault;
	spin_unlock(&channel->fault_lock);
	return sysfs_emit(buf, "%s hit=%d\n", fault.kind == XEMU_NONE ? "none" : fault.written,
			  fault.hit);
}

/* Reads KIND@NUMBER, and for flip also :BIT. */
static int xemu_fault_parse(char *text, struct xemu_fault *fault)
{
	static const char * const kinds[] = { "none", "flip", "short", "eio", "hang" };
	char *kind = strsep(&text, "@");
	char *number = strsep(&text, ":");
	int found = match_string(kinds, ARRAY_SIZE(kinds), kind);
	int err;

	if (found < 0)
		return -EINVAL;
	fault->kind = found;
	if (found == XEMU_NONE)
		return number ? -EINVAL : 0;
	if (!number || (text && found != XEMU_FLIP))
		return -EINVAL;
	err = kstrtou64(number, 0, &fault->at);
	if (!err && text)
		err = kstrtouint(text, 0, &fault->bit);
	if (err || fault->bit > 7 || (found != XEMU_FLIP && !fault->at))
		return -EINVAL;
	return 0;
}

static ssize_t fault_store(struct device *dev, struct device_attribute *attr, const char *buf,
			   size_t count)
{
	struct xemu_channel *channel = xemu_channel_of(dev);
	struct xemu_fault fault = {};
	char text[sizeof(fault.written)];
	int err;

	if (count >= sizeof(text))
		return -EINVAL;
	strscpy(text, buf, sizeof(text));
	strscpy(fault.written, strim(text), sizeof(fault.written));
	err = xemu_fault_parse(strim(text), &fault);
	if (err)
		return err;
	spin_lock(&channel->fault_lock);
	channel->fault = fault;
	spin_unlock(&channel->fault_lock);
	return count;
}
static DEVICE_ATTR_RW(fault);

static struct attribute *xemu_attrs[] = {
	&dev_attr_latency_ns.attr,
	&dev_attr_bytes_per_s.attr,
	&dev_attr_ops.attr,
	&dev_attr_bytes.attr,
	&dev_attr_errors.attr,
	&dev_attr_fault.attr,
	NULL,
};

static const struct attribute_group xemu_group = {
	.attrs = xemu_attrs,
};

const struct attribute_group *xemu_groups[] = { &xemu_group, NULL };
