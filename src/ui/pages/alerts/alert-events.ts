// What alerts can tell, in words; draws nothing.
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
    text: "Health checks or requests fail, and it gets no traffic any more",
  },
  { event: "target_up", label: "A target is up again", text: "It takes traffic again" },
  {
    event: "certificate_failing",
    label: "A certificate cannot be ordered or renewed",
    text: "With the reason, and when it is tried again",
  },
  {
    event: "certificate_expiring",
    label: "A certificate runs out",
    text: "30, 14, 7, 3 and 1 days before the end, and at the end",
  },
  {
    event: "error_share",
    label: "Too many errors",
    text: "More answers than a threshold are 5xx",
  },
  {
    event: "worker_died",
    label: "A worker ended unexpectedly",
    text: "It is started again by itself, and its requests were cut",
  },
  {
    event: "overload",
    label: "The gateway is overloaded",
    text: "Memory, or files and sockets, are short, and new requests are refused",
  },
];

/** `A target is down`; what is new here keeps its word. */
export const labelOf = (event: string): string =>
  event === "test"
    ? "Test"
    : (eventWords.find((words) => words.event === event)?.label ?? event.replaceAll("_", " "));
