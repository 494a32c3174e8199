// Labels and help of the alert events; renders nothing.
import type { AlertEvent } from "./alert-values.ts";

export interface EventWords {
  readonly event: AlertEvent;
  readonly label: string;
  readonly text: string;
}

export const eventWords: readonly EventWords[] = [
  {
    event: "target_down",
    label: "A target is down",
    text: "Health checks or requests fail, and the target gets no traffic",
  },
  { event: "target_up", label: "A target is up again", text: "The target gets traffic again" },
  {
    event: "certificate_failing",
    label: "A certificate cannot be issued or renewed",
    text: "With the reason and the time of the next attempt",
  },
  {
    event: "certificate_expiring",
    label: "A certificate expires",
    text: "30, 14, 7, 3 and 1 days before expiry, and at expiry",
  },
  {
    event: "error_share",
    label: "High error rate",
    text: "The share of 5xx responses is above a threshold",
  },
  {
    event: "worker_died",
    label: "A worker crashed",
    text: "The gateway restarts it; its requests were aborted",
  },
  {
    event: "overload",
    label: "The gateway is overloaded",
    text: "Memory, or files and sockets, run short, and the gateway rejects new requests",
  },
];

/** `A target is down`; an unknown event keeps its name. */
export const labelOf = (event: string): string =>
  event === "test"
    ? "Test"
    : (eventWords.find((words) => words.event === event)?.label ?? event.replaceAll("_", " "));
