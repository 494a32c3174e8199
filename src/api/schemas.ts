// Schemas of what the management API answers, put together from the model's; used for the description only.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { applicationSchemas } from "./application-schemas.ts";
import { accessSchemas } from "./access-schemas.ts";
import { consumerSchemas } from "./consumer-schemas.ts";
import { alertSchemas } from "./alert-schemas.ts";
import { dnsSchemas } from "./dns-schemas.ts";
import { requestSchemas } from "./request-schemas.ts";
import { statsSchemas } from "./stats-schemas.ts";
import { transferSchemas } from "./transfer-schemas.ts";
import { acmeAccountInput } from "../model/acme-account.ts";
import { certificateFacts, certificateInput, revocationInput } from "../model/certificate.ts";
import { cachePurgeInput } from "../model/cache-purge.ts";
import { explainInput } from "../model/explain.ts";
import { identity } from "../model/fields.ts";
import { listenerInput } from "../model/listener.ts";
import { routeInput } from "../model/route.ts";
import { secretInput } from "../model/secret.ts";
import { serviceInput, serviceWithTargetsInput } from "../model/service.ts";
import { settingsInput } from "../model/settings.ts";
import { ssoInput } from "../model/sso.ts";
import { streamRouteInput } from "../model/stream-route.ts";
import { inlineTargetInput, targetHealthInput, targetInput } from "../model/target.ts";
import { ownPasswordInput, passwordChangeInput, totpCodeInput, userInput } from "../model/user.ts";

const identityObject = t.Object(identity);

const targetState = t.Unsafe<string>({
  type: "string",
  enum: ["unknown", "healthy", "failing", "unhealthy", "draining", "disabled"],
  description:
    "What is known about the target. failing: its last request failed, and it takes traffic all the same; unhealthy: it takes none while others do",
});

const target = t.Composite(
  [
    identityObject,
    targetInput,
    t.Object({
      health: t.Object({
        state: targetState,
        since: t.String({ format: "date-time", description: "Since when" }),
        last_error: t.Union([t.String(), t.Null()], { description: "Last failure" }),
      }),
      active_requests: t.Integer({ description: "Requests in flight" }),
    }),
  ],
  { title: "Target" },
);

const serviceHealth = t.Object(
  {
    service: t.Object({ id: t.String(), name: t.String() }),
    state: t.Unsafe<string>({
      type: "string",
      enum: ["healthy", "degraded", "failing", "unhealthy", "unknown"],
      description:
        "degraded: some targets are failing or unhealthy; failing: all are, and some take traffic all the same; unhealthy: all are unhealthy; unknown: nothing is known of any target, or none takes traffic",
    }),
    targets: t.Array(
      t.Object({
        id: t.String(),
        host: t.String(),
        port: t.Union([t.Integer(), t.Null()]),
        state: targetState,
        since: t.String({ format: "date-time", description: "Since when" }),
        last_error: t.Union([t.String(), t.Null()], { description: "Last failure" }),
        by: t.Unsafe<string | null>({
          type: ["string", "null"],
          enum: ["override", "active", "passive", null],
          description: "Who decided: a person, an active check, the traffic; null: nobody yet",
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
      description: "How the actor was recognised; disabled: there were no users yet",
    }),
    address: t.String({ description: "Address of the connection; empty: the machine itself" }),
    action: t.String({ description: "`create`, `update`, `delete`, `login` and so on" }),
    kind: t.String({ description: "Kind of object: `user`, `route` and so on" }),
    object_id: orNull(t.String(), "Id of the object"),
    object_name: orNull(t.String(), "Name of the object"),
    result: t.Unsafe<string>({
      type: "string",
      enum: ["ok", "refused", "failed"],
      description: "refused: the request was answered with 4xx; failed: with 500",
    }),
    revision: orNull(t.Integer(), "Revision of the configuration that this made"),
    detail: t.Unknown({
      description:
        "Of a change: `before`, `after` and, of an update, `diff`; of a refusal: method, path, status and error",
    }),
  },
  { title: "AuditEntry" },
);

const ref = (name: string) => t.Unsafe<unknown>({ $ref: `#/components/schemas/${name}` });

const named = t.Object({
  id: t.String(),
  name: orNull(t.String(), "Name, if it has one"),
});

const explanation = t.Object(
  {
    listener: orNull(named, "Listener that the request comes through"),
    route: orNull(named, "Route that takes it"),
    service: orNull(named, "Service of the route"),
    outcome: t.Unsafe<string>({
      type: "string",
      enum: [
        "proxy",
        "websocket",
        "redirect",
        "maintenance",
        "default_site",
        "unavailable",
        "refused",
      ],
      description: "What the gateway does; proxy and websocket: it is passed on",
    }),
    status: orNull(t.Integer(), "Status of an answer that the gateway gives itself"),
    detail: orNull(t.String(), "Why it is not passed on, or where it is redirected to"),
    upstream: orNull(
      t.Object({
        url: t.String({ description: "Where the request would go" }),
        host: t.String({ description: "The Host that it would have" }),
        targets: t.Array(t.Composite([target, t.Object({ url: t.String() })])),
      }),
      "Targets of the service; url and host are those of the first that works",
    ),
    candidates: t.Array(
      t.Object({
        route: named,
        position: orNull(t.Integer(), "Place in the order of trying; null: the route is off"),
        matched: t.Boolean({ description: "Whether the request meets all its conditions" }),
        reason: orNull(t.String(), "The first condition that the request does not meet"),
      }),
      { description: "Routes that came closest, in the order in which they are tried" },
    ),
    plugins: t.Array(
      t.Object({
        id: t.String(),
        name: t.String({ description: "Which plugin" }),
        label: orNull(t.String(), "Name of the instance, if it has one"),
        scope: orNull(t.String(), "Where it was put"),
        phases: t.Array(t.String(), { description: "When it runs" }),
        applies: orNull(
          t.Boolean(),
          "Whether its condition holds; null: that depends on who the client is",
        ),
      }),
      { description: "Plugins that are there for it, in the order in which they run" },
    ),
    default_site: orNull(
      t.Unknown(),
      "The setting default_site, for a request that no route takes",
    ),
  },
  { title: "Explanation" },
);

/** `components.schemas` of the description, by name. */
export const schemas: Readonly<Record<string, TSchema>> = {
  Error: t.Object(
    { error: t.String({ description: "What is wrong; the message names the field" }) },
    { additionalProperties: false, title: "Error" },
  ),
  Deleted: t.Object({ deleted: t.Literal(true) }, { title: "Deleted" }),
  Service: t.Composite(
    [identityObject, serviceInput, t.Object({ targets: t.Array(ref("Target")) })],
    { title: "Service" },
  ),
  ServiceInput: serviceWithTargetsInput,
  Target: target,
  TargetInput: targetInput,
  ServiceTargetInput: inlineTargetInput,
  TargetHealthInput: targetHealthInput,
  ServiceHealth: serviceHealth,
  Route: t.Composite([identityObject, routeInput], { title: "Route" }),
  RouteInput: routeInput,
  Listener: t.Composite([identityObject, listenerInput], { title: "Listener" }),
  ListenerInput: listenerInput,
  Certificate: t.Composite(
    [identityObject, t.Omit(certificateInput, ["private_key"]), t.Object(certificateFacts)],
    { title: "Certificate" },
  ),
  CertificateInput: certificateInput,
  Revocation: revocationInput,
  AcmeAccount: t.Composite([identityObject, t.Omit(acmeAccountInput, ["eab_hmac_key"])], {
    title: "ACME account",
  }),
  AcmeAccountInput: acmeAccountInput,
  StreamRoute: t.Composite([identityObject, streamRouteInput], { title: "Stream route" }),
  StreamRouteInput: streamRouteInput,
  Connection: t.Object(
    {
      id: t.String({ description: "Id of the connection" }),
      stream_route_id: t.String({ description: "Id of the stream route" }),
      client: t.String({ description: "Address and port of the client" }),
      target_id: t.Union([t.String(), t.Null()], { description: "Id of the target" }),
      bytes_in: t.Integer({ description: "Bytes from the client" }),
      bytes_out: t.Integer({ description: "Bytes to the client" }),
      started_at: t.String({ format: "date-time", description: "Since when" }),
    },
    { title: "Connection" },
  ),
  User: t.Composite(
    [
      identityObject,
      t.Omit(userInput, ["password"]),
      t.Object({
        has_password: t.Boolean({ description: "Whether the user can sign in with a password" }),
        totp_enabled: t.Boolean({ description: "Whether a second factor is needed to sign in" }),
        sso_linked: t.Boolean({ description: "Whether the user has signed in with SSO" }),
      }),
    ],
    { title: "User" },
  ),
  UserInput: userInput,
  PasswordChange: passwordChangeInput,
  OwnPassword: ownPasswordInput,
  TotpCode: totpCodeInput,
  SignInMeans: t.Object(
    {
      has_password: t.Boolean({ description: "Whether there is a password" }),
      sso_linked: t.Boolean({ description: "Whether the user has signed in with SSO" }),
      totp_enabled: t.Boolean({ description: "Whether a code is needed beside the password" }),
      recovery_codes_left: t.Integer({ description: "Recovery codes that have not been used" }),
    },
    { title: "SignInMeans" },
  ),
  TotpSetup: t.Object(
    {
      secret: t.String({ description: "The key in base32, to be typed into an app" }),
      uri: t.String({ description: "otpauth:// address of the key, to be shown as a picture" }),
    },
    { title: "TotpSetup" },
  ),
  RecoveryCodes: t.Object(
    {
      recovery_codes: t.Array(t.String(), {
        description: "Each works once in the place of a code; shown only here",
      }),
    },
    { title: "RecoveryCodes" },
  ),
  Secret: t.Composite([identityObject, t.Omit(secretInput, ["value"])], { title: "Secret" }),
  SecretInput: secretInput,
  ...accessSchemas,
  ...applicationSchemas,
  ...consumerSchemas,
  ...dnsSchemas,
  ...alertSchemas,
  ...requestSchemas,
  ...statsSchemas,
  ...transferSchemas,
  Settings: t.Composite(
    [
      settingsInput,
      t.Object({
        updated_at: t.String({ format: "date-time" }),
        admin_allowed_in_force: t.Array(t.String(), {
          description:
            "Networks that may use the management API now: admin_allowed_cidrs, or while that is empty those of --admin-allow; empty: all that reach its address",
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
        client_secret_set: t.Boolean({ description: "Whether there is a client secret" }),
        updated_at: t.String({ format: "date-time" }),
      }),
    ],
    { title: "Sso" },
  ),
  SsoInput: ssoInput,
  CachePurge: cachePurgeInput,
  CachePurged: t.Object(
    { purged: t.Integer({ description: "How many answers there were, in all workers" }) },
    { title: "CachePurged" },
  ),
  ExplainedRequest: explainInput,
  Explanation: explanation,
  SsoTest: t.Object(
    {
      ok: t.Boolean({ description: "Whether every check is" }),
      checks: t.Array(
        t.Object({
          name: t.String({ description: "What was looked at" }),
          ok: t.Boolean({ description: "Whether it is as it should be" }),
          message: t.String({ description: "What was found, for people" }),
        }),
        {
          description: "In the order in which they were made; the first that fails may be the last",
        },
      ),
    },
    { title: "SsoTest" },
  ),
  Health: t.Object({ status: t.Literal("ok") }, { title: "Health" }),
  Ready: t.Object(
    {
      status: t.Literal("ready"),
      revision: t.Integer({ description: "What all workers serve" }),
      workers: t.Integer({ description: "Number of workers" }),
    },
    { title: "Ready" },
  ),
  Status: t.Object(
    {
      name: t.String({ description: "Name of the program" }),
      version: t.String({ description: "Version of the program" }),
      authentication: t.Unsafe<string>({
        type: "string",
        enum: ["disabled", "enabled"],
        description: "Whether credentials are needed",
      }),
      setup_required: t.Boolean({ description: "Whether the first user is still to be created" }),
      sso_enabled: t.Boolean({ description: "Whether people can sign in with OpenID Connect" }),
      sso_label: t.Optional(
        t.String({
          description: "Text of the button that begins to sign in with it, while it is on",
        }),
      ),
      uptime_seconds: t.Integer({ description: "Seconds since the start" }),
      revision: t.Integer({ description: "Number of the configuration in service" }),
      read_only: t.Boolean({
        description: "Whether the configuration is kept in a file, so that changes are refused",
      }),
      management_access: t.Unsafe<string>({
        type: "string",
        enum: ["local", "restricted", "any", "held_back"],
        description:
          "Who reaches the management API by address. local: this machine; restricted: the networks in settings.admin_allowed_cidrs, or else in --admin-allow; any: every address; held_back: this machine, because what the address of --admin needs is missing: the warnings say what",
      }),
      workers: t.Integer({ description: "Number of workers" }),
      workers_ready: t.Integer({ description: "How many serve the current configuration" }),
      warnings: t.Array(t.String(), { description: "What is allowed but hardly meant" }),
    },
    { title: "Status" },
  ),
};
