// What the gateway finds in containers and files: each site, what it became, and why one is not served.
import { Anchor, Code, Group, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { useRead } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { EmptyState } from "../../parts/empty-state.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { pageOf } from "../../parts/object-page.ts";
import { Can, PageHead, Section } from "../../parts/page-layout.tsx";
import { RowsSkeleton } from "../../parts/skeletons.tsx";
import { RelativeTime, StatusDot, StatusMark, type Tone } from "../../parts/status.tsx";

type Source = Schemas["Discovery"][number];
type Site = Source["sites"][number];

const REFRESH_MS = 2000;

export default function DiscoveredPage() {
  const list = useRead<readonly Source[]>("discovery", { everyMs: REFRESH_MS });
  return (
    <>
      <PageHead
        title="Discovered"
        text="Applications that follow the labels of containers and the files of a directory."
      />
      {list.isPending ? (
        <RowsSkeleton />
      ) : list.data === undefined ? (
        <ErrorPanel error={list.error} onRetry={() => list.refetch()} />
      ) : (
        <Sources sources={list.data.value} />
      )}
    </>
  );
}

function Sources({ sources }: { readonly sources: readonly Source[] }) {
  const active = sources.filter(({ state, sites }) => state !== "off" || sites.length > 0);
  if (active.length === 0) return <NothingOn />;
  return active.map((source) => <SourceSection key={source.name} source={source} />);
}

function NothingOn() {
  return (
    <EmptyState
      title="Discovery is off"
      text="A container with two labels becomes an application with a host name. The gateway only reads from Docker or Podman."
    >
      <Code block ta="left" w="100%" style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
        {"labels:\n  sluice.enable: true\n  sluice.host: wiki.home.example.com"}
      </Code>
      <Can needs="admin">
        <Anchor component={Link} href={pagePath("gateway-settings")} size="sm">
          Turn it on in the gateway settings
        </Anchor>
      </Can>
      <Text size="sm" c="dimmed">
        <Code>sluice serve --config-dir DIR</Code> follows a directory of configuration files.
      </Text>
    </EmptyState>
  );
}

const tones: Readonly<Record<Source["state"], Tone>> = {
  off: "idle",
  connecting: "warn",
  connected: "good",
  failed: "bad",
};

function SourceSection({ source }: { readonly source: Source }) {
  const { name, state, problem, sites, found, looked_at } = source;
  const kind = name.startsWith("files") ? "file" : "container";
  // What needs a look comes first.
  const inOrder = sites.toSorted(
    (a, b) => Number(a.problems.length === 0) - Number(b.problems.length === 0),
  );
  return (
    <Section
      title={name}
      text={
        <Group gap="xs">
          <StatusDot state={state} tone={tones[state]} />
          <Text size="sm">
            {found === 1 ? `1 ${kind}` : `${found} ${kind}s`},{" "}
            {sites.filter((site) => site.served).length} served
          </Text>
          {looked_at !== null && <RelativeTime at={looked_at} />}
        </Group>
      }
    >
      <Stack gap="xs">
        {problem !== null && (
          <Text size="sm" c="var(--mantine-color-error)" role="alert">
            {problem}
          </Text>
        )}
        {inOrder.map((site, index) => (
          <SiteEntry key={`${site.from} ${site.places[0] ?? index}`} site={site} />
        ))}
        {sites.length === 0 && problem === null && (
          <Text size="sm" c="dimmed">
            {kind === "container"
              ? "No container has the label sluice.enable=true."
              : "No file has an object."}
          </Text>
        )}
      </Stack>
    </Section>
  );
}

function SiteEntry({ site }: { readonly site: Site }) {
  const { from, places, served, objects, problems } = site;
  const tone = problems.length === 0 ? "good" : served ? "warn" : "bad";
  return (
    <Group className="line" pb="xs" gap="xs" wrap="nowrap" align="baseline">
      <StatusMark tone={tone} />
      <Stack gap={2} style={{ minWidth: 0, overflowWrap: "anywhere" }}>
        <Text size="sm" fw={600}>
          {places.length === 0 ? from : places.join(", ")}
        </Text>
        {places.length > 0 && (
          <Text size="xs" c="dimmed">
            {from}
          </Text>
        )}
        {problems.map((problem) => (
          <Text key={problem} size="sm">
            {problem}
          </Text>
        ))}
        {objects.length > 0 && <Objects objects={objects} />}
      </Stack>
    </Group>
  );
}

const MAX_OBJECTS = 6;

function Objects({ objects }: Pick<Site, "objects">) {
  return (
    <Group gap="sm">
      {objects.slice(0, MAX_OBJECTS).map(({ collection, id, name }) => {
        const kind = collection.replace(/s$/, "");
        const href = pageOf(kind, id);
        const label = `${kind.replaceAll("_", " ")} ${name}`;
        return href === null ? (
          <Text key={id} size="xs" c="dimmed">
            {label}
          </Text>
        ) : (
          <Anchor key={id} component={Link} href={href} size="xs" underline="always">
            {label}
          </Anchor>
        );
      })}
      {objects.length > MAX_OBJECTS && (
        <Text size="xs" c="dimmed">
          and {objects.length - MAX_OBJECTS} more
        </Text>
      )}
    </Group>
  );
}
