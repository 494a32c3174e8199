// Holds requests whose session has ended until the next sign-in; knows no page.

/** One for the whole UI. Requests with status 401 wait here until the dialog releases them. */
export class SignInGate {
  readonly #listeners = new Set<() => void>();
  #waiting: { readonly promise: Promise<void>; readonly open: () => void } | null = null;

  /** Whether sign-in is required. For useSyncExternalStore. */
  readonly isClosed = (): boolean => this.#waiting !== null;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Resolves after sign-in. */
  wait(): Promise<void> {
    if (this.#waiting === null) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting = { promise, open: resolve };
      this.#tell();
    }
    return this.#waiting.promise;
  }

  /** After sign-in: releases all waiting requests. */
  open(): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.open();
    this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
