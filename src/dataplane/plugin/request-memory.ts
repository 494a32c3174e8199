// Values that plugins store for one request; knows no plugin.
import type { Memory } from "../../pdk/context.ts";

/** Most requests store at most one value: the map is created for the second one. */
export class RequestMemory implements Memory {
  #key: object | null = null;
  #value: unknown;
  #others: Map<object, unknown> | null = null;

  get(key: object): unknown {
    return key === this.#key ? this.#value : this.#others?.get(key);
  }

  set(key: object, value: unknown): void {
    if (this.#key === null || this.#key === key) {
      this.#key = key;
      this.#value = value;
      this.#others?.delete(key);
      return;
    }
    this.#others ??= new Map();
    this.#others.set(key, value);
  }

  delete(key: object): void {
    if (key === this.#key) {
      this.#key = null;
      this.#value = undefined;
    } else this.#others?.delete(key);
  }

  copy(): RequestMemory {
    const copy = new RequestMemory();
    copy.#key = this.#key;
    copy.#value = this.#value;
    copy.#others = this.#others === null ? null : new Map(this.#others);
    return copy;
  }
}
