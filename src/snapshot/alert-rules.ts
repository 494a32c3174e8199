// Rules about alerts: the services and routes that they name exist; knows nothing of how messages are sent.
import type { Alert } from "../model/alert.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { Candidate } from "./cross-rules.ts";
import type { ProblemList } from "./problem.ts";

/** Unchanged alerts may refer to deleted objects. */
export function checkAlerts({ config, difference }: Candidate, list: ProblemList): void {
  const { services, routes, alerts } = difference;
  const isAnyGone = services.removals.length + routes.removals.length > 0;
  for (const alert of isAnyGone ? config.alerts.values() : alerts.upserts)
    checkReferences(alert, config, list);
}

function checkReferences(alert: Alert, config: GatewayConfig, list: ProblemList): void {
  const report = list.of("alerts", alert.id);
  for (const [index, id] of alert.service_ids.entries())
    if (!config.services.has(id)) report(`service_ids[${index}]`, "service does not exist");
  for (const [index, id] of alert.route_ids.entries())
    if (!config.routes.has(id)) report(`route_ids[${index}]`, "route does not exist");
}
