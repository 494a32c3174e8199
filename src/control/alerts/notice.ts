// What is told to people and programs, and what it is made from; knows no way to send it.
import type { AlertEvent } from "../../model/alert.ts";

/** What something has happened to. */
export interface NoticeObject {
  readonly kind: "target" | "certificate" | "service" | "route" | "worker" | "gateway";
  /** Empty for a worker and the gateway. */
  readonly id: string;
  readonly name: string;
}

/** Something has begun, or is over. */
export interface Signal {
  /** By what its beginning is called. */
  readonly event: Exclude<AlertEvent, "target_up">;
  /** The same for beginning and end. */
  readonly key: string;
  readonly state: "begun" | "over";
  readonly object: NoticeObject;
  /** Of a target. */
  readonly serviceId: string | null;
  /** One line. */
  readonly title: string;
  readonly message: string;
  /** Told whenever it comes, although it is known to have begun, and not repeated besides. */
  readonly isAlwaysTold: boolean;
  /** Of a certificate: until when it is valid. */
  readonly validUntil: string | null;
}

/** One message. */
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

/** What is sent: a message and who it is from. */
export interface Sent extends Notice {
  readonly program: "sluice";
  /** Name of the alert. */
  readonly alert: string;
  /** What people call the gateway: its public address, else the name of its machine. */
  readonly gateway: string;
}

/** What a test sends. */
export const testNotice = (at: string): Notice => ({
  ...{ id: Bun.randomUUIDv7(), event: "test", status: "test", at, since: at },
  object: { kind: "gateway", id: "", name: "gateway" },
  title: "This is a test",
  message: "Somebody has asked for a test of this alert. Nothing is wrong.",
});

/** On one line and without what could end it. */
export const oneLine = (text: string) => text.replace(/[\x00-\x1f\x7f]+/g, " ").slice(0, 300);
