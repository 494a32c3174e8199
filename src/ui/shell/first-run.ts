// Whether the user chose to continue without users, in this tab; knows no form.
import { useSyncExternalStore } from "react";

const SKIPPED = "sluice.first-run-skipped";
const CHANGED = "sluice:first-run";

const isSkipped = (): boolean => sessionStorage.getItem(SKIPPED) !== null;

const subscribe = (listener: () => void): (() => void) => {
  addEventListener(CHANGED, listener);
  return () => removeEventListener(CHANGED, listener);
};

/** True: the first-run page is skipped. */
export const useIsFirstRunSkipped = (): boolean => useSyncExternalStore(subscribe, isSkipped);

export function skipFirstRun(): void {
  sessionStorage.setItem(SKIPPED, "1");
  dispatchEvent(new Event(CHANGED));
}

/** Shows the first-run page after all. */
export function beginFirstRun(): void {
  sessionStorage.removeItem(SKIPPED);
  dispatchEvent(new Event(CHANGED));
}
