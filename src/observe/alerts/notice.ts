// Notifications of alerts, and the signals behind them; knows no sink.
import type { AlertEvent } from "../../model/alert.ts";

/** The object of an event. */
export interface NoticeObject {
  readonly kind: "target" | "certificate" | "service" | "route" | "worker" | "gateway" | "node";
  /** Empty for workers and the gateway. */
  readonly id: string;
  readonly name: string;
}

/** The beginning or the end of an incident. */
export interface Signal {
  /** Event name of the beginning. */
  readonly event: Exclude<AlertEvent, "target_up">;
  /** The same for beginning and end. */
  readonly key: string;
  readonly state: "begun" | "over";
  readonly object: NoticeObject;
  /** Of a target. */
  readonly serviceId: string | null;
  /** Summary, one line. */
  readonly title: string;
  readonly message: string;
  /** Notifies on every signal, also of an open incident, and never repeats by time. */
  readonly isAlwaysTold: boolean;
  /** Of a certificate: until when it is valid. */
  readonly validUntil: string | null;
}

/** One notification. */
export interface Notice {
  readonly id: string;
  readonly event: AlertEvent | "test";
  readonly status: "firing" | "resolved" | "test";
  /** RFC 3339, UTC. */
  readonly at: string;
  /** When it began. */
  readonly since: string;
  readonly object: NoticeObject;
  readonly title: string;
  readonly message: string;
}

/** A notification with its sender. */
export interface Sent extends Notice {
  readonly program: "sluice";
  /** Name of the alert. */
  readonly alert: string;
  /** Display name of the gateway: its public URL, else the host name. */
  readonly gateway: string;
}

/** The notification of a test. */
export const testNotice = (at: string): Notice => ({
  id: Bun.randomUUIDv7(),
  event: "test",
  status: "test",
  at,
  since: at,
  object: { kind: "gateway", id: "", name: "gateway" },
  title: "This is a test",
  message: "A user has requested a test of this alert. Nothing is wrong.",
});

/** On one line, without control characters. */
export const oneLine = (text: string) => text.replace(/[\x00-\x1f\x7f]+/g, " ").slice(0, 300);
