// Response schemas of the management API, composed from the model's; used for the API description only.
import { type TObject, type TSchema, Type as t } from "@sinclair/typebox";
import { upstreamCheckInput } from "../applications/upstream-check.ts";
import { accessSchemas } from "./access-schemas.ts";
import { consumerSchemas } from "./consumer-schemas.ts";
import { alertSchemas } from "./alert-schemas.ts";
import { dnsSchemas } from "./dns-schemas.ts";
import { nodeSchemas } from "./node-schemas.ts";
import { explainedProtocol, requestSchemas } from "./request-schemas.ts";
import { statsSchemas } from "./stats-schemas.ts";
import { transferSchemas } from "./transfer-schemas.ts";
import { revocationInput } from "../model/certificate.ts";
import { cachePurgeInput } from "../model/cache-purge.ts";
import { type CollectionName, collectionNames, definitionOf } from "../model/gateway-config.ts";
import { explainInput } from "../model/explain.ts";
import { oneOf } from "../model/fields.ts";
import { schemaRef } from "../model/resource.ts";
import { localCaView } from "../model/local-ca.ts";
import { settingsInput } from "../model/settings.ts";
import { ssoInput } from "../model/sso.ts";
import { inlineTargetInput, targetHealthInput, targetState } from "../model/target.ts";
import { ownPasswordInput, passwordChangeInput, totpCodeInput } from "../model/user.ts";

const serviceHealth = t.Object(
  {
    service: t.Object({ id: t.String(), name: t.String() }),
    state: t.Unsafe<string>({
      type: "string",
      enum: ["healthy", "degraded", "failing", "unhealthy", "unknown"],
      description:
        "degraded: some targets are failing or unhealthy; failing: all are, but some still receive traffic; unhealthy: all are unhealthy; unknown: no target has a known state, or none receives traffic",
    }),
    targets: t.Array(
      t.Object({
        id: t.String(),
        host: t.String(),
        port: t.Union([t.Integer(), t.Null()]),
        state: targetState,
        since: t.String({ format: "date-time", description: "Start time" }),
        last_error: t.Union([t.String(), t.Null()], { description: "Last failure" }),
        by: t.Unsafe<string | null>({
          type: ["string", "null"],
          enum: ["override", "active", "passive", null],
          description:
            "Source of the state: manual override, active check or traffic; null: none yet",
        }),
        override: t.Union(
          [
            t.Object({
              state: oneOf(["healthy", "unhealthy"], { description: "Health that it sets" }),
              until: t.Union([t.String({ format: "date-time" }), t.Null()], {
                description: "End; null: until it is removed",
              }),
            }),
            t.Null(),
          ],
          { description: "The override in force, in a fleet on every node; null: none" },
        ),
        observed_state: oneOf(["unknown", "healthy", "failing", "unhealthy"], {
          description:
            "What active checks and traffic of this gateway say, also while an override decides",
        }),
        weight: t.Integer(),
        priority: t.Integer(),
        active_requests: t.Integer({ description: "Requests in flight" }),
      }),
    ),
  },
  { title: "Health of a service" },
);

const orNull = (schema: TSchema, description: string) =>
  t.Union([schema, t.Null()], { description });

const auditEntry = t.Object(
  {
    at: t.String({ format: "date-time", description: "When" }),
    actor: t.String({ description: "E-mail address of the user or name of the token" }),
    method: t.Unsafe<string>({
      type: "string",
      enum: ["disabled", "session", "token", "local", "none"],
      description: "Authentication method of the actor; disabled: there were no users yet",
    }),
    address: t.String({ description: "IP address of the client; empty: the gateway itself" }),
    action: t.String({ description: "`create`, `update`, `delete`, `login` and so on" }),
    kind: t.String({ description: "Kind of object: `user`, `route` and so on" }),
    object_id: orNull(t.String(), "ID of the object"),
    object_name: orNull(t.String(), "Name of the object"),
    result: t.Unsafe<string>({
      type: "string",
      enum: ["ok", "refused", "failed"],
      description: "refused: the response was 4xx; failed: it was 5xx",
    }),
    revision: orNull(t.Integer(), "Revision that the change created"),
    detail: t.Unknown({
      description:
        "Changes: `before`, `after` and, for an update, `diff`; rejected requests: method, path, status and error",
    }),
  },
  { title: "AuditEntry" },
);

const named = t.Object({
  id: t.String(),
  name: orNull(t.String(), "Name, if it has one"),
});

const explanation = t.Object(
  {
    listener: orNull(named, "Listener of the request"),
    route: orNull(named, "Route that matches"),
    service: orNull(named, "Service of the route"),
    path_handling: orNull(
      t.Unsafe<string>({ type: "string", enum: ["canonical", "raw"] }),
      "In which form the route takes the path, and the target receives it",
    ),
    ...explainedProtocol,
    outcome: t.Unsafe<string>({
      type: "string",
      enum: [
        "proxy",
        "websocket",
        "upgrade",
        "redirect",
        "maintenance",
        "default_site",
        "unavailable",
        "refused",
      ],
      description: "What the gateway does with the request",
    }),
    upgrade: orNull(
      t.Object({
        protocols: orNull(
          t.String(),
          "websocket, or the protocols that the target may switch to; null: it is forwarded without Upgrade",
        ),
        reason: orNull(t.String(), "Why it is forwarded without Upgrade"),
      }),
      "What becomes of the field Upgrade; null: there is none, or no target gets the request",
    ),
    status: orNull(t.Integer(), "Status of a local response"),
    detail: orNull(t.String(), "Reason of a local response, or the redirect's location"),
    upstream: orNull(
      t.Object({
        url: t.String({ description: "Upstream URL of the request" }),
        host: t.String({ description: "Host of the upstream request" }),
        targets: t.Array(
          t.Composite([definitionOf("targets").response as TObject, t.Object({ url: t.String() })]),
        ),
      }),
      "Targets of the service; url and host are those of the first available one",
    ),
    candidates: t.Array(
      t.Object({
        route: named,
        position: orNull(
          t.Integer(),
          "Position in the matching order; null: the route is disabled",
        ),
        matched: t.Boolean({ description: "Whether the request matches all its conditions" }),
        reason: orNull(t.String(), "The first condition that does not match"),
      }),
      { description: "Closest routes, in matching order" },
    ),
    plugins: t.Array(
      t.Object({
        id: t.String(),
        name: t.String({ description: "Name of the plugin" }),
        label: orNull(t.String(), "Name of the instance, if it has one"),
        scope: orNull(t.String(), "Scope of the instance"),
        phases: t.Array(t.String(), { description: "Phases in which it runs" }),
        applies: orNull(
          t.Boolean(),
          "Whether its condition matches; null: it depends on the client's identity",
        ),
      }),
      { description: "Plugins of the request, in execution order" },
    ),
    default_site: orNull(
      settingsInput.properties.default_site,
      "The setting default_site, when no route matches",
    ),
  },
  { title: "Explanation" },
);

/** The schemas of a collection, of its responses and its requests. */
function schemasOf(name: CollectionName): Readonly<Record<string, TSchema>> {
  const { api, input, response } = definitionOf(name);
  return { [api.schema]: response, [`${api.schema}Input`]: api.body ?? input };
}

/** `components.schemas` of the description, by name. */
export const schemas: Readonly<Record<string, TSchema>> = {
  Error: t.Object(
    { error: t.String({ description: "What is wrong; the message names the field" }) },
    { additionalProperties: false, title: "Error" },
  ),
  ...Object.assign({}, ...collectionNames.map(schemasOf)),
  Deleted: t.Object({ deleted: t.Literal(true) }, { title: "Deleted" }),
  ServiceTargetInput: inlineTargetInput,
  TargetHealthInput: targetHealthInput,
  ServiceHealth: serviceHealth,
  Revocation: revocationInput,
  LocalCa: localCaView,
  Connection: t.Object(
    {
      id: t.String({ description: "ID of the connection" }),
      stream_route_id: t.String({ description: "ID of the stream route" }),
      client: t.String({ description: "Address and port of the client" }),
      target_id: t.Union([t.String(), t.Null()], { description: "ID of the target" }),
      bytes_in: t.Integer({ description: "Bytes from the client" }),
      bytes_out: t.Integer({ description: "Bytes to the client" }),
      started_at: t.String({ format: "date-time", description: "Start time" }),
    },
    { title: "Connection" },
  ),
  UpgradedConnection: t.Object(
    {
      id: t.String({ description: "ID of the connection" }),
      route_id: t.String({ description: "ID of the route" }),
      protocol: t.String({ description: "websocket, or the protocol that the target switched to" }),
      client: t.String({
        description:
          "Address and port of the client; its address alone where a trusted proxy has named it",
      }),
      target_id: t.String({ description: "ID of the target" }),
      bytes_in: t.Integer({
        description: "Bytes to the target, of WebSockets those of the frames",
      }),
      bytes_out: t.Integer({
        description: "Bytes from the target, of WebSockets those of the frames",
      }),
      started_at: t.String({ format: "date-time", description: "Start time" }),
    },
    { title: "UpgradedConnection" },
  ),
  PasswordChange: passwordChangeInput,
  OwnPassword: ownPasswordInput,
  TotpCode: totpCodeInput,
  SignInMeans: t.Object(
    {
      has_password: t.Boolean({ description: "Whether the user has a password" }),
      sso_linked: t.Boolean({ description: "Whether the user has signed in with SSO" }),
      totp_enabled: t.Boolean({ description: "Whether sign-in requires a second factor" }),
      recovery_codes_left: t.Integer({ description: "Recovery codes that have not been used" }),
    },
    { title: "SignInMeans" },
  ),
  TotpSetup: t.Object(
    {
      secret: t.String({ description: "The key in base32, for manual entry" }),
      uri: t.String({ description: "otpauth:// URI of the key, for a QR code" }),
    },
    { title: "TotpSetup" },
  ),
  RecoveryCodes: t.Object(
    {
      recovery_codes: t.Array(t.String(), {
        description: "Each works once instead of a code; shown once, in this response",
      }),
    },
    { title: "RecoveryCodes" },
  ),
  ...accessSchemas,
  UpstreamCheckInput: upstreamCheckInput,
  ...consumerSchemas,
  ...dnsSchemas,
  ...alertSchemas,
  ...requestSchemas,
  ...nodeSchemas,
  ...statsSchemas,
  ...transferSchemas,
  Settings: t.Composite(
    [
      settingsInput,
      t.Object({
        updated_at: t.String({ format: "date-time" }),
        admin_allowed_in_force: t.Array(t.String(), {
          description:
            "Networks that may use the management API now: admin_allowed_cidrs, or those of --admin-allow while it is empty; empty: all",
        }),
      }),
    ],
    { title: "Settings" },
  ),
  SettingsInput: settingsInput,
  AuditEntry: auditEntry,
  Sso: t.Composite(
    [
      t.Omit(ssoInput, ["client_secret"]),
      t.Object({
        client_secret_set: t.Boolean({ description: "Whether a client secret is set" }),
        updated_at: t.String({ format: "date-time" }),
      }),
    ],
    { title: "Sso" },
  ),
  SsoInput: ssoInput,
  CachePurge: cachePurgeInput,
  CachePurged: t.Object(
    {
      purged: t.Integer({
        description:
          "Purged responses, in all workers; in a fleet those of the node that got the request",
      }),
    },
    { title: "CachePurged" },
  ),
  ExplainedRequest: explainInput,
  Explanation: explanation,
  SsoTest: t.Object(
    {
      ok: t.Boolean({ description: "Whether all checks passed" }),
      checks: t.Array(
        t.Object({
          name: t.String({ description: "Name of the check" }),
          ok: t.Boolean({ description: "Whether the check passed" }),
          message: t.String({ description: "Result in one sentence" }),
        }),
        {
          description: "In order of execution; may end at the first failure",
        },
      ),
    },
    { title: "SsoTest" },
  ),
  Health: t.Object({ status: t.Literal("ok") }, { title: "Health" }),
  Ready: t.Object(
    {
      status: t.Literal("ready"),
      revision: t.Integer({ description: "Revision that all workers serve" }),
      workers: t.Integer({ description: "Number of workers" }),
    },
    { title: "Ready" },
  ),
  Status: t.Object(
    {
      name: t.String({ description: "Program name" }),
      version: t.String({ description: "Program version" }),
      authentication: t.Unsafe<string>({
        type: "string",
        enum: ["disabled", "enabled"],
        description: "Whether credentials are required",
      }),
      setup_required: t.Boolean({ description: "Whether no user exists yet" }),
      sso_enabled: t.Boolean({ description: "Whether users can sign in with OpenID Connect" }),
      sso_label: t.Optional(
        t.String({
          description: "Text of the SSO button, while SSO is enabled",
        }),
      ),
      uptime_seconds: t.Integer({ description: "Uptime in seconds" }),
      revision: t.Integer({ description: "Revision in service" }),
      read_only: t.Boolean({
        description: "Whether the configuration comes from a file, so that the API rejects changes",
      }),
      management_access: t.Unsafe<string>({
        type: "string",
        enum: ["local", "restricted", "any", "held_back"],
        description:
          "Networks that reach the management API. local: this machine; restricted: the networks in settings.admin_allowed_cidrs, or else in --admin-allow; any: every address; held_back: this machine only, because a requirement of the address in --admin is missing; the warnings name it",
      }),
      workers: t.Integer({ description: "Number of workers" }),
      workers_ready: t.Integer({ description: "Workers that serve the current configuration" }),
      unbound_ports: t.Array(
        t.Object({
          object: oneOf(["listener", "stream_route"], { description: "What listens on the port" }),
          id: t.String({ description: "Of the listener or stream route" }),
          name: t.String(),
          transport: oneOf(["tcp", "udp"], { description: "udp: of HTTP/3 or a UDP stream" }),
          port: t.Integer(),
          reason: t.String({ description: "Why it cannot be bound: `address already in use`" }),
        }),
        { description: "Ports that the gateway cannot listen on; it tries again" },
      ),
      warnings: t.Array(t.String(), { description: "Valid, but probably mistakes" }),
      fleet: t.Union([schemaRef("FleetStatus"), t.Null()]),
    },
    { title: "Status" },
  ),
};
