// Which of many things goes when there is no room: SIEVE (Zhang et al., NSDI 2024); knows nothing of what they are.

/** One thing in the order of its coming. */
export class Seat<T> {
  readonly item: T;
  /** Asked for since the hand last passed. */
  isWanted = false;
  older: Seat<T> | null = null;
  newer: Seat<T> | null = null;

  constructor(item: T) {
    this.item = item;
  }
}

/**
 * A hand goes from the oldest to the newest: what was asked for since it last passed stays where it is, the first other one
 * goes. So what is asked for once, however much of it comes, only takes the place of its like, and being asked for costs no more
 * than setting a mark.
 */
export class Sieve<T> {
  #newest: Seat<T> | null = null;
  #oldest: Seat<T> | null = null;
  #hand: Seat<T> | null = null;

  add(seat: Seat<T>): void {
    seat.older = this.#newest;
    seat.newer = null;
    if (this.#newest === null) this.#oldest = seat;
    else this.#newest.newer = seat;
    this.#newest = seat;
  }

  remove(seat: Seat<T>): void {
    if (this.#hand === seat) this.#hand = seat.newer;
    if (seat.older === null) this.#oldest = seat.newer;
    else seat.older.newer = seat.newer;
    if (seat.newer === null) this.#newest = seat.older;
    else seat.newer.older = seat.older;
    seat.older = null;
    seat.newer = null;
  }

  /** The one that has to go, which `remove` is to be called for; null: there is none. */
  next(): Seat<T> | null {
    let seat = this.#hand ?? this.#oldest;
    while (seat?.isWanted) {
      seat.isWanted = false;
      seat = seat.newer ?? this.#oldest;
    }
    this.#hand = seat?.newer ?? null;
    return seat;
  }
}
