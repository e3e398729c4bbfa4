/* The particles kernel: the moving of what every rank has its share of. */
#ifndef IOGAUGE_PARTICLES_MOVES_H
#define IOGAUGE_PARTICLES_MOVES_H

#include "particles_settings.h"

void particles_write(struct run *run);
void particles_read(struct run *run);

/* Elements of a buffer, within --memory-limit; and the limit that lets a buffer hold one row. */
uint64_t buffer_elements(const struct particles_settings *s);
uint64_t least_memory_bytes(const struct particles_settings *s);

#endif
