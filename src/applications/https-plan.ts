// Plans the certificates of an application's names, and whether to redirect to HTTPS; creates none.
import { namesIn } from "../crypto/certificate-chain.ts";
import type { ApplicationInput, HttpsState } from "../model/application.ts";
import { type Certificate, isIssued } from "../model/certificate.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { covers, isPublicName, presentable } from "./domains.ts";

export interface HttpsSituation {
  readonly config: GatewayConfig;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** The ACME certificate of the application, if any. */
  readonly ordered: Certificate | undefined;
  /** The previous state. */
  readonly previous: HttpsState | null;
  /** Whether the local CA signs a name. */
  readonly isPermitted: (name: string) => boolean;
}

export const hasAccount = ({ acme_accounts: accounts }: GatewayConfig): boolean =>
  [...accounts.values()].some(({ enabled }) => enabled);

const hasWildcard = (names: readonly string[]) => names.some((name) => name.startsWith("*."));

/** Whether the requirements of an order for the names are met. */
export function canOrder(names: readonly string[], config: GatewayConfig): boolean {
  const hasProvider = () => [...config.dns_providers.values()].some(({ enabled }) => enabled);
  return hasAccount(config) && (!hasWildcard(names) || hasProvider());
}

/** Names that require a publicly trusted certificate. */
function namesToOrder({ domains, https }: Pick<ApplicationInput, "domains" | "https">): string[] {
  if (https.mode === "acme") return [...domains];
  return https.mode === "auto" ? domains.filter(isPublicName) : [];
}

export function planHttps(input: ApplicationInput, situation: HttpsSituation): HttpsState {
  const { config, previous } = situation;
  const { mode, certificate_id: id } = input.https;
  const none = { ordered: [], local: [], self_signed: [] };
  if (mode === "off") return { ...none, secured: false };
  if (mode === "certificate") {
    const named = config.certificates.get(id ?? "");
    const names = namesInForce(named, situation);
    const secured = input.domains.every((name) => covers(names, name));
    return { ...none, secured };
  }
  const local = namesOfLocalCa(input, situation);
  if (mode === "local_ca") {
    const secured = local.length === input.domains.length;
    const others = input.domains.filter((name) => !local.includes(name));
    return { ...none, local, self_signed: presentable(others), secured };
  }
  const wanted = namesToOrder(input);
  // Retains ACME names without an account: removing them would lose issued certificates.
  const isOrdered = canOrder(wanted, config) || (previous?.ordered.length ?? 0) > 0;
  const ordered = isOrdered ? wanted : [];
  const names = ordered.length === 0 ? [] : namesInForce(situation.ordered, situation);
  return {
    ordered,
    local,
    self_signed: presentable(input.domains).filter(
      (name) => !covers(names, name) && !local.includes(name),
    ),
    secured: ordered.length > 0 && ordered.every((name) => covers(names, name)),
  };
}

/** Under `auto` those for which no public CA issues certificates. */
function namesOfLocalCa(
  { domains, https }: ApplicationInput,
  { isPermitted }: HttpsSituation,
): string[] {
  if (https.mode === "local_ca") return domains.filter(isPermitted);
  return https.mode === "auto"
    ? domains.filter((name) => !isPublicName(name) && isPermitted(name))
    : [];
}

/** After a valid certificate, its expiry does not revert the redirect to HTTPS. */
function namesInForce(
  certificate: Certificate | undefined,
  { now, previous }: HttpsSituation,
): readonly string[] {
  if (certificate === undefined || !isIssued(certificate)) return [];
  const isOver = Date.parse(certificate.not_after) <= now && previous?.secured !== true;
  if (isOver || Date.parse(certificate.not_before) > now) return [];
  return namesIn(certificate.certificate);
}

/** Warnings, one sentence each. */
export function httpsWarnings(
  input: ApplicationInput & { readonly https_state: HttpsState },
  config: GatewayConfig,
): string[] {
  const wanted = namesToOrder(input);
  const { ordered, self_signed: own } = input.https_state;
  const refused = own.filter((name) => input.https.mode === "local_ca" || !isPublicName(name));
  const warnings = refused.map(
    (name) =>
      `application "${input.name}" has a self-signed certificate for ${name}, which settings.local_ca does not permit`,
  );
  if (input.https.mode !== "auto" || wanted.length === 0 || ordered.length > 0) return warnings;
  const missing = hasAccount(config)
    ? "enabled DNS provider, which *. names require"
    : "enabled ACME account";
  return [
    ...warnings,
    `application "${input.name}" has a self-signed certificate: there is no ${missing}; the gateway requests a certificate as soon as there is one`,
  ];
}
