// Rules about plugins, consumers and credentials: they exist, apply somewhere, are configured soundly and do not clash.
import { isSymmetric, lookupOf, type Credential } from "../model/credential.ts";
import type { Condition } from "../model/condition.ts";
import { ApiError } from "../model/error.ts";
import { UUID_PATTERN } from "../model/fields.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { type Plugin, type ScopeName, scopeOf } from "../model/plugin.ts";
import { isFieldValue, isToken } from "../pdk/http.ts";
import { conditionProblems, STREAM_MEMBERS } from "../pdk/condition.ts";
import type { AnyPlugin } from "../pdk/definition.ts";
import { type KindedText, textsOf, wholeRegex } from "../pdk/fields.ts";
import { templateProblem } from "../pdk/template.ts";
import type { Candidate, RuleContext } from "./cross-rules.ts";
import { openConfig } from "./plugin-config.ts";
import type { ProblemList, Report } from "./problem.ts";
import { regexProblem } from "./regex-safety.ts";

export function checkPlugins(candidate: Candidate, context: RuleContext, list: ProblemList): void {
  checkConsumers(candidate, list);
  checkCredentials(candidate, list);
  const { config, difference } = candidate;
  for (const plugin of difference.plugins.upserts)
    checkPlugin(plugin, { config, context }, list.of("plugins", plugin.id));
  checkClashes(candidate, context, list);
  checkGone(candidate, context, list);
}

interface Scene {
  readonly config: GatewayConfig;
  readonly context: RuleContext;
}

function checkPlugin(plugin: Plugin, scene: Scene, report: Report): void {
  const { config, context } = scene;
  if (plugin.label !== null && UUID_PATTERN.test(plugin.label))
    report("label", "must not look like an id");
  const definition = context.plugins.get(plugin.name);
  if (definition === undefined) return report("name", `there is no plugin "${plugin.name}"`);
  for (const [path, id, collection, word] of referencesOf(plugin, config))
    if (id !== null && !collection.has(id)) report(path, `${word} does not exist`);
  const scope = scopeOf(plugin);
  if (scope === null) report("", SCOPE_RULE);
  else if (!definition.scopes.includes(scope))
    report(
      "",
      `${plugin.name} cannot be put ${inWords[scope]}, only ${definition.scopes.map((each) => inWords[each]).join(", ")}`,
    );
  if (plugin.when !== null) checkWhen(plugin.when, scope === "stream_route", report);
  checkOwnConfig(plugin, { ...scene, definition }, report);
}

function checkWhen(when: Condition, isOfStream: boolean, report: Report): void {
  for (const { path, message } of conditionProblems(when, regexProblem))
    report(`when.${path}`, message);
  if (!isOfStream) return;
  const names = [...Object.keys(when), ...Object.keys(when.not ?? {}).map((name) => `not.${name}`)];
  for (const name of names)
    if (!STREAM_MEMBERS.has(name.replace("not.", "")))
      report(
        `when.${name}`,
        "is not known of a stream connection: only cidr, country, asn and time are",
      );
}

const SCOPE_RULE =
  "service_id, route_id, consumer_id, stream_route_id: give none, one, or consumer_id with route_id or service_id";

const inWords: Readonly<Record<ScopeName, string>> = {
  global: "on everything",
  service: "on a service",
  route: "on a route",
  consumer: "on a consumer",
  consumer_route: "on a consumer with a route",
  consumer_service: "on a consumer with a service",
  stream_route: "on a stream route",
};

const referencesOf = (plugin: Plugin, config: GatewayConfig) =>
  [
    ["service_id", plugin.service_id, config.services, "service"],
    ["route_id", plugin.route_id, config.routes, "route"],
    ["consumer_id", plugin.consumer_id, config.consumers, "consumer"],
    ["stream_route_id", plugin.stream_route_id, config.stream_routes, "stream route"],
  ] as const;

function checkOwnConfig(
  plugin: Plugin,
  { config, context, definition }: Scene & { readonly definition: AnyPlugin },
  report: Report,
): void {
  const { secrets } = config;
  try {
    const opened = openConfig(plugin, definition, { secrets, openSealed: context.openSealed });
    for (const text of textsOf(definition.config, opened)) {
      if (text.kind === "condition") {
        for (const { path, message } of conditionProblems(text.value as Condition, regexProblem))
          report(`config.${text.path}.${path}`, message);
        continue;
      }
      const problem = textProblem(text, { config, context });
      if (problem !== null) report(`config.${text.path}`, problem);
    }
    for (const { path, source } of definition.regexes?.(opened as never) ?? []) {
      const problem = regexProblem(source);
      if (problem !== null) report(`config.${path}`, problem);
    }
    for (const { path, message } of definition.check?.(opened as never) ?? [])
      report(path === "" ? "config" : `config.${path}`, message);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    report("", `config.${error.message}`);
  }
}

function textProblem({ kind, value }: KindedText, { config, context }: Scene): string | null {
  if (typeof value !== "string") return null;
  switch (kind) {
    case "regex":
      return regexProblem(value);
    case "text_or_regex":
      return value.startsWith("~") ? regexProblem(wholeRegex(value)) : null;
    case "cidr":
      return context.checks.cidr(value);
    case "url":
      return value === "" ? null : urlProblem(value);
    case "template":
      return templateProblem(value);
    case "header_name":
      return isToken(value) ? null : "must be the name of a header field";
    case "header_value":
      return isFieldValue(value) ? null : "must be what a header field can hold";
    case "service":
      return config.services.has(value) ? null : `service "${value}" does not exist`;
    case "consumer":
      return config.consumers.has(value) ? null : `consumer "${value}" does not exist`;
    case "secret":
    case "condition":
      return null;
    default:
      return kind satisfies never;
  }
}

function urlProblem(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    return "must be an http:// or https:// address";
  return url.username === "" && url.password === ""
    ? null
    : "must not hold a user name or password";
}

/** Where an instance applies, as text: two with one text clash. */
const placeOf = (plugin: Plugin): string =>
  [
    plugin.name,
    plugin.service_id,
    plugin.route_id,
    plugin.consumer_id,
    plugin.stream_route_id,
  ].join(" ");

function checkClashes(
  { config, previous, difference }: Candidate,
  { plugins }: RuleContext,
  list: ProblemList,
): void {
  const { upserts } = difference.plugins;
  if (upserts.length === 0) return;
  const labels = new Map<string, string>();
  const places = new Map<string, string>();
  for (const plugin of upserts) {
    if (plugin.label !== null && previous?.plugins.get(plugin.id)?.label !== plugin.label)
      labels.set(plugin.label, plugin.id);
    if (plugin.enabled && plugins.get(plugin.name)?.allowsMultiple !== true)
      places.set(placeOf(plugin), plugin.id);
  }
  for (const plugin of config.plugins.values()) {
    const sameLabel = plugin.label === null ? undefined : labels.get(plugin.label);
    if (sameLabel !== undefined && sameLabel !== plugin.id)
      list.of("plugins", sameLabel)("label", `plugin "${plugin.label}" exists already`, 409);
    const samePlace = plugin.enabled ? places.get(placeOf(plugin)) : undefined;
    if (samePlace !== undefined && samePlace !== plugin.id)
      list.of("plugins", samePlace)(
        "name",
        `${plugin.name} is there already: plugin "${plugin.label ?? plugin.id}"`,
        409,
      );
  }
}

/** Instances that did not change may still refer to what is gone. */
function checkGone({ config, difference }: Candidate, context: RuleContext, list: ProblemList) {
  const gone = [
    difference.services,
    difference.routes,
    difference.consumers,
    difference.stream_routes,
  ].flatMap(({ removals }) => removals);
  if (gone.length === 0) return;
  const ids = new Set(gone);
  for (const plugin of config.plugins.values()) {
    const report = list.of("plugins", plugin.id);
    for (const [path, id, collection, word] of referencesOf(plugin, config))
      if (id !== null && ids.has(id) && !collection.has(id)) report(path, `${word} does not exist`);
    const definition = context.plugins.get(plugin.name);
    if (definition === undefined) continue;
    for (const { kind, path, value } of textsOf(definition.config, plugin.config))
      if ((kind === "service" || kind === "consumer") && ids.has(String(value)))
        report(`config.${path}`, `${kind} does not exist`);
  }
  for (const credential of config.credentials.values())
    if (ids.has(credential.consumer_id))
      list.of("credentials", credential.id)("consumer_id", "consumer does not exist");
}

function checkConsumers({ config, previous, difference }: Candidate, list: ProblemList): void {
  const { upserts } = difference.consumers;
  if (upserts.length === 0) return;
  const names = new Map<string, string>();
  const customIds = new Map<string, string>();
  for (const consumer of upserts) {
    if (UUID_PATTERN.test(consumer.username))
      list.of("consumers", consumer.id)("username", "must not look like an id");
    const before = previous?.consumers.get(consumer.id);
    if (before?.username !== consumer.username) names.set(consumer.username, consumer.id);
    if (consumer.custom_id !== null && before?.custom_id !== consumer.custom_id)
      customIds.set(consumer.custom_id, consumer.id);
  }
  // All of them are looked through, and there may be many.
  if (names.size + customIds.size === 0) return;
  for (const { id, username, custom_id: customId } of config.consumers.values()) {
    const byName = names.get(username);
    if (byName !== undefined && byName !== id)
      list.of("consumers", byName)("username", `consumer "${username}" exists already`, 409);
    const byCustomId = customId === null ? undefined : customIds.get(customId);
    if (byCustomId !== undefined && byCustomId !== id)
      list.of("consumers", byCustomId)("custom_id", "belongs to another consumer already", 409);
  }
}

function checkCredentials({ config, previous, difference }: Candidate, list: ProblemList): void {
  const { upserts } = difference.credentials;
  if (upserts.length === 0) return;
  const lookups = new Map<string, string>();
  for (const credential of upserts) {
    const report = list.of("credentials", credential.id);
    if (!config.consumers.has(credential.consumer_id))
      report("consumer_id", "consumer does not exist");
    checkCredential(credential, report);
    const before = previous?.credentials.get(credential.id);
    const lookup = lookupOf(credential);
    if (before === undefined || lookupOf(before) !== lookup) lookups.set(lookup, credential.id);
  }
  if (lookups.size === 0) return;
  const types = new Set(upserts.map(({ type }) => type));
  for (const credential of config.credentials.values()) {
    if (!types.has(credential.type)) continue;
    const claimant = lookups.get(lookupOf(credential));
    if (claimant === undefined || claimant === credential.id) continue;
    const report = list.of("credentials", claimant);
    // Whose key it is, is nobody's business.
    if (credential.type === "key") report("secret", "is in use already", 409);
    else report("identifier", "belongs to another credential already", 409);
  }
}

function checkCredential(credential: Credential, report: Report): void {
  const { type, algorithm, identifier } = credential;
  if (type === "key" || type === "basic") {
    if (algorithm !== null) report("algorithm", `must be null for the type ${type}`);
    if (credential.public_key !== null) report("public_key", `must be null for the type ${type}`);
    if (type === "key" && identifier !== null)
      report("identifier", "must be null for the type key");
    if (credential.secret_hash === null) report("secret", "is required");
  } else if (algorithm === null) report("algorithm", "is required");
  else {
    const isOfHmac = algorithm === "hmac-sha256" || algorithm === "ed25519";
    if (isOfHmac !== (type === "hmac"))
      report("algorithm", `${algorithm} is none of the type ${type}`);
    const holds = isSymmetric(algorithm) ? credential.sealed_secret : credential.public_key;
    if (holds === null)
      report(isSymmetric(algorithm) ? "secret" : "public_key", `is required for ${algorithm}`);
  }
  if (type !== "key" && identifier === null) report("identifier", "is required");
}
