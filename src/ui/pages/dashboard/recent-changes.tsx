// Recent configuration changes and the state of the gateway; changes nothing.
import { Anchor, Group, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { useRead, useStatus } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Fact, Section } from "../../parts/page-layout.tsx";
import { RelativeTime, StatusDot } from "../../parts/status.tsx";

const SHOWN = 6;

export function RecentChanges() {
  const { data } = useRead<readonly Schemas["Revision"][]>("revisions");
  const newest = (data?.value ?? []).slice(-SHOWN).toReversed();
  return (
    <Section
      title="Recent changes"
      actions={
        <Anchor component={Link} href={pagePath("revisions")} size="sm">
          Show all
        </Anchor>
      }
    >
      {newest.length === 0 ? (
        <Text size="sm" c="dimmed">
          No changes yet.
        </Text>
      ) : (
        <Stack gap="xs" component="ol" m={0} p={0} style={{ listStyle: "none" }}>
          {newest.map(({ number, at, actor, summary }) => (
            <li key={number}>
              <Text size="sm" style={{ overflowWrap: "anywhere" }}>
                {summary}
              </Text>
              <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
                {actor}, <RelativeTime at={at} />
              </Text>
            </li>
          ))}
        </Stack>
      )}
    </Section>
  );
}

export function GatewayFacts() {
  const { data } = useStatus();
  if (data === undefined) return null;
  const { workers, workers_ready: ready, uptime_seconds: uptime } = data;
  return (
    <Section title="Gateway">
      <Stack gap={6}>
        <Fact label="Workers">
          <Group gap="xs">
            <StatusDot
              state={ready === workers ? "ready" : "degraded"}
              detail="Ready workers serve the current configuration"
            />
            {ready} of {workers}
          </Group>
        </Fact>
        <Fact label="Configuration">revision {data.revision}</Fact>
        <Fact label="Version">{data.version}</Fact>
        <Fact label="Started">
          <RelativeTime at={new Date(Date.now() - uptime * 1000).toISOString()} />
        </Fact>
      </Stack>
    </Section>
  );
}
