// Figures of a node in words; knows no component.

/** `up to date`, `2 entries behind`: sign-ins and audit entries are entries of the log too. */
export function lagText(served: number, head: number): string {
  const behind = Math.max(0, head - served);
  if (behind === 0) return "up to date";
  return behind === 1 ? "1 entry behind" : `${behind} entries behind`;
}

/** Time since the last heartbeat: `just now`, `12 s ago`, `3 min ago`. */
export function seenText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 2) return "just now";
  if (seconds < 120) return `${seconds} s ago`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min ago`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h ago` : `${Math.round(hours / 24)} days ago`;
}

/** Beyond it codes of second factors and tokens may be judged differently by other nodes. */
export const CLOCK_LIMIT_MS = 1000;

/** `in sync`, `0.3 s ahead`, `5 min behind`. */
export function clockText(offsetMs: number): string {
  const ms = Math.abs(offsetMs);
  if (ms < 100) return "in sync";
  const seconds = ms / 1000;
  const amount = seconds < 120 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds / 60)} min`;
  return `${amount} ${offsetMs > 0 ? "ahead" : "behind"}`;
}
