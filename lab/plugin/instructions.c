// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A QEMU TCG plugin: how many instructions each virtual CPU has executed, in a file that is mapped into memory and
// can be read at any moment.
//
//   -plugin instructions.so,counts=FILE
//
// FILE holds 64-bit numbers in the order of the machine: first how often the numbers behind it have been written, then
// one count for each virtual CPU. A reader that has seen the first number grow by two has counts that are younger than
// its question.
//
// The counts are of translated blocks: a block that an exception or an interrupt leaves early counts whole. Blocks are
// some five instructions long on average, and few are left early.
//
// The prototypes are the documented interface of QEMU 10 (plugin API version 4, docs/devel/tcg-plugins).

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_scoreboard;
// One 64-bit number in the element of every virtual CPU.
typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64, QEMU_PLUGIN_INLINE_STORE_U64 };

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
uint64_t qemu_plugin_u64_get(qemu_plugin_u64 entry, unsigned int vcpu);
int qemu_plugin_num_vcpus(void);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*translated)(qemu_plugin_id_t id, struct qemu_plugin_tb *block));
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *block, enum qemu_plugin_op operation,
						       qemu_plugin_u64 entry, uint64_t operand);

EXPORTED int qemu_plugin_version = 4;
EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const void *machine, int argc, char **argv);

enum { MOST_CPUS = 255 };
#define INTERVAL_US 500

struct published {
	uint64_t rounds;
	uint64_t counts[MOST_CPUS];
};

static qemu_plugin_u64 executed;
static struct published *published;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	(void)id;
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(block, QEMU_PLUGIN_INLINE_ADD_U64, executed,
							  qemu_plugin_tb_n_insns(block));
}

static void *publish(void *unused)
{
	(void)unused;
	// All virtual CPUs exist before the first one runs; a board that grows would move under the reader.
	sleep(1);
	for (;;) {
		int cpus = qemu_plugin_num_vcpus();
		for (int cpu = 0; cpu < cpus && cpu < MOST_CPUS; cpu++)
			__atomic_store_n(&published->counts[cpu], qemu_plugin_u64_get(executed, (unsigned int)cpu),
					 __ATOMIC_RELAXED);
		__atomic_add_fetch(&published->rounds, 1, __ATOMIC_RELEASE);
		usleep(INTERVAL_US);
	}
	return NULL;
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *machine, int argc, char **argv)
{
	const char *file = NULL;
	(void)machine;
	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], "counts=", 7) == 0)
			file = argv[i] + 7;
	if (!file) {
		fprintf(stderr, "instructions: counts=FILE is missing\n");
		return -1;
	}
	int descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (descriptor < 0 || ftruncate(descriptor, sizeof *published) != 0) {
		perror(file);
		return -1;
	}
	published = mmap(NULL, sizeof *published, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	close(descriptor);
	if (published == MAP_FAILED) {
		perror(file);
		return -1;
	}
	executed = (qemu_plugin_u64){ .score = qemu_plugin_scoreboard_new(sizeof(uint64_t)), .offset = 0 };
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	pthread_t thread;
	if (pthread_create(&thread, NULL, publish, NULL) != 0) {
		fprintf(stderr, "instructions: no thread\n");
		return -1;
	}
	return 0;
}
