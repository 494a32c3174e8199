// Rules about targets: valid addresses that fit their service, without duplicates; resolves nothing.
import { destinationRules } from "./destination-rules.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { Service } from "../model/service.ts";
import type { Steps } from "../pace.ts";
import { isSocketHost, placeKey, type Target } from "../model/target.ts";
import { destinationProblem } from "../net/destinations.ts";
import type { Candidate, RuleContext } from "./candidate.ts";
import type { Report } from "../model/object-rules.ts";
import type { ProblemList } from "./problem.ts";

export function* checkTargets(
  candidate: Candidate,
  context: RuleContext,
  list: ProblemList,
): Steps<void> {
  const { config, difference } = candidate;
  const { upserts } = difference.targets;
  checkPortsOfServices(candidate, list);
  if (upserts.length === 0) return;
  const wanted = new Map<string, string>();
  for (const target of upserts) {
    const report = list.of("targets", target.id);
    checkPlace(target, { config, context }, report);
    const problem = destinationProblem(
      target,
      destinationRules({ config: candidate.config, context }),
    );
    if (problem !== null) report("host", problem);
    wanted.set(keyOf(target), target.id);
    yield;
  }
  const services = new Set(upserts.map((target) => target.service_id));
  for (const target of config.targets.values()) {
    if (!services.has(target.service_id)) continue;
    const claimant = wanted.get(keyOf(target));
    if (claimant === undefined || claimant === target.id) continue;
    const where = target.port === null ? target.host : `${target.host}:${target.port}`;
    const report = list.of("targets", claimant);
    report("host", `target ${where} exists already in this service`, 409);
  }
}

const keyOf = (target: Target) => `${target.service_id} ${placeKey(target)}`;

function checkPlace(
  target: Target,
  { config, context }: { readonly config: GatewayConfig; readonly context: RuleContext },
  report: Report,
): void {
  const service = config.services.get(target.service_id);
  const problem = context.checks.targetHost(target.host);
  if (problem !== null) report("host", problem);
  else checkPort(target, service, report);
}

/** Unchanged targets of a service whose name resolution changed. */
function checkPortsOfServices({ config, previous, difference }: Candidate, list: ProblemList) {
  const changed = difference.services.upserts.filter(({ id, resolve }) => {
    const before = previous?.services.get(id);
    return before !== undefined && before.resolve !== resolve;
  });
  if (changed.length === 0) return;
  const services = new Map(changed.map((service) => [service.id, service]));
  const written = new Set(difference.targets.upserts);
  for (const target of config.targets.values()) {
    const service = services.get(target.service_id);
    if (service !== undefined && !written.has(target))
      checkPort(target, service, list.of("targets", target.id));
  }
}

function checkPort(
  { host, port }: Target,
  service: Pick<Service, "resolve"> | undefined,
  report: Report,
): void {
  if (isSocketHost(host)) {
    if (port !== null) report("port", "must be null for a unix socket");
  } else if (service?.resolve === "srv" && isName(host)) {
    if (port !== null) report("port", 'must be null with resolve "srv": the records name the port');
  } else if (port === null) report("port", "is required");
}

/** Whether a host is a name and not an address. */
const isName = (host: string) => !host.includes(":") && !/^[\d.]+$/.test(host);
