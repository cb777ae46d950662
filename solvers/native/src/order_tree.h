/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Sets of orders in which some items stand side by side: the PQ-trees of K. Booth and G. Lueker,
 * "Testing for the consecutive ones property, interval graphs, and graph planarity using PQ-tree
 * algorithms" (JCSS 1976), by recursion, since they are small. The children of a free node come in
 * any order, those of a chain in the given order or its reverse.
 */
#ifndef BRAID_ORDER_TREE_H
#define BRAID_ORDER_TREE_H

#include "small_set.h"

enum { FREE_NODE = -1, CHAIN_NODE = -2, END_NODE = -3 };

/* Nodes by number; the list of a node's children begins with its first child. */
typedef struct {
  int32_t first; /* child, or -1 */
  int32_t next;  /* sibling, or -1 */
  int16_t kind;  /* the item of a leaf, else FREE_NODE or CHAIN_NODE */
  uint8_t holds; /* whether items of a set are below: none, some or all of them */
} tree_node;

typedef struct {
  tree_node *nodes;
  int32_t count;
  double *log_factorial; /* by number, up to the items */
  double removed;        /* logarithm of the orders of what the last `tree_gather` took out */
} order_tree;

/* Trees of at most so many leaves. Returns whether there is memory. */
bool tree_open(order_tree *t, int32_t items);
void tree_close(order_tree *t);

/* Most numbers that a tree is written in. */
static inline int32_t tree_code_size(int32_t leaves) { return 3 * leaves + 3; }

/* Reads a tree, in place of the one before; returns its root. */
int32_t tree_read(order_tree *t, const int16_t *code);
/* Writes a tree; returns how many numbers. */
int32_t tree_write(const order_tree *t, int32_t root, int16_t *code);

/* A node of items in any order. */
int32_t tree_group(order_tree *t, const int16_t *items, int32_t count);

/* Restricts the orders to those in which the items of a set (by item, at least one) are adjacent,
 * and replaces them by `block`, unless that is -1. Returns the root, or -1 if there is none. */
int32_t tree_gather(order_tree *t, int32_t root, const uint8_t *in_set, int32_t block);

/* Lists sets of these items that are adjacent in many orders: the items below a node, or below
 * neighbours in a chain. Sets are of their numbers (by item). Returns how many, at most `most`. */
int32_t tree_neighbours(order_tree *t, int32_t root, const uint8_t *in_set, const int32_t *number,
                        small_set *sets, int32_t most);

/* Logarithm of how many orders there are. */
double tree_freedom(const order_tree *t, int32_t root);

/* The same for trees of the same orders. */
uint64_t tree_print(const order_tree *t, int32_t root);

/* Puts the items into an ascending order of their keys, if there is one. */
void tree_sort(order_tree *t, int32_t root, const int64_t *key);

#endif
