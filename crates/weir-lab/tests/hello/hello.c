// SPDX-License-Identifier: MIT
/*
 * A module that says two words: what the lab's own tests build, load and unload.
 */
#include <linux/init.h>
#include <linux/module.h>

static int __init hello_init(void)
{
	pr_info("hello: loaded\n");
	return 0;
}

static void __exit hello_exit(void)
{
	pr_info("hello: unloaded\n");
}

module_init(hello_init);
module_exit(hello_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Says two words");
