// The rule that settings.permitted_destinations keeps what stored objects connect to; resolves no name.
import { type CollectionName, definitionOf, type GatewayConfig } from "../model/gateway-config.ts";
import { shortList } from "../model/short-list.ts";
import type { Steps } from "../pace.ts";
import { textsOf } from "../pdk/fields.ts";
import { destinationIn, destinationProblem } from "../net/destinations.ts";
import type { Candidate, RuleContext } from "./candidate.ts";
import { openSecret } from "./plugin-config.ts";
import type { ProblemList } from "./problem.ts";

/** A text that names where an object connects to, or the parts of one. */
interface Use {
  readonly label: string;
  readonly text: string;
}

/**
 * Refuses to take a destination away from objects that name it: the dialer would refuse their connections, and they could not be
 * written as they are.
 */
export function* checkPermitted(
  { config, previous, difference }: Candidate,
  context: RuleContext,
  list: ProblemList,
): Steps<void> {
  if (previous === null || !difference.settings) return;
  const [before, after] = [previous, config].map(({ settings }) => settings.permitted_destinations);
  if (before === undefined || after === undefined) return;
  if (before.every((each) => after.includes(each))) return;
  const isRefused = (text: string, permitted: readonly string[]) => {
    const found = destinationIn(text);
    return found !== null && destinationProblem(found, { permitted, management: [] }) !== null;
  };
  const users = new Set<string>();
  for (const { label, text } of usesIn(config, context)) {
    if (isRefused(text, after) && !isRefused(text, before)) users.add(label);
    yield;
  }
  if (users.size === 0) return;
  const verb = users.size === 1 ? "connects" : "connect";
  list.of("settings")(
    "permitted_destinations",
    `${shortList([...users])} ${verb} to addresses that it would no longer permit: change them first`,
  );
}

function* usesIn(config: GatewayConfig, { plugins, openSealed }: RuleContext): Generator<Use> {
  const labelOf = (collection: CollectionName, id: string) =>
    definitionOf(collection).labelOf(config[collection].get(id), id);
  const opener = { secrets: config.secrets, openSealed };
  for (const { id, host, port } of config.targets.values()) {
    const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
    yield { label: labelOf("targets", id), text: port === null ? name : `${name}:${port}` };
  }
  for (const { id, name, config: own } of config.plugins.values()) {
    const label = labelOf("plugins", id);
    const definition = plugins.get(name);
    for (const { kind, value } of definition === undefined ? [] : textsOf(definition.config, own))
      if ((kind === "url" || kind === "server") && typeof value === "string")
        yield { label, text: value };
  }
  for (const { id, config: own } of config.alerts.values())
    // The URL of a webhook is a secret.
    for (const field of [own["url"], own["host"]].map((each) => openSecret(each, opener)))
      if (typeof field === "string") yield { label: labelOf("alerts", id), text: field };
  for (const { id, config: own } of config.dns_providers.values())
    for (const [field, text] of Object.entries(own))
      if (typeof text === "string" && (field === "server" || /^https?:/.test(text)))
        yield { label: labelOf("dns_providers", id), text };
  for (const { id, directory_url, staging_directory_url } of config.acme_accounts.values())
    for (const text of [directory_url, staging_directory_url])
      yield { label: labelOf("acme_accounts", id), text: text ?? "" };
  for (const { id, on_demand } of config.certificates.values())
    yield { label: labelOf("certificates", id), text: on_demand?.ask_url ?? "" };
  yield { label: "single sign-on", text: config.sso.issuer ?? "" };
}
