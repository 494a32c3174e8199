// Rules about plugins, consumers and credentials: scopes, configurations and unique fields.
import { literalProblem } from "./destination-rules.ts";
import { customIdOf } from "../model/consumer.ts";
import { isSymmetric, lookupOf, type Credential } from "../model/credential.ts";
import type { Condition } from "../model/condition.ts";
import type { Steps } from "../pace.ts";
import { ApiError } from "../model/error.ts";
import type { Identity } from "../model/fields.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { findBy } from "../model/layered-map.ts";
import type { IndexOf } from "../model/rows.ts";
import { type Plugin, type ScopeName, scopeOf } from "../model/plugin.ts";
import { isFieldValue, isToken } from "../http/fields.ts";
import { conditionProblems, STREAM_MEMBERS } from "../pdk/condition.ts";
import type { AnyPlugin } from "../pdk/definition.ts";
import { type KindedText, textsOf, wholeRegex } from "../pdk/fields.ts";
import { templateProblem } from "../pdk/template.ts";
import type { Candidate, RuleContext } from "./candidate.ts";
import { openConfig } from "./plugin-config.ts";
import type { Report } from "../model/object-rules.ts";
import { suggestion } from "../model/suggestion.ts";
import type { ProblemList } from "./problem.ts";

export function* checkPlugins(
  candidate: Candidate,
  context: RuleContext,
  list: ProblemList,
): Steps<void> {
  yield* checkConsumers(candidate, list);
  yield* checkCredentials(candidate, list);
  const { config, difference } = candidate;
  for (const plugin of difference.plugins.upserts) {
    yield* checkPlugin(plugin, { config, context }, list.of("plugins", plugin.id));
    yield;
  }
  checkClashes(candidate, context, list);
  checkGone(candidate, context, list);
}

interface CheckScope {
  readonly config: GatewayConfig;
  readonly context: RuleContext;
}

function* checkPlugin(plugin: Plugin, checked: CheckScope, report: Report): Steps<void> {
  const { context } = checked;
  const definition = context.plugins.get(plugin.name);
  if (definition === undefined)
    return report(
      "name",
      `there is no plugin "${plugin.name}": one of your own must be in the plugins directory of this gateway${suggestion(plugin.name, [...context.plugins.keys()])}`,
    );
  const scope = scopeOf(plugin);
  if (scope === null) report("", SCOPE_RULE);
  else if (!definition.scopes.includes(scope))
    report(
      "",
      `${plugin.name} cannot be applied ${inWords[scope]}, only ${definition.scopes.map((each) => inWords[each]).join(", ")}`,
    );
  if (plugin.when !== null)
    checkWhen(plugin.when, { isOfStream: scope === "stream_route", context }, report);
  yield* checkOwnConfig(plugin, { ...checked, definition }, report);
}

function checkWhen(
  when: Condition,
  { isOfStream, context }: { readonly isOfStream: boolean; readonly context: RuleContext },
  report: Report,
): void {
  for (const { path, message } of conditionProblems(when, context.checks.regex))
    report(`when.${path}`, message);
  if (!isOfStream) return;
  const names = [...Object.keys(when), ...Object.keys(when.not ?? {}).map((name) => `not.${name}`)];
  for (const name of names)
    if (!STREAM_MEMBERS.has(name.replace("not.", "")))
      report(
        `when.${name}`,
        "does not apply to stream connections: only cidr, country, asn and time do",
      );
}

const SCOPE_RULE =
  "service_id, route_id, consumer_id, stream_route_id: give none, one, or consumer_id with route_id or service_id";

const inWords: Readonly<Record<ScopeName, string>> = {
  global: "globally",
  service: "to a service",
  route: "to a route",
  consumer: "to a consumer",
  consumer_route: "to a consumer with a route",
  consumer_service: "to a consumer with a service",
  stream_route: "to a stream route",
};

function* checkOwnConfig(
  plugin: Plugin,
  { config, context, definition }: CheckScope & { readonly definition: AnyPlugin },
  report: Report,
): Steps<void> {
  const { secrets } = config;
  const { regex } = context.checks;
  try {
    const opened = openConfig(plugin, definition, { secrets, openSealed: context.openSealed });
    for (const text of textsOf(definition.config, opened)) {
      yield;
      if (text.kind === "condition") {
        for (const { path, message } of conditionProblems(text.value as Condition, regex))
          report(`config.${text.path}.${path}`, message);
        continue;
      }
      const problem = textProblem(text, { config, context });
      if (problem !== null) report(`config.${text.path}`, problem);
    }
    for (const { path, source } of definition.regexes?.(opened as never) ?? []) {
      const problem = regex(source);
      if (problem !== null) report(`config.${path}`, problem);
    }
    const problems = [
      ...(definition.check?.(opened as never) ?? []),
      ...(definition.longCheck === undefined ? [] : yield* definition.longCheck(opened as never)),
    ];
    for (const { path, message } of problems)
      report(path === "" ? "config" : `config.${path}`, message);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    report("", `config.${error.message}`);
  }
}

function textProblem({ kind, value }: KindedText, { config, context }: CheckScope): string | null {
  if (typeof value !== "string") return null;
  switch (kind) {
    case "regex":
      return context.checks.regex(value);
    case "text_or_regex":
      return value.startsWith("~") ? context.checks.regex(wholeRegex(value)) : null;
    case "cidr":
      return context.checks.cidr(value);
    case "url":
      return value === ""
        ? null
        : (urlProblem(value) ?? literalProblem(value, { config, context }));
    case "server":
      return literalProblem(value, { config, context });
    case "template":
      return templateProblem(value);
    case "header_name":
      return isToken(value) ? null : "must be the name of a header field";
    case "header_value":
      return isFieldValue(value) ? null : "must be a valid header value";
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
    : "must not contain a user name or password";
}

/** Plugin and scope of an instance as a key: two with the same key clash. */
const scopeKeyOf = (plugin: Plugin): string =>
  [
    plugin.name,
    plugin.service_id,
    plugin.route_id,
    plugin.consumer_id,
    plugin.stream_route_id,
  ].join(" ");

function checkClashes(
  { config, difference }: Candidate,
  { plugins }: RuleContext,
  list: ProblemList,
): void {
  const { upserts } = difference.plugins;
  if (upserts.length === 0) return;
  const byScope = new Map<string, string>();
  for (const plugin of upserts) {
    if (plugin.enabled && plugins.get(plugin.name)?.allowsMultiple !== true)
      byScope.set(scopeKeyOf(plugin), plugin.id);
  }
  for (const plugin of config.plugins.values()) {
    const sameScope = plugin.enabled ? byScope.get(scopeKeyOf(plugin)) : undefined;
    if (sameScope !== undefined && sameScope !== plugin.id)
      list.of("plugins", sameScope)(
        "name",
        `${plugin.name} exists already in this scope: plugin "${plugin.label ?? plugin.id}"`,
        409,
      );
  }
}

/** Unchanged instances may refer to deleted objects. */
function checkGone({ config, difference }: Candidate, context: RuleContext, list: ProblemList) {
  const gone = [...difference.services.removals, ...difference.consumers.removals];
  if (gone.length === 0) return;
  const ids = new Set(gone);
  for (const plugin of config.plugins.values()) {
    const report = list.of("plugins", plugin.id);
    const definition = context.plugins.get(plugin.name);
    if (definition === undefined) continue;
    for (const { kind, path, value } of textsOf(definition.config, plugin.config))
      if ((kind === "service" || kind === "consumer") && ids.has(String(value)))
        report(`config.${path}`, `${kind} does not exist`);
  }
}

function* checkConsumers(
  { config, previous, difference }: Candidate,
  list: ProblemList,
): Steps<void> {
  const { consumers } = config;
  const clashes: Clashes = new Map();
  for (const { id, custom_id: customId } of difference.consumers.upserts) {
    yield;
    const before = previous?.consumers.get(id);
    if (customId === null || before?.custom_id === customId) continue;
    if (isTaken(consumers, customIdOf, { value: customId, id }))
      clashes.set(customId, () =>
        list.of("consumers", id)("custom_id", "belongs to another consumer already", 409),
      );
  }
  for (const report of clashes.values()) report();
}

/** Problems by duplicate value: reported for the last object that has it. */
type Clashes = Map<string, () => void>;

/** Whether another object has the value. */
const isTaken = <T extends Identity>(
  objects: ReadonlyMap<string, T>,
  indexOf: IndexOf<T>,
  { value, id }: { readonly value: string; readonly id: string },
): boolean => findBy(objects, indexOf, { value, except: id }).length > 0;

function* checkCredentials(
  { config, previous, difference }: Candidate,
  list: ProblemList,
): Steps<void> {
  const { credentials } = config;
  const clashes: Clashes = new Map();
  for (const credential of difference.credentials.upserts) {
    yield;
    const { id, type } = credential;
    const report = list.of("credentials", id);
    checkCredential(credential, report);
    const before = previous?.credentials.get(id);
    const value = lookupOf(credential);
    if (before !== undefined && lookupOf(before) === value) continue;
    if (!isTaken(credentials, lookupOf, { value, id })) continue;
    clashes.set(value, () => {
      // The message must not reveal the owner of the key.
      if (type === "key") report("secret", "is in use already", 409);
      else report("identifier", "belongs to another credential already", 409);
    });
  }
  for (const report of clashes.values()) report();
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
      report("algorithm", `${algorithm} is not an algorithm of the type ${type}`);
    const holds = isSymmetric(algorithm) ? credential.sealed_secret : credential.public_key;
    if (holds === null)
      report(isSymmetric(algorithm) ? "secret" : "public_key", `is required for ${algorithm}`);
  }
  if (type !== "key" && identifier === null) report("identifier", "is required");
}
