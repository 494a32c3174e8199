// Warnings, unhealthy targets and expiring certificates; changes nothing.
import { Alert, Anchor, Group, List, Stack, Text } from "@mantine/core";
import { IconCircleCheck } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useResourceList, useStatus } from "../../api/queries.ts";
import type { Read, Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Section } from "../../parts/page-layout.tsx";
import { RelativeTime, StatusDot } from "../../parts/status.tsx";

const SHOWN = 6;
const DAY_MS = 86_400_000;
/** ACME certificates renew 30 days before expiry: fewer days mean that renewal fails. */
const SOON_MS = 21 * DAY_MS;

export function Warnings() {
  const { data } = useStatus();
  const warnings = data?.warnings ?? [];
  if (warnings.length === 0) return null;
  return (
    <Alert color="yellow" title="Needs attention" mb="md">
      <List size="sm">
        {warnings.map((warning) => (
          <List.Item key={warning} style={{ overflowWrap: "anywhere" }}>
            {warning}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}

export function UnhealthyTargets() {
  const targets = useResourceList("targets");
  const services = useResourceList("services");
  const down = (targets.data ?? []).filter(({ health: { state } }) =>
    ["failing", "unhealthy"].includes(state),
  );
  const nameOf = (id: string) => services.data?.find((service) => service.id === id)?.name ?? id;
  return (
    <Attention
      title="Unhealthy targets"
      count={down.length}
      good={targets.data?.length === 0 ? "No targets yet" : "No unhealthy targets"}
      more={{ href: pagePath("services"), label: "Show all services" }}
    >
      {down.slice(0, SHOWN).map((target) => (
        <UnhealthyTarget key={target.id} target={target} service={nameOf(target.service_id)} />
      ))}
    </Attention>
  );
}

function UnhealthyTarget(props: { readonly target: Schemas["Target"]; readonly service: string }) {
  const { target, service } = props;
  const { host, port, health, service_id: id } = target;
  return (
    <Item
      title={
        <Anchor component={Link} href={pagePath("services", id)} size="sm">
          {service}
        </Anchor>
      }
      state={<StatusDot state={health.state} />}
    >
      <span className="mono">{port === null ? host : `${host}:${port}`}</span>,{" "}
      <RelativeTime at={health.since} />
      {health.last_error !== null && `: ${health.last_error}`}
    </Item>
  );
}

export function ExpiringCertificates() {
  const certificates = useResourceList("certificates");
  const soon = (certificates.data ?? [])
    .filter(needsLook)
    .sort((a, b) => (a.not_after ?? "").localeCompare(b.not_after ?? ""));
  return (
    <Attention
      title="Certificates"
      count={soon.length}
      good={
        certificates.data?.length === 0
          ? "No certificates yet"
          : "None expires soon, none has failed"
      }
      more={{ href: pagePath("certificates"), label: "Show all certificates" }}
    >
      {soon.slice(0, SHOWN).map((certificate) => (
        <ExpiringCertificate key={certificate.id} certificate={certificate} />
      ))}
    </Attention>
  );
}

type Certificate = Read<"certificates">;

const isSoon = ({ not_after: end }: Certificate) =>
  end !== null && Date.parse(end) - Date.now() < SOON_MS;

const needsLook = (certificate: Certificate): boolean =>
  certificate.enabled && (isSoon(certificate) || certificate.status === "failed");

function ExpiringCertificate({ certificate }: { readonly certificate: Certificate }) {
  const { id, name, domains, not_after: end, last_error: error } = certificate;
  const isOver = end !== null && Date.parse(end) < Date.now();
  const state = isOver ? "expired" : isSoon(certificate) ? "expires soon" : "failed";
  return (
    <Item
      title={
        <Anchor component={Link} href={pagePath("certificates", id)} size="sm">
          {name === "" ? domains.join(", ") : name}
        </Anchor>
      }
      state={<StatusDot state={state} tone={state === "expires soon" ? "warn" : "bad"} />}
    >
      {end !== null && (
        <>
          {isOver ? "expired" : "expires"} <RelativeTime at={end} />
        </>
      )}
      {error !== null && ` ${error}`}
    </Item>
  );
}

interface AttentionProps {
  readonly title: string;
  readonly count: number;
  /** Shown without items. */
  readonly good: string;
  readonly more: { readonly href: string; readonly label: string };
  readonly children: ReactNode;
}

function Attention({ title, count, good, more, children }: AttentionProps) {
  return (
    <Section title={title}>
      {count === 0 ? (
        <Group gap="xs" wrap="nowrap">
          <IconCircleCheck size={18} color="var(--mantine-color-teal-6)" aria-hidden="true" />
          <Text size="sm" c="dimmed">
            {good}
          </Text>
        </Group>
      ) : (
        <Stack gap="xs">
          {children}
          {count > SHOWN && <Text size="sm">and {count - SHOWN} more</Text>}
          <Anchor component={Link} href={more.href} size="sm">
            {more.label}
          </Anchor>
        </Stack>
      )}
    </Section>
  );
}

interface ItemProps {
  readonly title: ReactNode;
  readonly state: ReactNode;
  readonly children: ReactNode;
}

function Item({ title, state, children }: ItemProps) {
  return (
    <div>
      <Group justify="space-between" gap="xs" wrap="nowrap" align="baseline">
        <span style={{ minWidth: 0, overflowWrap: "anywhere" }}>{title}</span>
        <span style={{ flexShrink: 0 }}>{state}</span>
      </Group>
      <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
        {children}
      </Text>
    </div>
  );
}
