// States and times: a dot with a word, and relative times; knows no resource.
import { Badge, Tooltip } from "@mantine/core";
import { useEffect, useState } from "react";

export type Tone = "good" | "warn" | "bad" | "idle";

const colors: Readonly<Record<Tone, string>> = {
  good: "teal",
  warn: "yellow",
  bad: "red",
  idle: "gray",
};

const tones: Readonly<Record<string, Tone>> = {
  healthy: "good",
  valid: "good",
  ready: "good",
  ok: "good",
  on: "good",
  enabled: "good",
  serving: "good",
  degraded: "warn",
  draining: "warn",
  joining: "warn",
  leaving: "warn",
  lagging: "warn",
  renewing: "warn",
  ordering: "warn",
  pending: "warn",
  unhealthy: "bad",
  failing: "bad",
  failed: "bad",
  expired: "bad",
  refused: "bad",
  away: "bad",
  cut_off: "bad",
  outdated: "bad",
  diverged: "bad",
};

/** The tone of an API state; unknown states are idle. */
export const toneOf = (state: string): Tone => tones[state] ?? "idle";

interface StatusProps {
  /** The API's state, such as `healthy`. */
  readonly state: string;
  readonly tone?: Tone;
  /** Details, on hover and focus. */
  readonly detail?: string | null | undefined;
}

/** A colored dot, beside the state in words. */
export function StatusMark({ tone }: { readonly tone: Tone }) {
  return (
    <span
      aria-hidden="true"
      className="status-mark"
      style={{ background: `var(--mantine-color-${colors[tone]}-6)` }}
    />
  );
}

/** A colored dot with a word, because color alone is not accessible. Plain elements: long lists have one in each row. */
export function StatusDot({ state, tone = toneOf(state), detail }: StatusProps) {
  // A tooltip costs more than the row around it, so it renders on first use.
  const [isUsed, setUsed] = useState(false);
  const dot = (
    <span className="status" onPointerEnter={() => setUsed(true)}>
      <StatusMark tone={tone} />
      <span>{state.replaceAll("_", " ")}</span>
    </span>
  );
  return detail && isUsed ? (
    <Tooltip label={detail} multiline maw={320} defaultOpened>
      {dot}
    </Tooltip>
  ) : (
    dot
  );
}

/** The same as a badge. */
export function StatusBadge({ state, tone = toneOf(state) }: StatusProps) {
  return (
    <Badge variant="light" color={colors[tone]} tt="none" className="status-badge">
      {state.replaceAll("_", " ")}
    </Badge>
  );
}

const steps: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** `3 minutes ago`, `in 2 days`. */
export function relativeTime(at: string, now = Date.now()): string {
  const seconds = Math.round((Date.parse(at) - now) / 1000);
  if (Number.isNaN(seconds)) return at;
  for (const [unit, size] of steps)
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  return Math.abs(seconds) < 10 ? "just now" : relative.format(seconds, "second");
}

/** A relative time, with the exact time on hover; null: `never`. */
export function RelativeTime({
  at,
  never = "never",
}: {
  readonly at: string | null | undefined;
  readonly never?: string;
}) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), 30_000);
    return () => clearInterval(timer);
  }, []);
  if (at === null || at === undefined) return <span>{never}</span>;
  return (
    <time dateTime={at} title={absolute.format(new Date(at))}>
      {relativeTime(at)}
    </time>
  );
}
