// SPDX-License-Identifier: GPL-2.0
/* The read of a binary attribute takes it as const: from 6.13. */
#include <linux/sysfs.h>

ssize_t probe(struct file *file, struct kobject *kobj, const struct bin_attribute *attr,
	      char *to, loff_t at, size_t count);
void assign(struct bin_attribute *attr);
void assign(struct bin_attribute *attr)
{
	attr->read = probe;
}
