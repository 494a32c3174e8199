// A countdown in seconds; renders nothing.
import { useEffect, useState } from "react";

/** Seconds until the time in milliseconds since the epoch, counted down; 0 when it is over. */
export function useSecondsUntil(untilMs: number): number {
  const [now, setNow] = useState(Date.now);
  const isOver = now >= untilMs;
  useEffect(() => {
    setNow(Date.now());
    if (isOver && Date.now() >= untilMs) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [untilMs, isOver]);
  return Math.max(0, Math.ceil((untilMs - now) / 1000));
}

/** `4 min 12 s`. */
export function inWords(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  const rest = seconds % 60;
  return [minutes > 0 ? `${minutes} min` : "", rest > 0 ? `${rest} s` : ""]
    .filter((part) => part !== "")
    .join(" ");
}
