// One decoder per collection for stored objects: fills in every field that this program knows.
import type { TSchema } from "@sinclair/typebox";
import { certificateRecord } from "../model/certificate.ts";
import { acmeAccountRecord } from "../model/acme-account.ts";
import { alertInput } from "../model/alert.ts";
import { applicationRecord } from "../model/application.ts";
import { dnsProviderInput } from "../model/dns-provider.ts";
import { consumerInput } from "../model/consumer.ts";
import { credentialRecord } from "../model/credential.ts";
import { decode } from "../model/decode.ts";
import type { Identity } from "../model/fields.ts";
import type {
  CollectionName,
  ResourceOf,
  SingletonName,
  SingletonOf,
} from "../model/gateway-config.ts";
import { listenerInput } from "../model/listener.ts";
import { pluginInput } from "../model/plugin.ts";
import { pathMatchOf, routeInput } from "../model/route.ts";
import { secretRecord } from "../model/secret.ts";
import { serviceInput } from "../model/service.ts";
import { settingsInput } from "../model/settings.ts";
import { ssoRecord } from "../model/sso.ts";
import { streamRouteInput } from "../model/stream-route.ts";
import { targetInput } from "../model/target.ts";
import { tokenRecord } from "../model/token.ts";
import { userRecord } from "../model/user.ts";

/** The schemas of stored and imported objects. */
export const recordSchemas = {
  services: serviceInput,
  targets: targetInput,
  routes: routeInput,
  listeners: listenerInput,
  certificates: certificateRecord,
  stream_routes: streamRouteInput,
  acme_accounts: acmeAccountRecord,
  dns_providers: dnsProviderInput,
  applications: applicationRecord,
  consumers: consumerInput,
  credentials: credentialRecord,
  plugins: pluginInput,
  alerts: alertInput,
  users: userRecord,
  tokens: tokenRecord,
  secrets: secretRecord,
  settings: settingsInput,
  sso: ssoRecord,
} as const satisfies Readonly<Record<CollectionName | SingletonName, TSchema>>;

/** Each throws a 400 with the first error of a document, `path: message`. */
export type RecordDecoders = {
  readonly [K in CollectionName]: (document: unknown) => Omit<ResourceOf[K], keyof Identity>;
} & {
  readonly [K in SingletonName]: (document: unknown) => Omit<SingletonOf[K], "updated_at">;
};

export const decodeRecord: RecordDecoders = {
  services: (document) => decode(recordSchemas.services, document),
  targets: (document) => decode(recordSchemas.targets, document),
  routes: (document) => {
    const route = decode(recordSchemas.routes, document);
    return { ...route, paths: route.paths.map(pathMatchOf) };
  },
  listeners: (document) => decode(recordSchemas.listeners, document),
  certificates: (document) => decode(recordSchemas.certificates, document),
  stream_routes: (document) => decode(recordSchemas.stream_routes, document),
  acme_accounts: (document) => decode(recordSchemas.acme_accounts, document),
  dns_providers: (document) => decode(recordSchemas.dns_providers, document),
  applications: (document) => decode(recordSchemas.applications, document),
  consumers: (document) => decode(recordSchemas.consumers, document),
  credentials: (document) => decode(recordSchemas.credentials, document),
  plugins: (document) => decode(recordSchemas.plugins, document),
  alerts: (document) => decode(recordSchemas.alerts, document),
  users: (document) => decode(recordSchemas.users, document),
  tokens: (document) => decode(recordSchemas.tokens, document),
  secrets: (document) => decode(recordSchemas.secrets, document),
  settings: (document) => decode(recordSchemas.settings, document),
  sso: (document) => decode(recordSchemas.sso, document),
};
