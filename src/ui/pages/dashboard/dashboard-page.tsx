// The first page: what is in service and what needs attention; knows no other page.
import { Alert, Anchor, Group, List, SimpleGrid, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { useResourceList, useStatus } from "../../api/queries.ts";
import { type ResourceKey, resources } from "../../api/resources.ts";
import { Fact, PageHead, Section } from "../../parts/page-layout.tsx";
import { RelativeTime } from "../../parts/status.tsx";

export default function DashboardPage() {
  const { data } = useStatus();
  const warnings = data?.warnings ?? [];
  return (
    <>
      <PageHead title="Dashboard" text="What is in service, and what needs attention." />
      <Stack>
        {warnings.length > 0 && (
          <Alert color="yellow" title="Needs attention">
            <List size="sm">
              {warnings.map((warning) => (
                <List.Item key={warning}>{warning}</List.Item>
              ))}
            </List>
          </Alert>
        )}
        <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
          <Count resource="applications" href="/ui/applications" />
          <Count resource="services" href="/ui/services" />
          <Count resource="routes" href="/ui/routes" />
          <Count resource="certificates" href="/ui/certificates" />
        </SimpleGrid>
        <Section title="Gateway">
          <Stack gap={6}>
            <Fact label="Version">{data?.version}</Fact>
            <Fact label="Configuration">Revision {data?.revision}</Fact>
            <Fact label="Workers">
              {data?.workers_ready} of {data?.workers} serve it
            </Fact>
            <Fact label="Started">
              <RelativeTime at={startOf(data?.uptime_seconds)} />
            </Fact>
          </Stack>
        </Section>
      </Stack>
    </>
  );
}

const startOf = (seconds: number | undefined): string | null =>
  seconds === undefined ? null : new Date(Date.now() - seconds * 1000).toISOString();

function Count({ resource, href }: { readonly resource: ResourceKey; readonly href: string }) {
  const { data } = useResourceList(resource);
  const { plural } = resources[resource];
  return (
    <Section title={plural.charAt(0).toUpperCase() + plural.slice(1)}>
      <Group justify="space-between" align="baseline">
        <Text fz={28} fw={650} lh={1}>
          {data?.length ?? "–"}
        </Text>
        <Anchor component={Link} href={href} size="sm" aria-label={`Show all ${plural}`}>
          Show all
        </Anchor>
      </Group>
    </Section>
  );
}
