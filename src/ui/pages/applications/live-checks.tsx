// Checks domains and upstream URLs while they are typed: DNS, ports, reachability; changes nothing.
import { Anchor, Group, Loader, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconAlertTriangle, IconCircleCheck, IconCircleX } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useConnection } from "../../api/connection-context.ts";
import { toMessage } from "../../api/error.ts";
import { includesRole, useRole } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { isDomain, isPublicName, isUpstream } from "./application-values.ts";
import { probeOf } from "./upstream-probe.ts";

type Status = "ok" | "warning" | "failed";

/** Milliseconds without typing before a check runs. */
const PAUSE_MS = 600;

interface CheckLineProps {
  readonly status: Status;
  readonly children: ReactNode;
}

const marks = {
  ok: { icon: IconCircleCheck, color: "teal", word: "OK" },
  warning: { icon: IconAlertTriangle, color: "yellow", word: "Warning" },
  failed: { icon: IconCircleX, color: "red", word: "Failed" },
} as const;

/** One check result: a mark, and a sentence. */
export function CheckLine({ status, children }: CheckLineProps) {
  const { icon: Icon, color, word } = marks[status];
  return (
    <Group gap={6} wrap="nowrap" align="flex-start">
      <Icon
        size={16}
        style={{ flexShrink: 0, marginTop: 2, color: `var(--mantine-color-${color}-6)` }}
        aria-hidden="true"
      />
      <Text size="sm" component="div" style={{ overflowWrap: "anywhere", minWidth: 0 }}>
        <span className="visually-hidden">{word}: </span>
        {children}
      </Text>
    </Group>
  );
}

export function Checking({ text }: { readonly text: string }) {
  return (
    <Group gap={8} wrap="nowrap">
      <Loader size={14} aria-hidden="true" />
      <Text size="sm" c="dimmed">
        {text}
      </Text>
    </Group>
  );
}

/** The gateway's preflight report of a domain; undefined while it runs, or without a domain. */
function usePreflight(domain: string) {
  const connection = useConnection();
  const [asked] = useDebouncedValue(domain.trim().toLowerCase(), PAUSE_MS);
  const canAsk = includesRole(useRole(), "editor");
  const isEnabled = canAsk && isDomain(asked) && asked.includes(".") && !asked.startsWith("*.");
  const query = useQuery({
    queryKey: ["certificates/preflight", asked],
    enabled: isEnabled,
    staleTime: 20_000,
    queryFn: async ({ signal }) => {
      const body = { domains: [asked], challenge: "http-01" };
      const options = { method: "POST", body, signal } as const;
      return (await connection.send<Schemas["PreflightReport"]>("/certificates/preflight", options))
        .value.checks;
    },
  });
  return { ...query, isEnabled, isCurrent: asked === domain.trim().toLowerCase() };
}

type CheckName = "address" | "port_80" | "caa";

interface DomainChecksProps {
  readonly domain: string;
  /** The checks to show. */
  readonly names: readonly CheckName[];
}

/** Live checks of one domain. */
export function DomainChecks({ domain, names }: DomainChecksProps) {
  const { data, error, isFetching, isEnabled, isCurrent, refetch } = usePreflight(domain);
  if (!isDomain(domain)) return null;
  const isPublic = isPublicName(domain);
  if (domain.trim().startsWith("*."))
    return (
      <CheckLine status="warning">
        A wildcard certificate requires the DNS challenge and a DNS provider.
      </CheckLine>
    );
  if (!isEnabled || !isCurrent) return null;
  if (isFetching)
    return <Checking text={`Checking whether ${domain.trim()} points to this gateway…`} />;
  if (error !== null) return <CheckLine status="warning">{toMessage(error)}</CheckLine>;
  const all = data ?? [];
  // Without an address there is no port to check.
  const isNowhere = all.some(({ name, status }) => name === "address" && status === "failed");
  const shown = all.filter(
    ({ name }) => names.includes(name as CheckName) && !(isNowhere && name === "port_80"),
  );
  if (shown.length === 0) return null;
  return (
    <Stack gap={4} aria-live="polite">
      {shown.map(({ name, status, message }) => (
        <CheckLine key={name} status={softened(status as Status, isPublic)}>
          {message}
        </CheckLine>
      ))}
      {shown.some(({ status }) => status !== "ok") && (
        <Anchor
          component="button"
          type="button"
          size="sm"
          style={{ alignSelf: "flex-start" }}
          onClick={() => void refetch()}
        >
          Check again
        </Anchor>
      )}
    </Stack>
  );
}

/** Private names may resolve only inside their network. */
const softened = (status: Status, isPublic: boolean): Status =>
  status === "failed" && !isPublic ? "warning" : status;

interface UpstreamCheckProps {
  readonly upstream: string;
  /** Sent as the Host header; empty: the upstream's own. */
  readonly host: string;
}

/** Whether the upstream responds. */
export function UpstreamCheck({ upstream, host }: UpstreamCheckProps) {
  const connection = useConnection();
  const [asked] = useDebouncedValue(upstream.trim(), PAUSE_MS);
  const canAsk = includesRole(useRole(), "editor");
  const { data, error, isFetching, refetch } = useQuery({
    ...probeOf(connection, asked, host),
    enabled: canAsk && isUpstream(asked),
  });
  if (!isUpstream(asked) || asked !== upstream.trim()) return null;
  if (isFetching) return <Checking text={`Checking ${asked}…`} />;
  if (error !== null) return <CheckLine status="warning">{toMessage(error)}</CheckLine>;
  return (
    <Stack gap={4} aria-live="polite">
      {data?.map(({ name: check, status, message }) => (
        <CheckLine key={check} status={status as Status}>
          {message}
          {status === "failed" && ". You can continue and start it later"}
          {message.includes("not trusted") &&
            "; turn off certificate verification in the service afterwards, if you trust it"}
        </CheckLine>
      ))}
      {data?.some(({ status }) => status !== "ok") && (
        <Anchor
          component="button"
          type="button"
          size="sm"
          style={{ alignSelf: "flex-start" }}
          onClick={() => void refetch()}
        >
          Check again
        </Anchor>
      )}
    </Stack>
  );
}
