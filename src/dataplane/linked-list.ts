// A list that adds and removes in a few pointer writes; knows nothing of what it holds.

/** An item that carries its own place in a list, so that being listed costs no object. */
export interface Linked<N> {
  previous: N | null;
  next: N | null;
  isListed: boolean;
}

/** A place for an item that has none of its own; keep it to remove the item again. */
export class ListNode<T> implements Linked<ListNode<T>> {
  readonly item: T;
  previous: ListNode<T> | null = null;
  next: ListNode<T> | null = null;
  isListed = false;

  constructor(item: T) {
    this.item = item;
  }
}

/** Newest first. A Set does the same, but its add and delete cost 2 microseconds of a request's 30. */
export class LinkedList<N extends Linked<N>> {
  #first: N | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(node: N): void {
    if (node.isListed) return;
    node.isListed = true;
    node.next = this.#first;
    if (this.#first !== null) this.#first.previous = node;
    this.#first = node;
    this.#size++;
  }

  remove(node: N): void {
    if (!node.isListed) return;
    node.isListed = false;
    if (node.previous === null) this.#first = node.next;
    else node.previous.next = node.next;
    if (node.next !== null) node.next.previous = node.previous;
    // One that is gone and still points at living ones would carry them into the old generation of the garbage collector.
    node.previous = null;
    node.next = null;
    this.#size--;
  }

  /** What is in the list now; removing while walking it does no harm. */
  nodes(): N[] {
    const nodes: N[] = [];
    for (let node = this.#first; node !== null; node = node.next) nodes.push(node);
    return nodes;
  }
}
