// SPDX-License-Identifier: GPL-2.0
/*
 * The files of /sys/kernel/kio: a run configured and started with echo and cat.
 * In: values, one per file, and a write to run_workload. Out: the run's error,
 * and per thread the histograms of the last run.
 *
 * Values stay from run to run. Nothing waits for a run that is going on: what
 * would change it fails with EBUSY at once.
 */
#include <linux/ctype.h>
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "kio_tree.h"

#define KIO_MOST_SECONDS	3600u

enum { KIO_TREE_IDLE, KIO_TREE_CHANGING, KIO_TREE_RUNNING };

static struct kobject *kio_root;
static struct attribute kio_value_attrs[KIO_VALUES];
static atomic_t kio_tree_state = ATOMIC_INIT(KIO_TREE_IDLE);

static bool kio_tree_take(int state)
{
	return atomic_cmpxchg(&kio_tree_state, KIO_TREE_IDLE, state) == KIO_TREE_IDLE;
}

static void kio_tree_give(void)
{
	atomic_set(&kio_tree_state, KIO_TREE_IDLE);
}

static bool kio_tree_runs(void)
{
	return atomic_read(&kio_tree_state) == KIO_TREE_RUNNING;
}

static struct kio_tid *kio_tid_of(struct kobject *kobj)
{
	return container_of(kobj, struct kio_tid, kobj);
}

static ssize_t kio_tid_show(struct kobject *kobj, struct attribute *attr, char *text)
{
	return sysfs_emit(text, "%lld\n",
			  READ_ONCE(kio_tid_of(kobj)->values[attr - kio_value_attrs]));
}

static ssize_t kio_tid_store(struct kobject *kobj, struct attribute *attr, const char *text,
			     size_t count)
{
	const struct kio_value_kind *kind = &kio_value_kinds[attr - kio_value_attrs];
	s64 value;
	int err;

	if (kio_tree_runs())
		return -EBUSY;
	err = kstrtoll(text, 0, &value);
	if (err)
		return err;
	if (value < kind->least || value > kind->most)
		return -ERANGE;
	WRITE_ONCE(kio_tid_of(kobj)->values[attr - kio_value_attrs], value);
	return count;
}

static ssize_t kio_errors_show(struct kobject *kobj, struct attribute *attr, char *text)
{
	return sysfs_emit(text, "%llu\n", kio_tree_errors(kio_tid_of(kobj)->id));
}

static struct attribute kio_errors_attr = { .name = "errors", .mode = 0444 };

static ssize_t kio_any_show(struct kobject *kobj, struct attribute *attr, char *text)
{
	if (attr == &kio_errors_attr)
		return kio_errors_show(kobj, attr, text);
	return kio_tid_show(kobj, attr, text);
}

static ssize_t kio_any_store(struct kobject *kobj, struct attribute *attr, const char *text,
			     size_t count)
{
	return attr == &kio_errors_attr ? -EACCES : kio_tid_store(kobj, attr, text, count);
}

#define KIO_HIST_FILE(file_name, kind) \
static ssize_t kio_##file_name##_read(struct file *file, struct kobject *kobj, \
				 kio_bin_attribute *attr, char *to, loff_t at, size_t count) \
{ \
	return kio_tree_hist(kio_tid_of(kobj)->id, kind, to, at, count); \
} \
static struct bin_attribute kio_##file_name##_attr = { \
	.attr = { .name = #file_name, .mode = 0444 }, \
	.size = KIO_DIRS * KIO_HIST_BYTES, \
	.read = kio_##file_name##_read, \
}

KIO_HIST_FILE(hist_slat, KIO_KIND_SLAT);
KIO_HIST_FILE(hist_clat, KIO_KIND_CLAT);
KIO_HIST_FILE(hist_lat, KIO_KIND_LAT);

static const struct bin_attribute *const kio_hist_attrs[] = {
	&kio_hist_slat_attr, &kio_hist_clat_attr, &kio_hist_lat_attr,
};

static const struct sysfs_ops kio_tid_ops = {
	.show = kio_any_show,
	.store = kio_any_store,
};

static void kio_tid_release(struct kobject *kobj)
{
	kfree(kio_tid_of(kobj));
}

static struct kobj_type kio_tid_type = {
	.release = kio_tid_release,
	.sysfs_ops = &kio_tid_ops,
};

/* Also undoes half of a directory: what hangs on a kobject goes with it. */
static void kio_tid_del(struct kio_tid *tid)
{
	kobject_del(&tid->kobj);
	kobject_put(&tid->kobj);
}

static int kio_tid_files(struct kio_tid *tid)
{
	int i, err = sysfs_create_file(&tid->kobj, &kio_errors_attr);

	for (i = 0; i < KIO_VALUES && !err; i++)
		err = sysfs_create_file(&tid->kobj, &kio_value_attrs[i]);
	for (i = 0; i < ARRAY_SIZE(kio_hist_attrs) && !err; i++)
		err = sysfs_create_bin_file(&tid->kobj, kio_hist_attrs[i]);
	return err;
}

static struct kio_tid *kio_tid_new(u32 id)
{
	struct kio_tid *tid = kzalloc(sizeof(*tid), GFP_KERNEL);
	int i, err;

	if (!tid)
		return NULL;
	tid->id = id;
	for (i = 0; i < KIO_VALUES; i++)
		tid->values[i] = kio_value_kinds[i].initial;
	err = kobject_init_and_add(&tid->kobj, &kio_tid_type, kio_root, "%u", id);
	if (!err)
		err = kio_tid_files(tid);
	if (!err)
		return tid;
	kio_tid_del(tid);
	return NULL;
}

static int kio_resize(u32 threads)
{
	while (kio_num_threads > threads) {
		kio_tid_del(kio_tids[--kio_num_threads]);
		kio_tids[kio_num_threads] = NULL;
	}
	while (kio_num_threads < threads) {
		kio_tids[kio_num_threads] = kio_tid_new(kio_num_threads);
		if (!kio_tids[kio_num_threads])
			return -ENOMEM;
		kio_num_threads++;
	}
	return 0;
}

/* The decimal digits that a text begins with; 0 for none, what follows is ignored. */
static u32 kio_leading_number(const char *text)
{
	u32 value = 0;

	for (text = skip_spaces(text); isdigit(*text); text++)
		value = min(value, 100000000u) * 10 + (*text - '0');
	return value;
}

static ssize_t num_threads_show(struct kobject *kobj, struct kobj_attribute *attr, char *text)
{
	return sysfs_emit(text, "%u\n", READ_ONCE(kio_num_threads));
}

static ssize_t num_threads_store(struct kobject *kobj, struct kobj_attribute *attr,
				 const char *text, size_t count)
{
	u32 threads = kio_leading_number(text);
	int err;

	if (threads < 1 || threads > KIO_MAX_JOBS)
		return -EINVAL;
	if (!kio_tree_take(KIO_TREE_CHANGING))
		return -EBUSY;
	err = kio_resize(threads);
	kio_tree_give();
	return err ? err : count;
}

static ssize_t runtime_seconds_show(struct kobject *kobj, struct kobj_attribute *attr, char *text)
{
	return sysfs_emit(text, "%u\n", READ_ONCE(kio_runtime_seconds));
}

static ssize_t runtime_seconds_store(struct kobject *kobj, struct kobj_attribute *attr,
				     const char *text, size_t count)
{
	u32 seconds = kio_leading_number(text);

	if (seconds < 1 || seconds > KIO_MOST_SECONDS)
		return -EOVERFLOW;
	if (!kio_tree_take(KIO_TREE_CHANGING))
		return -EBUSY;
	WRITE_ONCE(kio_runtime_seconds, seconds);
	kio_tree_give();
	return count;
}

static ssize_t run_workload_show(struct kobject *kobj, struct kobj_attribute *attr, char *text)
{
	return sysfs_emit(text, "%d\n", kio_tree_runs());
}

static ssize_t run_workload_store(struct kobject *kobj, struct kobj_attribute *attr,
				  const char *text, size_t count)
{
	int err;

	/* A 0 from another process ends the run that is going on. */
	if (!kio_tree_take(KIO_TREE_RUNNING))
		return sysfs_streq(text, "0") && kio_tree_stop() ? count : -EBUSY;
	err = -ECHILD;
	if (kio_num_threads) {
		err = -ENODEV;
		if (try_module_get(THIS_MODULE)) {
			err = kio_tree_run();
			module_put(THIS_MODULE);
		}
	}
	kio_tree_give();
	return err ? err : count;
}

#define KIO_ROOT_FILE(name) \
	static struct kobj_attribute name##_attr = __ATTR(name, 0664, name##_show, name##_store)

KIO_ROOT_FILE(num_threads);
KIO_ROOT_FILE(runtime_seconds);
KIO_ROOT_FILE(run_workload);

static struct attribute *kio_root_attrs[] = {
	&num_threads_attr.attr,
	&runtime_seconds_attr.attr,
	&run_workload_attr.attr,
	NULL,
};

static const struct attribute_group kio_root_group = { .attrs = kio_root_attrs };

int kio_sysfs_init(void)
{
	int i, err;

	for (i = 0; i < KIO_VALUES; i++) {
		kio_value_attrs[i].name = kio_value_kinds[i].name;
		kio_value_attrs[i].mode = 0664;
		sysfs_attr_init(&kio_value_attrs[i]);
	}
	kio_root = kobject_create_and_add("kio", kernel_kobj);
	if (!kio_root)
		return -ENOMEM;
	err = sysfs_create_group(kio_root, &kio_root_group);
	if (err)
		kobject_put(kio_root);
	return err;
}

void kio_sysfs_exit(void)
{
	/* First the files, so that nobody makes directories any more. */
	sysfs_remove_group(kio_root, &kio_root_group);
	kio_resize(0);
	kio_tree_forget();
	kobject_put(kio_root);
}
