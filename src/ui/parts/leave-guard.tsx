// Asks before a page with unsaved changes is left; knows no form.
import { Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { createContext, useContext, useEffect } from "react";
import type { BaseLocationHook } from "wouter";
import { useBrowserLocation } from "wouter/use-browser-location";

/** Knows which forms have changes that nobody has saved. */
export class LeaveGuard {
  readonly #dirty = new Set<object>();

  /** Returns the function that takes the mark away again. */
  mark(): () => void {
    const key = {};
    this.#dirty.add(key);
    return () => this.#dirty.delete(key);
  }

  /** Calls `leave` at once, or when the person agrees. */
  ask(leave: () => void): void {
    if (this.#dirty.size === 0) return leave();
    modals.openConfirmModal({
      title: "Leave without saving?",
      children: <Text size="sm">What you have typed on this page has not been saved.</Text>,
      labels: { confirm: "Leave", cancel: "Stay" },
      confirmProps: { color: "red" },
      onConfirm: () => {
        this.#dirty.clear();
        leave();
      },
    });
  }
}

export const LeaveGuardContext = createContext<LeaveGuard | null>(null);

/** Guards the page as long as `isDirty`: links inside the UI ask, and so does the browser when it is closed. */
export function useLeaveGuard(isDirty: boolean): void {
  const guard = useContext(LeaveGuardContext);
  useEffect(() => {
    if (!isDirty) return;
    const unmark = guard?.mark();
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => {
      unmark?.();
      removeEventListener("beforeunload", warn);
    };
  }, [guard, isDirty]);
}

/** The location of the browser, for the router; going elsewhere may be asked about first. */
export function createGuardedLocation(guard: LeaveGuard): BaseLocationHook {
  return () => {
    const [path, navigate] = useBrowserLocation();
    const guarded: typeof navigate = (to, options) => {
      // Filters in the URL are no other page.
      const isSamePage = new URL(to, location.href).pathname === location.pathname;
      if (isSamePage) navigate(to, options);
      else guard.ask(() => navigate(to, options));
    };
    return [path, guarded];
  };
}
