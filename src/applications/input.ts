// Request bodies of applications: validates them beyond the schema and resolves names to ids; changes nothing.
import { type Application, type ApplicationInput, applicationInput } from "../model/application.ts";
import { isIssued } from "../model/certificate.ts";
import { decode } from "../model/decode.ts";
import { invalid } from "../model/error.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { cidrProblem } from "../net/cidr.ts";
import { namesIn } from "../crypto/certificate-chain.ts";
import { type Document, isDocument } from "../control/body.ts";
import { resolveKey } from "../control/key.ts";
import { withPlainTargets } from "../control/services.ts";
import { covers } from "./domains.ts";
import { canOrder, hasAccount } from "./https-plan.ts";
import { parseUpstream } from "./upstream.ts";

/** Throws a 400 with the first error. */
export function decodeApplication(document: unknown, config: GatewayConfig): ApplicationInput {
  const input = decode(applicationInput, withPlainTargets(withoutOwnTargets(document)));
  return checkApplication(input, config);
}

/** Validation beyond the schema; lower-cases names, resolves references. */
export function checkApplication<T extends ApplicationInput>(input: T, config: GatewayConfig): T {
  // What redirects every request needs no upstream.
  const isRedirect = input.policies.redirect?.from === "/";
  if (input.upstream === null && input.targets.length === 0 && !isRedirect)
    throw invalid("upstream", "is required, or targets, or a redirect of the path /");
  if (input.upstream !== null) {
    if (input.targets.length > 0) throw invalid("targets", "must be absent with upstream");
    parseUpstream(input.upstream);
  }
  checkNetworks(input);
  checkPolicies(input);
  const domains = [...new Set(input.domains.map((name) => name.toLowerCase()))];
  const { mode, certificate_id: key } = input.https;
  if (mode !== "certificate") {
    if (key !== null)
      throw invalid("https.certificate_id", 'is only valid with the mode "certificate"');
    const checked = { ...input, domains };
    if (mode === "acme") requireOrders(checked, config);
    return checked;
  }
  if (key === null) throw invalid("https.certificate_id", 'is required with mode "certificate"');
  const at = { path: "https.certificate_id", word: "certificate" };
  const id = resolveKey(config.certificates, key, at);
  requireCovered(domains, id, config);
  return { ...input, domains, https: { ...input.https, certificate_id: id } };
}

function checkNetworks({ access, networks, maintenance_options: page }: ApplicationInput): void {
  const lists = { networks, "maintenance_options.bypass_cidrs": page.bypass_cidrs };
  for (const [field, list] of Object.entries(lists))
    for (const [at, network] of list.entries()) {
      const problem = cidrProblem(network);
      if (problem !== null) throw invalid(`${field}[${at}]`, problem);
    }
  if (access === "public" && networks.length > 0)
    throw invalid("networks", 'is only valid with the access "private" or "networks"');
  if (access === "networks" && networks.length === 0)
    throw invalid("networks", 'must name a network with the access "networks"');
}

function checkPolicies({ policies: { login, sso } }: ApplicationInput): void {
  if (login !== null && sso !== null)
    throw invalid("policies.sso", "cannot be combined with policies.login; set one to null");
}

function requireCovered(domains: readonly string[], id: string, config: GatewayConfig): void {
  const certificate = config.certificates.get(id);
  if (certificate === undefined) return;
  const own = certificate.domains.map((name) => name.toLowerCase());
  const names = isIssued(certificate) ? namesIn(certificate.certificate) : own;
  const bare = domains.find((name) => !covers(names, name) || !covers(own, name));
  if (bare !== undefined)
    throw invalid(
      "https.certificate_id",
      `certificate "${certificate.name}" does not cover ${bare}`,
    );
}

/** Certificates of another mode are deleted with it. */
export function requireOther(
  { https: { certificate_id: id } }: ApplicationInput,
  old: Application | null,
  config: GatewayConfig,
): void {
  if (id === null || old?.parts.some((part) => part.certificate_id === id) !== true) return;
  const { name } = config.certificates.get(id) ?? { name: id };
  throw invalid(
    "https.certificate_id",
    `certificate "${name}" belongs to the mode "${old.https.mode}" and is deleted with it; set another one, or leave the mode unchanged`,
  );
}

function requireOrders({ domains }: ApplicationInput, config: GatewayConfig): void {
  const odd = domains.findIndex((name) => !/[a-z]/i.test(name) || !name.includes("."));
  if (odd !== -1)
    throw invalid(`domains[${odd}]`, 'cannot have an ACME certificate; use mode "auto"');
  if (!hasAccount(config)) throw invalid("https.mode", '"acme" requires an enabled ACME account');
  if (!canOrder(domains, config))
    throw invalid("https.mode", '"acme" requires an enabled DNS provider for *. names');
}

/** Clients can send back what they read: drops targets that were created for an upstream. */
function withoutOwnTargets(document: unknown): unknown {
  if (!isDocument(document) || (document["upstream"] ?? null) === null) return document;
  const { targets, ...rest } = document;
  const isRead =
    Array.isArray(targets) && targets.every((target) => isDocument(target) && "id" in target);
  return isRead ? rest : document;
}

/** A patch with one of two exclusive fields resets the other. */
export function completePatch(patch: unknown): unknown {
  if (!isDocument(patch)) return patch;
  const whole: Record<string, unknown> = { ...patch };
  if ((patch["upstream"] ?? null) !== null && !("targets" in patch)) whole["targets"] = null;
  if (Array.isArray(patch["targets"]) && !("upstream" in patch)) whole["upstream"] = null;
  if (patch["access"] === "public" && !("networks" in patch)) whole["networks"] = null;
  const { https } = patch;
  if (isDocument(https)) whole["https"] = completeHttps(https);
  return whole;
}

function completeHttps(https: Document): Document {
  const isOther = "mode" in https && https["mode"] !== "certificate";
  return isOther && !("certificate_id" in https) ? { ...https, certificate_id: null } : https;
}
