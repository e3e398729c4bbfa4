#include "gather.h"

#include "boxes.h"
#include "failure.h"

#include <stddef.h>

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

static void send_or_receive(const struct gather *gather, bool send, int other, uint64_t *words,
                            const struct frame *frame, const uint64_t *count)
{
    MPI_Datatype type = type_of(gather->dimensions, frame, count);
    if (send)
        MPI_OK(MPI_Send(words, 1, type, other, TAG, gather->comm), "MPI");
    else
        MPI_OK(MPI_Recv(words, 1, type, other, TAG, gather->comm, MPI_STATUS_IGNORE), "MPI");
    MPI_OK(MPI_Type_free(&type), "MPI");
}

/* The mover's side of a part: between the piece and the part's owner. */
static void exchange(const struct gather *gather, enum direction direction, const struct part *part,
                     const struct box *piece)
{
    struct box common;
    if (!box_common(gather->dimensions, &part->box, piece, &common))
        return;
    const struct frame in_piece = frame_of(&common, piece, NULL);
    const struct frame in_memory = frame_of(&common, &part->box, gather->frame);
    if (part->rank != gather->mover)
        send_or_receive(gather, direction == DIRECTION_READ, part->rank, gather->piece, &in_piece, common.count);
    else if (direction == DIRECTION_WRITE)
        box_copy64(gather->dimensions, common.count, gather->piece, &in_piece, gather->words, &in_memory);
    else
        box_copy64(gather->dimensions, common.count, gather->words, &in_memory, gather->piece, &in_piece);
}

static bool is_wanted(const struct gather *gather, const struct box *piece)
{
    struct box common;
    for (int i = 0; i < gather->count; i++)
        if (box_common(gather->dimensions, &gather->parts[i].box, piece, &common))
            return true;
    return false;
}

static void move_piece(const struct gather *gather, struct store *store, enum direction direction,
                       const struct box *piece)
{
    if (direction == DIRECTION_READ)
        store_move_box(store, 0, direction, piece, NULL, gather->piece);
    for (int i = 0; i < gather->count; i++)
        exchange(gather, direction, &gather->parts[i], piece);
    if (direction == DIRECTION_WRITE)
        store_move_box(store, 0, direction, piece, NULL, gather->piece);
}

/* The other ranks' side. */
static void hand_over(const struct gather *gather, enum direction direction, const struct box *piece)
{
    struct box common;
    if (!box_common(gather->dimensions, &gather->parts[0].box, piece, &common))
        return;
    const struct frame in_memory = frame_of(&common, &gather->parts[0].box, gather->frame);
    send_or_receive(gather, direction == DIRECTION_WRITE, gather->mover, gather->words, &in_memory, common.count);
}

void gather_move(const struct gather *gather, struct store *store, enum direction direction)
{
    const bool moves = my_rank(gather) == gather->mover;
    struct box piece = {0};
    while (box_next_piece(gather->dimensions, &gather->whole, GATHER_BYTES / sizeof *gather->words, &piece))
        if (!moves)
            hand_over(gather, direction, &piece);
        else if (is_wanted(gather, &piece))
            move_piece(gather, store, direction, &piece);
}
