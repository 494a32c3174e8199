// Who is told what: which happenings, and where the messages go; knows no mail and no web address.
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
  listOf(t.String({ minLength: 1, maxLength: 128 }), description, 200);

const shared = {
  name: name("Unique name"),
  events: t.Array(oneOf(alertEvents, { description: "Something that happens" }), {
    minItems: 1,
    maxItems: alertEvents.length,
    uniqueItems: true,
    description:
      "What is told: target_down and target_up: a target fails or takes traffic again; certificate_failing: one cannot be ordered or renewed; certificate_expiring: one runs out or has run out; error_share: too many answers are 5xx; worker_died: a worker ended unexpectedly; overload: memory, or files and sockets, are short, and new requests are refused",
  }),
  service_ids: keys(
    "Ids or names: targets of these services only, and the error share of each; empty with route_ids: everything",
  ),
  route_ids: keys(
    "Ids or names: the error share of each of these routes, and targets of their services only",
  ),
  threshold: group(
    {
      percent: t.Number({
        exclusiveMinimum: 0,
        maximum: 100,
        default: 5,
        description: "Share of 5xx among all answers, in percent, from which it is too much",
      }),
      window_seconds: integer(300, {
        minimum: 10,
        maximum: 3600,
        description: "Over how many seconds it is counted",
      }),
      min_requests: integer(20, {
        minimum: 1,
        maximum: 1_000_000,
        description: "Fewer requests in this time say nothing",
      }),
    },
    "For error_share",
  ),
  quiet_seconds: integer(300, {
    minimum: 0,
    maximum: 86_400,
    description:
      "What was told to begin is told to begin again at the earliest after so many seconds, if it lasts then",
  }),
  repeat_after: integer(14_400, {
    minimum: 0,
    maximum: 604_800,
    description: "What lasts is told again after so many seconds; 0: never",
  }),
  resolved: flag(true, "Whether it is told that something that was told is over"),
  type: destination(oneOf(alertTypes, { description: "How messages are sent" })),
  enabled: flag(true, "Whether anything is sent"),
  ...labels,
};

/** What clients send: `config` is checked against the type's own schema. */
export const alertInput = t.Object(
  {
    ...shared,
    config: t.Record(t.String(), t.Unknown(), {
      default: {},
      description: `Where messages are sent to. ${ALL_KEPT}. {"$secret": "name"} refers to one that is stored by name`,
    }),
  },
  { additionalProperties: false, title: "Alert" },
);

export type AlertInput = Static<typeof alertInput>;

/** As it is stored: references are ids, secrets in `config` are `{"sealed": ...}` or `{"$secret": ...}`. */
export type Alert = Readonly<AlertInput> & Identity;
