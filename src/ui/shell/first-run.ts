// Whether somebody has chosen to go on without users, in this tab; knows no form.
import { useSyncExternalStore } from "react";

const SKIPPED = "sluice.first-run-skipped";
const CHANGED = "sluice:first-run";

const isSkipped = (): boolean => sessionStorage.getItem(SKIPPED) !== null;

const subscribe = (listener: () => void): (() => void) => {
  addEventListener(CHANGED, listener);
  return () => removeEventListener(CHANGED, listener);
};

/** True: the question for the first administrator stays away. */
export const useIsFirstRunSkipped = (): boolean => useSyncExternalStore(subscribe, isSkipped);

export function skipFirstRun(): void {
  sessionStorage.setItem(SKIPPED, "1");
  dispatchEvent(new Event(CHANGED));
}

/** Asks for the first administrator after all. */
export function beginFirstRun(): void {
  sessionStorage.removeItem(SKIPPED);
  dispatchEvent(new Event(CHANGED));
}
