// A target: one server of a service; knows nothing of its run-time state.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource, refersTo } from "./resource.ts";
import { type FieldForm, flag, type Identity, integer, labels, nullable, oneOf } from "./fields.ts";
import { asHostName } from "./host-name.ts";

/** What may be written about a target inside its service. */
const targetFields = {
  host: asHostName(
    t.String({
      minLength: 1,
      maxLength: 255,
      description: "Name, IPv4 or IPv6 address, or `unix:/path`",
      form: {
        help: "",
        example: "10.0.0.5",
        check: {
          pattern: "^(?:unix:|(?!.*//)\\S*$)",
          message: "must be a host name or address only, such as 10.0.0.5",
        },
      },
    }),
  ),
  port: nullable(
    t.Integer({ minimum: 1, maximum: 65_535 }),
    "Port; required, but null for a unix socket and for a name with SRV records",
    { help: "", example: "8080", input: "plain-number" },
  ),
  weight: integer(100, {
    minimum: 0,
    maximum: 65_535,
    description: "Share of the traffic; 0 drains the target",
    form: {
      help: "Share of the traffic relative to the other targets",
      zero: "no new requests",
    },
  }),
  priority: integer(0, {
    minimum: 0,
    maximum: 100,
    description: "Tier: a higher one is used when all lower ones are down",
    form: {
      title: "Tier",
      help: "The lowest number is used first; higher tiers only while every lower tier is unhealthy",
    },
  }),
  enabled: flag(true, "Whether traffic may be sent to it", { input: "none" }),
  ...labels,
};

export const targetInput = t.Object(
  {
    service_id: refersTo(
      "services",
      t.String({ minLength: 1, description: "ID or name of the service" }),
      { isOwner: true, isFilter: true },
    ),
    ...targetFields,
  },
  { additionalProperties: false, title: "Target" },
);

const inlineOptions = { additionalProperties: false, title: "Target of a service" };
const hidden: FieldForm = { input: "none" };

/** A target as named inside the body of its service. */
export const inlineTargetInput = t.Object(
  {
    ...targetFields,
    tags: { ...targetFields.tags, form: hidden },
    description: { ...targetFields.description, form: hidden },
  },
  inlineOptions,
);

/** The same with all fields in its form, as they are changed one by one. */
const singleTargetInput = t.Object(targetFields, inlineOptions);

/** A manual override of a target's health; no part of the configuration. */
export const targetHealthInput = t.Object(
  {
    state: oneOf(["healthy", "unhealthy", "auto"], {
      description: "Health that overrides checks and traffic; auto: no override",
    }),
    ttl: t.Optional(
      t.Union([t.Integer({ minimum: 1, maximum: 31_536_000 }), t.Null()], {
        description: "Seconds of the override; absent: until it is removed",
      }),
    ),
  },
  { additionalProperties: false, title: "Health of a target" },
);

const SOCKET = "unix:";

/** Whether a target's host is a unix socket and not a name or an address. */
export const isSocketHost = (host: string): boolean => host.startsWith(SOCKET);

/** The identity of an endpoint: host names are case-insensitive, paths are not. */
export const placeKey = ({ host, port }: Pick<InlineTargetInput, "host" | "port">): string =>
  isSocketHost(host) ? host : `${host.toLowerCase()} ${port}`;

export type TargetInput = Static<typeof targetInput>;
export type InlineTargetInput = Static<typeof inlineTargetInput>;
export type Target = Readonly<TargetInput> & Identity;

/** Health of a target in responses. */
export const targetState = t.Unsafe<string>({
  type: "string",
  enum: ["unknown", "healthy", "failing", "unhealthy", "draining", "disabled"],
  description:
    "Health of the target. failing: its last request failed, but it still receives traffic; unhealthy: it receives none while other targets do",
});

export const targets = defineResource<Target>({
  word: "target",
  input: targetInput,
  nameField: null,
  label: ({ host, port }) => `${host}${port === null ? "" : `:${port}`}`,
  identifiedBy: ["service_id", "host", "port"],
  columns: {
    service_id: { of: (target) => target.service_id, refersTo: "services" },
    host: { of: ({ host }) => host },
    port: { of: ({ port }) => port, type: "integer", isNullable: true },
  },
  uniqueTogether: { targets_address: ["service_id", "host", "port"] },
  api: {
    tag: "Targets",
    schema: "Target",
    form: singleTargetInput,
    view: t.Object({
      health: t.Object({
        state: targetState,
        since: t.String({ format: "date-time", description: "Start time" }),
        last_error: t.Union([t.String(), t.Null()], { description: "Last failure" }),
      }),
      active_requests: t.Integer({ description: "Requests in flight" }),
    }),
  },
});
