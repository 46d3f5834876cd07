/* The exchange loop of effective bandwidth in plain C: what the MPI library itself can do.
 *
 * exchange EXPONENT LOOPS REPETITIONS REPLICATIONS
 *
 * Each repetition adds up, over the replications, the time of LOOPS combined sends and receives
 * of 2^EXPONENT bytes with the partner of that replication. Printed are the nanoseconds of one
 * exchange: the best repetition of the slowest rank.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    MPI_Init(&count, &words);
    if (count != 5) {
        fprintf(stderr, "usage: exchange EXPONENT LOOPS REPETITIONS REPLICATIONS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t bytes = (size_t)1 << atoi(words[1]);
    long loops = atol(words[2]);
    int repetitions = atoi(words[3]), replications = atoi(words[4]);
    char *buffers[2][64];
    for (int i = 0; i < replications; i++) {
        for (int way = 0; way < 2; way++) {
            void *memory;
            if (posix_memalign(&memory, 4096, bytes < 4096 ? 4096 : bytes) != 0) {
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
            buffers[way][i] = memset(memory, way + 1, bytes < 4096 ? 4096 : bytes);
        }
    }
    double best = 1e30;
    for (int n = 0; n < repetitions; n++) {
        double sum = 0;
        for (int i = 0; i < replications; i++) {
            int partner = (rank - 1 + 2 * ((rank + i) % 2) + ranks) % ranks;
            MPI_Barrier(MPI_COMM_WORLD);
            double begun = MPI_Wtime();
            for (long loop = 0; loop < loops; loop++) {
                MPI_Sendrecv(buffers[0][i], (int)bytes, MPI_BYTE, partner, i, buffers[1][i],
                             (int)bytes, MPI_BYTE, partner, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            sum += MPI_Wtime() - begun;
        }
        best = sum < best ? sum : best;
    }
    double slowest;
    MPI_Reduce(&best, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.3f\n", slowest * 1e9 / (double)(loops * replications));
    }
    MPI_Finalize();
    return 0;
}
