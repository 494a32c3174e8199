// Asks for confirmation before leaving a page with unsaved changes; knows no form.
import { Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { createContext, useContext, useEffect } from "react";
import type { BaseLocationHook } from "wouter";
import { useBrowserLocation } from "wouter/use-browser-location";

/** Tracks forms with unsaved changes. */
export class LeaveGuard {
  readonly #dirty = new Set<object>();
  /** The page, to which a Back that is not confirmed returns. */
  #here = location.href;

  constructor() {
    // Before the router, which would show the other page.
    addEventListener("popstate", (event) => {
      const isSamePage = new URL(this.#here).pathname === location.pathname;
      if (this.#dirty.size === 0 || isSamePage) return;
      event.stopImmediatePropagation();
      history.pushState(history.state, "", this.#here);
      // One step back from here is now what was wanted, also where that was a step forward.
      this.ask(() => history.back());
    });
  }

  /** Called for each page that is shown. */
  at(href: string): void {
    this.#here = href;
  }

  /** Returns the function that removes the mark. */
  mark(): () => void {
    const key = {};
    this.#dirty.add(key);
    return () => this.#dirty.delete(key);
  }

  /** Calls `leave` at once, or after confirmation. */
  ask(leave: () => void): void {
    if (this.#dirty.size === 0) return leave();
    modals.openConfirmModal({
      title: "Leave without saving?",
      children: <Text size="sm">This page has unsaved changes.</Text>,
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

/** Guards the page while `isDirty`: for links inside the UI and for closing the tab. */
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

/** The router's location hook; navigation may require confirmation. */
export function createGuardedLocation(guard: LeaveGuard): BaseLocationHook {
  return () => {
    const [path, navigate] = useBrowserLocation();
    guard.at(location.href);
    const guarded: typeof navigate = (to, options) => {
      // A change of URL filters stays on the page.
      const isSamePage = new URL(to, location.href).pathname === location.pathname;
      if (isSamePage) navigate(to, options);
      else guard.ask(() => navigate(to, options));
    };
    return [path, guarded];
  };
}
