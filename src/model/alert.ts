// An alert: which events it reports, and where it sends the messages; knows neither SMTP nor HTTP.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource, refersTo } from "./resource.ts";
import { destination } from "./destination.ts";
import {
  ALL_KEPT,
  type FieldForm,
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
  "node_failing",
] as const;
export type AlertEvent = (typeof alertEvents)[number];

export const alertTypes = ["webhook", "smtp"] as const;
export type AlertType = (typeof alertTypes)[number];

const keys = (to: string, description: string, form: FieldForm) =>
  listOf(
    refersTo(to, t.String({ minLength: 1, maxLength: 128 }), { isFilter: true }),
    description,
    { maxItems: 200, form },
  );

/** Label and help of each event. */
const eventTexts: Readonly<Record<AlertEvent, string>> = {
  target_down: "A target is down: Health checks or requests fail, and the target gets no traffic",
  target_up: "A target is up again: The target gets traffic again",
  certificate_failing:
    "A certificate cannot be issued or renewed: With the reason and the time of the next attempt",
  certificate_expiring:
    "A certificate expires: 30, 14, 7, 3 and 1 days before expiry, and at expiry",
  error_share: "High error rate: The share of 5xx responses is above a threshold",
  worker_died: "A worker crashed: The gateway restarts it; its requests were aborted",
  overload:
    "The gateway is overloaded: Memory, or files and sockets, run short, and the gateway rejects new requests",
  node_failing:
    "A node of the fleet is in trouble: It is away or cut off, or cannot serve the last change; with what to do",
};

const form: FieldForm = {
  groups: [
    { id: "main", title: "Alert" },
    { id: "events", title: "Events" },
    { id: "destination", title: "Destination" },
    {
      id: "scope",
      title: "Scope",
      text: "Limits target and error events to these services and routes. Certificate, worker, overload and node events are always sent.",
      folded: true,
      summary: "Global",
    },
    {
      id: "frequency",
      title: "Frequency",
      text: "Each incident sends one message when it begins and one when it is resolved.",
      folded: true,
      summary: "Defaults",
    },
  ],
};

const shared = {
  name: name("Unique name", { help: "Included in messages", example: "ops-chat" }),
  events: t.Array(oneOf(alertEvents, { description: "An event", form: { options: eventTexts } }), {
    minItems: 1,
    maxItems: alertEvents.length,
    uniqueItems: true,
    description:
      "Events to report. target_down, target_up: a target became unhealthy or healthy; certificate_failing: a certificate cannot be issued or renewed; certificate_expiring: a certificate expires soon or has expired; error_share: too many responses are 5xx; worker_died: a worker ended unexpectedly; overload: memory or file descriptors are short, and the gateway refuses new requests; node_failing: a node of the fleet is away, cut off from the database, refused, outdated or diverged",
    form: { help: "", input: "checks", group: "events" },
  }),
  service_ids: keys(
    "services",
    "IDs or names: only targets of these services, and the error share of each; empty, with empty route_ids: everything",
    { title: "Services", help: "", group: "scope" },
  ),
  route_ids: keys(
    "routes",
    "IDs or names: the error share of each of these routes, and only targets of their services",
    { title: "Routes", help: "", group: "scope" },
  ),
  threshold: group(
    {
      percent: t.Number({
        exclusiveMinimum: 0,
        maximum: 100,
        default: 5,
        description: "Percentage of 5xx responses from which the alert fires",
        form: { title: "Percentage of responses", help: "", unit: "%" },
      }),
      window_seconds: integer(300, {
        minimum: 10,
        maximum: 3600,
        description: "Time window in seconds",
        form: { title: "Window", help: "", unit: "s" },
      }),
      min_requests: integer(20, {
        minimum: 1,
        maximum: 1_000_000,
        description: "With fewer requests in the window the alert does not fire",
        form: { title: "Minimum number of requests", help: "" },
      }),
    },
    "Threshold of error_share",
    {
      title: "Threshold of the error rate",
      help: "",
      group: "events",
      when: { events: ["error_share"] },
    },
  ),
  quiet_seconds: integer(300, {
    minimum: 0,
    maximum: 86_400,
    description:
      "Seconds after a notification before the same alert may fire again, if the condition still holds",
    form: {
      title: "Quiet period",
      help: "After a message, before the same alert is sent again",
      zero: "notify each time",
      group: "frequency",
    },
  }),
  repeat_after: integer(14_400, {
    minimum: 0,
    maximum: 604_800,
    description: "Seconds after which an alert that lasts is sent again; 0: never",
    form: { title: "Repeat interval", help: "", zero: "no repeats", group: "frequency" },
  }),
  resolved: flag(true, "Whether to notify when an alert is resolved", {
    title: "Notify when resolved",
    help: "",
    group: "frequency",
    order: -1,
  }),
  type: destination(
    oneOf(alertTypes, {
      description: "How notifications are sent",
      form: { title: "Delivery method", help: "", group: "destination", order: -1 },
    }),
  ),
  enabled: flag(true, "Whether notifications are sent", { help: "Off: no messages are sent" }),
  ...labels,
};

/** What clients send: `config` is checked against the type's own schema. */
export const alertInput = t.Object(
  {
    ...shared,
    config: t.Record(t.String(), t.Unknown(), {
      default: {},
      description: `Where notifications are sent. ${ALL_KEPT}. {"$secret": "name"} refers to a named secret`,
      form: { group: "destination" },
    }),
  },
  { additionalProperties: false, title: "Alert", form },
);

export type AlertInput = Static<typeof alertInput>;

/** As it is stored: references are ids, secrets in `config` are `{"sealed": ...}` or `{"$secret": ...}`. */
export type Alert = Readonly<AlertInput> & Identity;

const delivery = t.Object(
  {
    waiting: t.Integer({ description: "Notifications in the queue" }),
    lost: t.Integer({ description: "Notifications dropped since the start" }),
    last_sent_at: t.Union([t.String({ format: "date-time" }), t.Null()], {
      description: "Time of the last delivery",
    }),
    last_error: t.Union([t.String(), t.Null()], {
      description: "Error of the last attempt; null: it succeeded",
    }),
  },
  { description: "State of the delivery" },
);

export const alerts = defineResource<Alert>({
  word: "alert",
  input: alertInput,
  nameField: "name",
  holdsSecrets: true,
  sendsSecrets: true,
  configKind: "type",
  api: {
    tag: "Alerts",
    schema: "Alert",
    view: t.Object({
      destination: t.String({ description: "Destination, without secrets" }),
      delivery,
    }),
  },
});
