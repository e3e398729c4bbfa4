#include "gather.h"

#include "boxes.h"
#include "failure.h"

#include <stdlib.h>

enum { TAG = 3 };

static int my_rank(const struct gather *gather)
{
    int rank = 0;
    MPI_OK(MPI_Comm_rank(gather->comm, &rank), "MPI");
    return rank;
}

void gather_begin(const struct gather *gather)
{
    if (my_rank(gather) != gather->mover) {
        MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, gather->mover, TAG, gather->comm, MPI_STATUS_IGNORE), "MPI");
        return;
    }
    for (int i = 0; i < gather->count; i++)
        if (gather->parts[i].rank != gather->mover)
            MPI_OK(MPI_Send(NULL, 0, MPI_BYTE, gather->parts[i].rank, TAG, gather->comm), "MPI");
}

/* Where COMMON, a part of BOX, lies in memory that holds BOX at FRAME's place; NULL: packed. */
static struct frame frame_of(const struct box *common, const struct box *box, const struct frame *frame)
{
    struct frame inside = {0};
    for (int i = 0; i < STORE_DIMENSIONS; i++) {
        inside.extent[i] = frame != NULL ? frame->extent[i] : box->count[i];
        inside.start[i] = (frame != NULL ? frame->start[i] : 0) + common->start[i] - box->start[i];
    }
    return inside;
}

static MPI_Datatype type_of(int dimensions, const struct frame *frame, const uint64_t *count)
{
    int extent[STORE_DIMENSIONS];
    int part[STORE_DIMENSIONS];
    int start[STORE_DIMENSIONS];
    MPI_Datatype type;
    for (int i = 0; i < dimensions; i++) { /* they fit: checked with the arguments */
        extent[i] = (int)frame->extent[i];
        part[i] = (int)count[i];
        start[i] = (int)frame->start[i];
    }
    MPI_OK(MPI_Type_create_subarray(dimensions, extent, part, start, MPI_ORDER_C, MPI_UINT64_T, &type), "MPI");
    MPI_OK(MPI_Type_commit(&type), "MPI");
    return type;
}

/* A piece on its way: the next one is begun before it is finished, so that messages and the file go on at once. */
struct flight {
    struct box piece;
    uint64_t *memory;      /* of the mover */
    MPI_Request *requests; /* [parts] */
    int count;
};

static void send_or_receive(const struct gather *gather, struct flight *flight, bool send, int other, uint64_t *words,
                            const struct frame *frame, const uint64_t *count)
{
    MPI_Request *request = &flight->requests[flight->count++];
    MPI_Datatype type = type_of(gather->dimensions, frame, count);
    if (send)
        MPI_OK(MPI_Isend(words, 1, type, other, TAG, gather->comm, request), "MPI");
    else
        MPI_OK(MPI_Irecv(words, 1, type, other, TAG, gather->comm, request), "MPI");
    MPI_OK(MPI_Type_free(&type), "MPI");
}

/* Between the piece and a part's owner, or this rank's side of it. */
static void exchange(const struct gather *gather, struct flight *flight, enum direction direction,
                     const struct part *part, bool moves)
{
    struct box common;
    if (!box_common(gather->dimensions, &part->box, &flight->piece, &common))
        return;
    const struct frame in_piece = frame_of(&common, &flight->piece, NULL);
    const struct frame in_memory = frame_of(&common, &part->box, gather->frame);
    const bool writes = direction == DIRECTION_WRITE;
    if (!moves)
        send_or_receive(gather, flight, writes, gather->mover, gather->words, &in_memory, common.count);
    else if (part->rank != gather->mover)
        send_or_receive(gather, flight, !writes, part->rank, flight->memory, &in_piece, common.count);
    else if (writes)
        box_copy64(gather->dimensions, common.count, flight->memory, &in_piece, gather->words, &in_memory);
    else
        box_copy64(gather->dimensions, common.count, gather->words, &in_memory, flight->memory, &in_piece);
}

static bool is_wanted(const struct gather *gather, const struct box *piece)
{
    struct box common;
    for (int i = 0; i < gather->count; i++)
        if (box_common(gather->dimensions, &gather->parts[i].box, piece, &common))
            return true;
    return false;
}

static void begin(const struct gather *gather, struct flight *flight, struct store *store, enum direction direction)
{
    if (store != NULL && direction == DIRECTION_READ)
        store_move_box(store, 0, direction, &flight->piece, NULL, flight->memory);
    flight->count = 0;
    for (int i = 0; i < gather->count; i++)
        exchange(gather, flight, direction, &gather->parts[i], store != NULL);
}

static void finish(const struct flight *flight, struct store *store, enum direction direction)
{
    for (int i = 0; i < flight->count; i++)
        MPI_OK(MPI_Wait(&flight->requests[i], MPI_STATUS_IGNORE), "MPI");
    if (store != NULL && direction == DIRECTION_WRITE)
        store_move_box(store, 0, direction, &flight->piece, NULL, flight->memory);
}

void gather_move(const struct gather *gather, struct store *store, enum direction direction)
{
    const uint64_t words = GATHER_BYTES / sizeof *gather->words;
    MPI_Request *requests = malloc(2 * (size_t)gather->count * sizeof(MPI_Request));
    if (requests == NULL)
        stop_rank("out of memory for %d messages", 2 * gather->count);
    struct flight flights[] = {
        {.memory = gather->pieces, .requests = requests},
        {.memory = store != NULL ? gather->pieces + words : NULL, .requests = requests + gather->count}};
    struct box piece = {0};
    int begun = 0;
    while (box_next_piece(gather->dimensions, &gather->whole, words, &piece))
        if (is_wanted(gather, &piece)) {
            flights[begun % 2].piece = piece;
            begin(gather, &flights[begun % 2], store, direction);
            if (begun > 0)
                finish(&flights[(begun - 1) % 2], store, direction);
            begun++;
        }
    if (begun > 0)
        finish(&flights[(begun - 1) % 2], store, direction);
    free(requests);
}
