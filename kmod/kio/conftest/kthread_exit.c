// SPDX-License-Identifier: GPL-2.0
/* Ends a thread that holds its module: this name from 5.17. */
#include <linux/module.h>

void probe(void);
void probe(void)
{
	module_put_and_kthread_exit(0);
}
