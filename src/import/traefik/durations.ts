// Durations of Go, as Traefik writes them: numbers of seconds, or texts such as 1m30s; knows no setting.
import type { Members } from "../members.ts";

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Milliseconds; null: no duration. */
export function durationOf(value: unknown): number | null {
  if (typeof value === "number") return value * 1000;
  if (typeof value !== "string" || value.trim() === "") return null;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  if (!/^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+$/.test(text)) return null;
  return [...text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)].reduce(
    (sum, [, count = "0", unit = "s"]) => sum + Number(count) * (UNITS[unit] ?? 0),
    0,
  );
}

/** A timeout of the gateway in milliseconds; null: absent. */
export function millisecondsOf(members: Members | null, name: string): number | null {
  const value = read(members, name);
  return value === null ? null : Math.min(86_400_000, Math.round(value));
}

/** Whole seconds within the bounds; null: absent. */
export function secondsOf(
  members: Members,
  name: string,
  { min, max }: { readonly min: number; readonly max: number },
): number | null {
  const value = read(members, name);
  if (value === null) return null;
  const seconds = Math.min(max, Math.max(min, Math.round(value / 1000)));
  if (seconds * 1000 !== value)
    members.changed(name, `${value} ms became ${seconds} s, the nearest valid value`);
  return seconds;
}

function read(members: Members | null, name: string): number | null {
  const value = members?.raw(name) ?? null;
  if (value === null) return null;
  const found = durationOf(value);
  if (found === null)
    members?.changed(name, `${String(value)} is no duration: the default applies`);
  return found;
}
