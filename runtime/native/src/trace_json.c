/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Traces as Chrome's trace events, see "Trace Event Format" (2016): complete events (`X`) on rows
 * of processes and threads. Process 1 has the threads of the host, process 2 the devices, process 3
 * the stages of streams.
 */
#define _GNU_SOURCE
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HOST = 1, DEVICES = 2, STAGES = 3 };

/* Prints at most `length` bytes of a text between quotes. */
static void print_text(FILE *file, const char *text, size_t length) {
  fputc('"', file);
  for (size_t i = 0; i < length && text[i] != '\0'; ++i) {
    unsigned char own = (unsigned char)text[i];
    if (own == '"' || own == '\\')
      fprintf(file, "\\%c", own);
    else if (own < 0x20)
      fprintf(file, "\\u%04x", own);
    else
      fputc(own, file);
  }
  fputc('"', file);
}

static void print_whole(FILE *file, const char *text) { print_text(file, text, strlen(text)); }

/* The name of a row, as an event that takes no time. */
static void print_row(FILE *file, const char *what, int process, int64_t thread, const char *name) {
  fprintf(file,
          "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%" PRId64 ",\"args\":{\"name\":", what,
          process, thread);
  print_whole(file, name);
  fprintf(file, "}},\n");
}

static void print_rows(FILE *file, const braid_model_v2 *model) {
  print_row(file, "process_name", HOST, 0, "host");
  if (model->device_count > 0)
    print_row(file, "process_name", DEVICES, 0, "devices");
  for (int64_t i = 0; i < model->device_count; ++i)
    print_row(file, "thread_name", DEVICES, i, model->devices[i].name);
  if (model->stage_count > 0)
    print_row(file, "process_name", STAGES, 0, "stages");
  for (int64_t i = 0; i < model->stage_count; ++i)
    print_row(file, "thread_name", STAGES, i, model->functions[model->stages[i].function].name);
}

/* The names of the ops of a kernel, without its layouts, which follow a tab. */
static void print_kernel(FILE *file, const braid_model_v2 *model, int64_t counter) {
  const char *name = counter >= 0 && counter < model->counter_count ? model->counter_names[counter]
                                                                    : "part of a kernel";
  print_text(file, name, strcspn(name, "\t"));
}

static void print_name(FILE *file, const braid_model_v2 *model, const braid_trace_event *event) {
  if (event->kind == BRAID_TRACE_KERNEL || event->kind == BRAID_TRACE_PART)
    print_kernel(file, model, event->index);
  else if (event->kind == BRAID_TRACE_LAUNCH)
    print_whole(file, model->functions[event->index].name);
  else if (event->kind == BRAID_TRACE_STAGE)
    fprintf(file, "\"request %" PRId64 "\"", event->value);
  else
    print_whole(file, "run");
}

static const char *kind_name(int64_t kind) {
  static const char *const names[] = {"run", "kernel", "part", "launch", "stage"};
  return names[kind];
}

static void print_arguments(FILE *file, const braid_model_v2 *model,
                            const braid_trace_event *event) {
  if (event->kind == BRAID_TRACE_KERNEL) {
    const char *tab = strchr(model->counter_names[event->index], '\t');
    fprintf(file, ",\"args\":{\"layouts\":");
    print_whole(file, tab != NULL ? tab + 1 : "");
    fprintf(file, "}");
  } else if (event->kind == BRAID_TRACE_LAUNCH) {
    fprintf(file, ",\"args\":{\"device_us\":%.3f}", (double)event->value * 1e-3);
  }
}

static void print_event(FILE *file, const braid_model_v2 *model, const braid_trace_event *event,
                        uint64_t origin) {
  int process = event->kind == BRAID_TRACE_LAUNCH  ? DEVICES
                : event->kind == BRAID_TRACE_STAGE ? STAGES
                                                   : HOST;
  int64_t thread = event->kind == BRAID_TRACE_LAUNCH  ? model->functions[event->index].device
                   : event->kind == BRAID_TRACE_STAGE ? event->index
                                                      : event->thread;
  fprintf(file, "{\"ph\":\"X\",\"name\":");
  print_name(file, model, event);
  fprintf(file, ",\"cat\":\"%s\",\"pid\":%d,\"tid\":%" PRId64 ",\"ts\":%.3f,\"dur\":%.3f",
          kind_name(event->kind), process, thread, (double)(event->begin - origin) * 1e-3,
          (double)(event->end - event->begin) * 1e-3);
  print_arguments(file, model, event);
  fprintf(file, "}");
}

/* The time that stands as 0: when the first event began. */
static uint64_t origin_of(braid_trace_t *trace) {
  uint64_t first = UINT64_MAX;
  for (int64_t i = 0; i < braid_trace_count(trace); ++i) {
    const braid_trace_event *event = braid_trace_get(trace, i);
    first = event->begin < first ? event->begin : first;
  }
  return first;
}

int braid_trace_write(braid_trace_t *trace, const char *path) {
  if (trace == NULL || path == NULL) {
    braid_set_error("the %s is NULL", trace == NULL ? "trace" : "path");
    return 1;
  }
  FILE *file = fopen(path, "w");
  if (file == NULL) {
    braid_set_error("cannot write '%s': %s", path, strerror(errno));
    return 1;
  }
  const braid_model_v2 *model = trace->model->descriptor;
  uint64_t origin = origin_of(trace);
  fprintf(file, "{\"displayTimeUnit\":\"ms\",\"dropped\":%" PRId64 ",\"traceEvents\":[\n",
          braid_trace_dropped(trace));
  print_rows(file, model);
  for (int64_t i = 0; i < braid_trace_count(trace); ++i) {
    print_event(file, model, braid_trace_get(trace, i), origin);
    fprintf(file, ",\n");
  }
  fprintf(file,
          "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%d,\"tid\":0,"
          "\"args\":{\"sort_index\":0}}\n]}\n",
          HOST);
  bool failed = ferror(file) != 0;
  failed = fclose(file) != 0 || failed;
  if (failed)
    braid_set_error("cannot write '%s': %s", path, strerror(errno));
  return failed;
}
