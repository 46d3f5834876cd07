/* The loop of exchange.c inside of weir's own processes: a library to stand in for the MPI library,
 * which does everything, but runs the loop once whenever weir's ranks meet before theirs. So both
 * loops have the same processes, CPUs and minutes.
 *
 * WEIR_BENCH_LOOP names what to do: EXPONENT,LOOPS,REPETITIONS,REPLICATIONS,FILE. As the ranks end,
 * rank 0 writes the nanoseconds of one exchange into the file: the best repetition of the slowest
 * rank. Ranks also meet before what weir does not count (it times its barrier and warms up), and a
 * loop that ran more often would have a better best: only the last repetitions count here too.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int exponent, repetitions, replications;
    long loops;
    char file[4096];
    char *buffers[2][64];
    int meetings;
    /* Of the last loops, in turns. */
    double times[64 * 64];
} state;

static void set_up(void) {
    const char *words = getenv("WEIR_BENCH_LOOP");
    if (words == NULL || sscanf(words, "%d,%ld,%d,%d,%4095s", &state.exponent, &state.loops,
                                &state.repetitions, &state.replications, state.file) != 5 ||
        state.repetitions > 64 || state.replications > 64) {
        fprintf(stderr, "WEIR_BENCH_LOOP: EXPONENT,LOOPS,REPETITIONS,REPLICATIONS,FILE\n");
        PMPI_Abort(MPI_COMM_WORLD, 2);
    }
    size_t bytes = (size_t)1 << state.exponent;
    for (int i = 0; i < state.replications; i++) {
        for (int way = 0; way < 2; way++) {
            void *memory;
            if (posix_memalign(&memory, 4096, bytes < 4096 ? 4096 : bytes) != 0) {
                PMPI_Abort(MPI_COMM_WORLD, 1);
            }
            state.buffers[way][i] = memset(memory, way + 1, bytes < 4096 ? 4096 : bytes);
        }
    }
}

int MPI_Barrier(MPI_Comm world) {
    if (state.loops == 0) {
        set_up();
    }
    int rank, ranks, bytes = 1 << state.exponent;
    PMPI_Comm_rank(world, &rank);
    PMPI_Comm_size(world, &ranks);
    int i = state.meetings++ % state.replications;
    int partner = (rank - 1 + 2 * ((rank + i) % 2) + ranks) % ranks;
    PMPI_Barrier(world);
    double begun = PMPI_Wtime();
    for (long loop = 0; loop < state.loops; loop++) {
        PMPI_Sendrecv(state.buffers[0][i], bytes, MPI_BYTE, partner, i, state.buffers[1][i], bytes,
                      MPI_BYTE, partner, i, world, MPI_STATUS_IGNORE);
    }
    int counted = state.repetitions * state.replications;
    state.times[(state.meetings - 1) % counted] = PMPI_Wtime() - begun;
    return PMPI_Barrier(world);
}

int MPI_Finalize(void) {
    int rank, counted = state.repetitions * state.replications;
    double best = 1e30, slowest;
    for (int first = 0; first < counted; first += state.replications) {
        double sum = 0;
        for (int i = 0; i < state.replications; i++) {
            sum += state.times[(state.meetings + first + i) % counted];
        }
        best = sum < best ? sum : best;
    }
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Reduce(&best, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    FILE *file = rank == 0 ? fopen(state.file, "w") : NULL;
    if (file != NULL) {
        fprintf(file, "%.3f\n", slowest * 1e9 / (double)(state.loops * state.replications));
        fclose(file);
    }
    return PMPI_Finalize();
}
