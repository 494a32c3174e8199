// Public endpoints about the gateway itself: no secrets and no addresses in their responses.
import type { Clock } from "../../clock.ts";
import type { ControlPlane } from "../../control-plane.ts";
import { hostWarnings } from "../../control/host-warnings.ts";
import { ApiError } from "../../model/error.ts";
import { plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";

export interface StatusSource {
  readonly control: ControlPlane;
  readonly clock: Clock;
  readonly version: string;
  /** Milliseconds since the Unix epoch. */
  readonly startedAt: number;
}

const tags = ["Status"];

export function statusEndpoints(source: StatusSource): Endpoint[] {
  return [
    {
      method: "GET",
      path: "/healthz",
      takesBody: false,
      description: {
        summary: "Check whether the gateway runs",
        tags,
        responses: plainResponses("Health", "The gateway runs"),
      },
      answer: () => ({ body: { status: "ok" } }),
    },
    {
      method: "GET",
      path: "/readyz",
      takesBody: false,
      description: {
        summary: "Check whether every worker serves the current configuration",
        description:
          "503 while a port of the configuration cannot be bound, and on a node of a fleet that drains, that has not served the last change since its start, that another process speaks for, or that has not followed its fleet for `settings.fleet.unready_after` or `max_stale`: a load balancer is to send it no requests.",
        tags,
        responses: plainResponses(
          "Ready",
          "All workers serve the current configuration",
          [403, 500, 503],
        ),
      },
      answer: () => ({ body: readiness(source) }),
    },
    {
      method: "GET",
      path: "/api/v1/admin/status",
      takesBody: false,
      description: {
        summary: "Get the status of the gateway",
        tags,
        responses: plainResponses("Status", "The status"),
      },
      answer: () => ({ body: status(source) }),
    },
  ];
}

function readiness({ control }: StatusSource) {
  const { workers, ready } = control.rolloutStatus();
  const { revision, unbound } = control.changes;
  const problem = control.cutOff.readyProblem();
  if (problem !== null) throw new ApiError(503, problem);
  if (ready < workers || workers === 0)
    throw new ApiError(
      500,
      `${ready} of ${workers} workers serve revision ${revision}, which is current`,
    );
  const reason = control.fleet?.notReady() ?? null;
  if (reason !== null) throw new ApiError(503, reason);
  if (unbound !== null) throw new ApiError(503, unbound);
  return { status: "ready", revision, workers };
}

function status({ control, clock, version, startedAt }: StatusSource) {
  const { workers, ready, unbound = [] } = control.rolloutStatus();
  const { sso } = control.changes.config;
  return {
    name: "sluice",
    version,
    authentication: control.auth.authenticator.isEnabled ? "enabled" : "disabled",
    setup_required: !control.auth.authenticator.isEnabled,
    sso_enabled: sso.enabled,
    ...(sso.enabled ? { sso_label: sso.button_label } : {}),
    uptime_seconds: Math.max(0, Math.floor((clock.now() - startedAt) / 1000)),
    revision: control.changes.revision,
    read_only: control.changes.isReadOnly,
    management_access: control.adminNetworks.state(),
    workers,
    workers_ready: ready,
    unbound_ports: unbound,
    warnings: [
      ...control.notices,
      ...control.adminNetworks.warnings(),
      ...control.changes.warnings(),
      ...control.acme.engine.warnings(),
      ...control.pressure.warnings(),
      ...control.discovery.warnings(),
      ...(control.plugins.directory?.warnings() ?? []),
      ...(control.fleet?.warnings() ?? []),
      ...hostWarnings(control.changes.config),
    ],
    fleet: control.fleet?.status() ?? null,
  };
}
