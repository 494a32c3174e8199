// The kinds of events, and who may read them; knows no event.
import type { Role } from "./principal.ts";

/** Every kind of event and the minimum role of its readers. */
export const eventKinds = {
  config: "viewer",
  audit: "admin",
  health: "viewer",
  certificate: "viewer",
  acme: "viewer",
  listener: "viewer",
  worker: "viewer",
  overload: "viewer",
  node: "viewer",
} as const satisfies Readonly<Record<string, Role>>;

export type EventKind = keyof typeof eventKinds;

export const eventKindNames = Object.keys(eventKinds) as EventKind[];
