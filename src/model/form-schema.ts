// The schemas of what the forms of the web UI edit, as plain JSON; run as a macro when the UI is bundled.
import type { TSchema } from "@sinclair/typebox";
import { acmeAccountInput } from "./acme-account.ts";
import { alertInput } from "./alert.ts";
import { consumerInput } from "./consumer.ts";
import { dnsProviderInput } from "./dns-provider.ts";
import { listenerInput } from "./listener.ts";
import { pluginInput } from "./plugin.ts";
import { routeInput } from "./route.ts";
import { serviceWithTargetsInput } from "./service.ts";
import { ssoInput } from "./sso.ts";
import { streamRouteInput } from "./stream-route.ts";
import { settingsInput } from "./settings.ts";
import { singleTargetInput } from "./target.ts";
import { tokenInput } from "./token.ts";
import { userInput } from "./user.ts";

export const formSchemas = {
  "acme/accounts": acmeAccountInput,
  alerts: alertInput,
  consumers: consumerInput,
  "dns-providers": dnsProviderInput,
  listeners: listenerInput,
  plugins: pluginInput,
  routes: routeInput,
  settings: settingsInput,
  sso: ssoInput,
  services: serviceWithTargetsInput,
  "stream-routes": streamRouteInput,
  targets: singleTargetInput,
  tokens: tokenInput,
  users: userInput,
} as const satisfies Readonly<Record<string, TSchema>>;

/** The schema of a collection, by its path in the API. */
export const formSchemaOf = (name: keyof typeof formSchemas): object =>
  JSON.parse(JSON.stringify(formSchemas[name])) as object;
