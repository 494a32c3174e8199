// Holds back requests whose session has ended until somebody has signed in again; knows no page.

/** One for the whole UI. Requests that were answered with 401 wait here; the dialog over the page lets them go on. */
export class SignInGate {
  readonly #listeners = new Set<() => void>();
  #waiting: { readonly promise: Promise<void>; readonly open: () => void } | null = null;

  /** Whether somebody has to sign in. For useSyncExternalStore. */
  readonly isClosed = (): boolean => this.#waiting !== null;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Resolves when somebody has signed in. */
  wait(): Promise<void> {
    if (this.#waiting === null) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting = { promise, open: resolve };
      this.#tell();
    }
    return this.#waiting.promise;
  }

  /** Somebody has signed in: everything that waits is sent again. */
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
