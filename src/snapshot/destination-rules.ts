// Rules about destinations that a configuration names as addresses; names are decided when they are resolved. Resolves nothing.
import type { GatewayConfig } from "../model/gateway-config.ts";
import { destinationIn, destinationProblem, type DestinationRules } from "../net/destinations.ts";
import type { Candidate, RuleContext } from "./candidate.ts";
import type { ProblemList } from "./problem.ts";

interface Rules {
  readonly config: GatewayConfig;
  readonly context: Pick<RuleContext, "managementAddresses">;
}

export const destinationRules = ({ config, context }: Rules): DestinationRules => ({
  permitted: config.settings.permitted_destinations,
  management: context.managementAddresses,
});

/** Why the gateway must not connect to what a URL, or a host with a port, names; null: it may, or it is a name. */
export function literalProblem(text: string, rules: Rules): string | null {
  const found = destinationIn(text);
  return found === null ? null : destinationProblem(found, destinationRules(rules));
}

/** Of ACME accounts, DNS providers, certificates on demand and single sign-on. */
export function checkDestinations(
  { config, difference }: Candidate,
  context: RuleContext,
  list: ProblemList,
): void {
  const problemOf = (text: string) =>
    text === "" ? null : literalProblem(text, { config, context });
  for (const { id, directory_url, staging_directory_url } of difference.acme_accounts.upserts)
    for (const [field, text] of Object.entries({ directory_url, staging_directory_url })) {
      const problem = problemOf(text ?? "");
      if (problem !== null) list.of("acme_accounts", id)(field, problem);
    }
  for (const { id, config: own } of difference.dns_providers.upserts)
    for (const [field, text] of Object.entries(own)) {
      if (typeof text !== "string" || !(field === "server" || /^https?:/.test(text))) continue;
      const problem = problemOf(text);
      if (problem !== null) list.of("dns_providers", id)(`config.${field}`, problem);
    }
  for (const { id, on_demand } of difference.certificates.upserts) {
    const problem = problemOf(on_demand?.ask_url ?? "");
    if (problem !== null) list.of("certificates", id)("on_demand.ask_url", problem);
  }
  const problem = difference.sso ? problemOf(config.sso.issuer ?? "") : null;
  if (problem !== null) list.of("sso")("issuer", problem);
}
