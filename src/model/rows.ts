// The rows of a collection, however they are kept; knows no collection.
import type { Identity } from "./fields.ts";

/** What objects are found by, beside their ids; null: not by this. One function is one index. */
export type IndexOf<T> = (object: T) => string | null;

/** Objects that stay, in the order of their age: what a `LayeredMap` lays its changes over. */
export interface Rows<T extends Identity> {
  readonly size: number;
  /** The latest time at which one of them was created or changed, in milliseconds since 1970. */
  readonly latest: number;
  at(row: number): T;
  /** The row with this id; -1: there is none. */
  rowOf(id: string): number;
  /** Those of which the index says `value`, except the one with the id `except`, the youngest first; undefined: there is no such index. */
  find(indexOf: IndexOf<T>, value: string, except: string | null): T[] | undefined;
  /** Other objects in rows of the same kind. */
  withRows(objects: Iterable<T>): Rows<T>;
}
