// What plugins keep for one request; knows no plugin.
import type { Memory } from "../../pdk/context.ts";

/** Most requests keep nothing or one thing: there is no map before the second one. */
export class RequestMemory implements Memory {
  #place: object | null = null;
  #value: unknown;
  #others: Map<object, unknown> | null = null;

  get(place: object): unknown {
    return place === this.#place ? this.#value : this.#others?.get(place);
  }

  set(place: object, value: unknown): void {
    if (this.#place === null || this.#place === place) {
      this.#place = place;
      this.#value = value;
      this.#others?.delete(place);
      return;
    }
    this.#others ??= new Map();
    this.#others.set(place, value);
  }

  delete(place: object): void {
    if (place === this.#place) {
      this.#place = null;
      this.#value = undefined;
    } else this.#others?.delete(place);
  }

  copy(): RequestMemory {
    const copy = new RequestMemory();
    copy.#place = this.#place;
    copy.#value = this.#value;
    copy.#others = this.#others === null ? null : new Map(this.#others);
    return copy;
  }
}
