// Whether the servers of an application respond, as the gateway finds when it is asked; changes nothing.
import { queryOptions, useQueries } from "@tanstack/react-query";
import type { Connection } from "../../api/connection.ts";
import { useConnection } from "../../api/connection-context.ts";
import { includesRole, useRole } from "../../api/queries.ts";
import type { Read, Schemas } from "../../api/resources.ts";
import { isDomain } from "./application-values.ts";

/** The checks of one URL; `host` is sent as the Host header, unless it is no name. */
export function probeOf(connection: Connection, upstream: string, host: string) {
  const name = isDomain(host) && !host.startsWith("*.") ? host.trim() : undefined;
  return queryOptions({
    queryKey: ["applications/check-upstream", upstream, name ?? ""],
    staleTime: 10_000,
    retry: false,
    queryFn: async ({ signal }) => {
      const body = { upstream, ...(name === undefined ? {} : { host: name }) };
      const path = "/applications/check-upstream";
      const options = { method: "POST", body, signal } as const;
      return (await connection.send<Schemas["CheckReport"]>(path, options)).value.checks;
    },
  });
}

export interface Probed {
  readonly state: "checking" | "responds" | "fails" | "unknown";
  /** What the gateway says about the first server that does not respond, or else about the first one. */
  readonly message: string | null;
}

const EVERY_MS = 15_000;
const MAX_PROBED = 5;

/** Of a stored application, again and again. Viewers may not ask: unknown. */
export function useProbe(application: Read<"applications">): Probed {
  const connection = useConnection();
  const canAsk = includesRole(useRole(), "editor");
  const { domains, host_header: header } = application;
  const host =
    header === "target"
      ? ""
      : header === null || header === "preserve"
        ? (domains[0] ?? "")
        : header;
  const results = useQueries({
    queries: urlsOf(application).map((url) => ({
      ...probeOf(connection, url, host),
      enabled: canAsk,
      refetchInterval: EVERY_MS,
    })),
  });
  const checks = results.flatMap(({ data = [] }) => data);
  const failed = checks.filter(({ status }) => status === "failed");
  if (checks.length === 0)
    return {
      state: canAsk && results.some(({ isFetching }) => isFetching) ? "checking" : "unknown",
      message: null,
    };
  const isDown = failed.length === checks.length;
  const [shown] = isDown ? failed : checks.filter(({ status }) => status !== "failed");
  return { state: isDown ? "fails" : "responds", message: shown?.message ?? null };
}

function urlsOf({ upstream, targets }: Read<"applications">): readonly string[] {
  if (upstream !== null) return [upstream];
  return (targets as readonly Schemas["Target"][])
    .filter(({ port, enabled }) => port !== null && enabled)
    .slice(0, MAX_PROBED)
    .map(({ host, port }) => `http://${host.includes(":") ? `[${host}]` : host}:${port}`);
}
