// What certificates the names of an application need at this moment, and whether plain requests may be sent to HTTPS; makes none.
import { namesIn } from "../../crypto/certificate-chain.ts";
import type { ApplicationInput, HttpsState } from "../../model/application.ts";
import { type Certificate, isIssued } from "../../model/certificate.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { covers, isPublicName, presentable } from "./domains.ts";

export interface HttpsSituation {
  readonly config: GatewayConfig;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** The one that was ordered for the application, if there is one. */
  readonly ordered: Certificate | undefined;
  /** How it was before. */
  readonly previous: HttpsState | null;
}

export const hasAccount = ({ acme_accounts: accounts }: GatewayConfig): boolean =>
  [...accounts.values()].some(({ enabled }) => enabled);

const hasWildcard = (names: readonly string[]) => names.some((name) => name.startsWith("*."));

/** Whether there is what an order for the names needs. */
export function canOrder(names: readonly string[], config: GatewayConfig): boolean {
  const hasProvider = () => [...config.dns_providers.values()].some(({ enabled }) => enabled);
  return hasAccount(config) && (!hasWildcard(names) || hasProvider());
}

/** Names for which a certificate that everybody trusts is wanted. */
export function namesToOrder({
  domains,
  https,
}: Pick<ApplicationInput, "domains" | "https">): string[] {
  if (https.mode === "acme") return [...domains];
  return https.mode === "auto" ? domains.filter(isPublicName) : [];
}

export function planHttps(input: ApplicationInput, situation: HttpsSituation): HttpsState {
  const { config, previous } = situation;
  const { mode, certificate_id: id } = input.https;
  if (mode === "off") return { ordered: [], self_signed: [], secured: false };
  if (mode === "certificate") {
    const named = config.certificates.get(id ?? "");
    const names = namesInForce(named, situation);
    const secured = input.domains.every((name) => covers(names, name));
    return { ordered: [], self_signed: [], secured };
  }
  const wanted = namesToOrder(input);
  // What was ordered once stays ordered, also while there is no account: taking it back would lose what was issued.
  const isOrdered = canOrder(wanted, config) || (previous?.ordered.length ?? 0) > 0;
  const ordered = isOrdered ? wanted : [];
  const names = ordered.length === 0 ? [] : namesInForce(situation.ordered, situation);
  return {
    ordered,
    self_signed: presentable(input.domains).filter((name) => !covers(names, name)),
    secured: ordered.length > 0 && ordered.every((name) => covers(names, name)),
  };
}

/** Once there was a valid one, an end that nobody saw to does not send people back to plain HTTP. */
function namesInForce(
  certificate: Certificate | undefined,
  { now, previous }: HttpsSituation,
): readonly string[] {
  if (certificate === undefined || !isIssued(certificate)) return [];
  const isOver = Date.parse(certificate.not_after) <= now && previous?.secured !== true;
  if (isOver || Date.parse(certificate.not_before) > now) return [];
  return namesIn(certificate.certificate);
}

/** What people should know about it, one sentence each. */
export function httpsWarnings(
  input: ApplicationInput & { readonly https_state: HttpsState },
  config: GatewayConfig,
): string[] {
  const wanted = namesToOrder(input);
  if (input.https.mode !== "auto" || wanted.length === 0 || input.https_state.ordered.length > 0)
    return [];
  const missing = hasAccount(config)
    ? "DNS provider that is enabled, which *. names need"
    : "ACME account that is enabled";
  return [
    `application "${input.name}" has a self-signed certificate: there is no ${missing}; a certificate is ordered as soon as there is one`,
  ];
}
