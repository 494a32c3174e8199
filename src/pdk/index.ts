// The public interface of plugins, which plugins from a directory import as `@sluice/plugin`; has no code of its own.
export { type Static, type TObject, type TSchema, Type as t } from "@sinclair/typebox";
export {
  authenticationFields,
  claimsOf,
  hasExpired,
  isExempt,
  isPreflight,
  refuse,
  storeClaims,
  validMaterial,
} from "./authentication.ts";
export { readBasicLogin } from "./basic-login.ts";
export { Cache } from "./cache.ts";
export { compileCondition } from "./condition.ts";
export type * from "./context.ts";
export { createToken, hashPassword, hashToken, isSameHash, verifyPassword } from "./crypto.ts";
export {
  authScopes,
  definePlugin,
  httpScopes,
  type PhaseName,
  type PluginDefinition,
  type PluginHandlers,
} from "./definition.ts";
export { destination, stays } from "./destination.ts";
export {
  cidr,
  compileTexts,
  condition,
  config,
  consumerReference,
  flag,
  group,
  headerName,
  headerValue,
  integer,
  listOf,
  milliseconds,
  nullable,
  oneOf,
  regex,
  secret,
  serviceReference,
  statusOf,
  template,
  textOrRegex,
  url,
} from "./fields.ts";
export * from "./http.ts";
export { findAmbiguity } from "./json.ts";
export type * from "./kit.ts";
export { cidrProblem, compileCidrs, isSafeUrl, networkOf, normalizeAddress } from "./net.ts";
export { compileOrigins, originProblem } from "./origin.ts";
export { RecentMap } from "./recent-map.ts";
export { keyProblem, keyReader, partsOf, requestKey } from "./request-key.ts";
export {
  isRejection,
  type Outcome,
  reject,
  type Rejection,
  reply,
  type Reply,
} from "./response.ts";
export { compileTemplate, type Template } from "./template.ts";
