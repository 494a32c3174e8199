// Single-key shortcuts, inactive while typing; knows no page.
import { useEffect, useRef } from "react";

/** Calls `run` when the key is pressed outside of inputs and dialogs. Null: no action. */
export function useShortcut(key: string, run: (() => void) | null): void {
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== key || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTyping(event.target) || document.querySelector('[role="dialog"]') !== null) return;
      if (latest.current === null) return;
      event.preventDefault();
      latest.current();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [key]);
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches("input, textarea, select, [role='textbox']"));
