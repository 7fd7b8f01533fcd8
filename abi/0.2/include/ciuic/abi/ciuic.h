/* SPDX-License-Identifier: MIT
 *
 * The whole ciuic plugin ABI. A plugin of one kind needs plugin.h, services.h and its kind's
 * header. */
#ifndef CIUIC_ABI_CIUIC_H_
#define CIUIC_ABI_CIUIC_H_

#include <ciuic/abi/batch_scheduler.h>
#include <ciuic/abi/checkpoint.h>
#include <ciuic/abi/communicator.h>
#include <ciuic/abi/host.h>
#include <ciuic/abi/note.h>
#include <ciuic/abi/optimizer.h>
#include <ciuic/abi/plugin.h>
#include <ciuic/abi/precision.h>
#include <ciuic/abi/profiler.h>
#include <ciuic/abi/services.h>
#include <ciuic/abi/sharding.h>
#include <ciuic/abi/state.h>
#include <ciuic/abi/types.h>
#include <ciuic/abi/work.h>

#endif
