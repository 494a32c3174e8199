// An alert: which events it reports, and where it sends the messages; knows neither SMTP nor HTTP.
import { type Static, Type as t } from "@sinclair/typebox";
import { destination } from "./destination.ts";
import {
  ALL_KEPT,
  flag,
  group,
  type Identity,
  integer,
  labels,
  listOf,
  name,
  oneOf,
} from "./fields.ts";

export const alertEvents = [
  "target_down",
  "target_up",
  "certificate_failing",
  "certificate_expiring",
  "error_share",
  "worker_died",
  "overload",
] as const;
export type AlertEvent = (typeof alertEvents)[number];

export const alertTypes = ["webhook", "smtp"] as const;
export type AlertType = (typeof alertTypes)[number];

const keys = (description: string) =>
  listOf(t.String({ minLength: 1, maxLength: 128 }), description, { maxItems: 200 });

const shared = {
  name: name("Unique name"),
  events: t.Array(oneOf(alertEvents, { description: "An event" }), {
    minItems: 1,
    maxItems: alertEvents.length,
    uniqueItems: true,
    description:
      "Events to report. target_down, target_up: a target became unhealthy or healthy; certificate_failing: a certificate cannot be issued or renewed; certificate_expiring: a certificate expires soon or has expired; error_share: too many responses are 5xx; worker_died: a worker ended unexpectedly; overload: memory or file descriptors are short, and the gateway refuses new requests",
  }),
  service_ids: keys(
    "IDs or names: only targets of these services, and the error share of each; empty, with empty route_ids: everything",
  ),
  route_ids: keys(
    "IDs or names: the error share of each of these routes, and only targets of their services",
  ),
  threshold: group(
    {
      percent: t.Number({
        exclusiveMinimum: 0,
        maximum: 100,
        default: 5,
        description: "Percentage of 5xx responses from which the alert fires",
      }),
      window_seconds: integer(300, {
        minimum: 10,
        maximum: 3600,
        description: "Time window in seconds",
      }),
      min_requests: integer(20, {
        minimum: 1,
        maximum: 1_000_000,
        description: "With fewer requests in the window the alert does not fire",
      }),
    },
    "Threshold of error_share",
  ),
  quiet_seconds: integer(300, {
    minimum: 0,
    maximum: 86_400,
    description:
      "Seconds after a notification before the same alert may fire again, if the condition still holds",
  }),
  repeat_after: integer(14_400, {
    minimum: 0,
    maximum: 604_800,
    description: "Seconds after which an alert that lasts is sent again; 0: never",
  }),
  resolved: flag(true, "Whether to notify when an alert is resolved"),
  type: destination(oneOf(alertTypes, { description: "How notifications are sent" })),
  enabled: flag(true, "Whether notifications are sent"),
  ...labels,
};

/** What clients send: `config` is checked against the type's own schema. */
export const alertInput = t.Object(
  {
    ...shared,
    config: t.Record(t.String(), t.Unknown(), {
      default: {},
      description: `Where notifications are sent. ${ALL_KEPT}. {"$secret": "name"} refers to a named secret`,
    }),
  },
  { additionalProperties: false, title: "Alert" },
);

export type AlertInput = Static<typeof alertInput>;

/** As it is stored: references are ids, secrets in `config` are `{"sealed": ...}` or `{"$secret": ...}`. */
export type Alert = Readonly<AlertInput> & Identity;
