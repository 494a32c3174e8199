// The live status of an application, with links to its objects; changes nothing.
import { Anchor, Badge, Group, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import type { Read, Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Fact, Section } from "../../parts/page-layout.tsx";
import { StatusDot } from "../../parts/status.tsx";
import { httpsOf, stateOf, type StateText } from "./application-state.ts";
import { useProbe } from "./upstream-probe.ts";
import { CheckLine } from "./live-checks.tsx";

interface Props {
  readonly application: Read<"applications">;
}

export function ApplicationStatus({ application }: Props) {
  const probed = useProbe(application);
  const targets = application.targets as readonly Schemas["Target"][];
  return (
    <Section title="State">
      <Stack gap={6}>
        <Fact label="Traffic">
          <Sentence text={stateOf(application, probed)} />
        </Fact>
        <Fact label="HTTPS">
          <Sentence text={httpsOf(application)} />
        </Fact>
        <Fact label="Servers">
          {targets.length === 0 ? (
            "none"
          ) : (
            <Stack gap={2}>
              {targets.map(({ id, host, port, health }) => (
                <Group key={id} gap="xs">
                  <span className="mono">
                    {host}
                    {port === null ? "" : `:${port}`}
                  </span>
                  <StatusDot state={health.state} detail={health.last_error} />
                </Group>
              ))}
            </Stack>
          )}
        </Fact>
        <Fact label="Objects">
          <Parts application={application} />
        </Fact>
        {application.warnings.map((warning) => (
          <CheckLine key={warning} status="warning">
            {warning}
          </CheckLine>
        ))}
      </Stack>
    </Section>
  );
}

function Sentence({ text }: { readonly text: StateText }) {
  return (
    <Stack gap={0}>
      <StatusDot state={text.state} tone={text.tone} />
      {text.detail !== null && (
        <Text size="xs" c="dimmed">
          {text.detail}
        </Text>
      )}
    </Stack>
  );
}

interface Part {
  readonly page: string;
  readonly id: string;
  readonly kind: string;
  readonly name: string;
}

function partsOf(application: Props["application"]): readonly Part[] {
  const { service, routes, plugins } = application;
  const certificates = [application.certificate, application.interim_certificate].filter(
    (one) => one !== null,
  ) as readonly Schemas["Certificate"][];
  return [
    ...(service === null
      ? []
      : [{ page: "services", kind: "service", id: service.id, name: service.name }]),
    ...(routes as readonly Schemas["Route"][]).map(({ id, name }) => ({
      page: "routes",
      kind: "route",
      id,
      name: name ?? id,
    })),
    ...(plugins as readonly Schemas["Plugin"][]).map(({ id, name, label }) => ({
      page: "plugins",
      kind: "policy",
      id,
      name: label ?? name,
    })),
    ...certificates.map(({ id, name }) => ({
      page: "certificates",
      kind: "certificate",
      id,
      name,
    })),
  ];
}

/** Links to the application's objects. */
function Parts({ application }: Props) {
  return (
    <Group gap={6}>
      {partsOf(application).map(({ page, id, kind, name }) => (
        <Group key={id} gap={4} wrap="nowrap">
          <Badge variant="light" color="gray" size="sm" tt="none" style={{ flexShrink: 0 }}>
            {kind}
          </Badge>
          <Anchor component={Link} href={pagePath(page, id)} size="sm">
            {name}
          </Anchor>
        </Group>
      ))}
    </Group>
  );
}
