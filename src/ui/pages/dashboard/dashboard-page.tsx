// The dashboard: traffic, warnings, recent changes; puts the parts of the page together.
import { Grid, Group, SegmentedControl, Skeleton, Stack } from "@mantine/core";
import { useRead } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { MissingNodes, NodeChoice, useNodeQuery } from "../../parts/node-choice.tsx";
import { PageHead } from "../../parts/page-layout.tsx";
import { useUrlState } from "../../parts/url-state.ts";
import { Attention, useAttention } from "./attention.tsx";
import type { AttentionGroup } from "./attention-groups.ts";
import { FirstSteps } from "./first-steps.tsx";
import { KeyFigures } from "./key-figures.tsx";
import { NodeTraffic } from "./node-traffic.tsx";
import { GatewayFacts, RecentChanges } from "./recent-changes.tsx";
import { TopList } from "./top-list.tsx";
import { TrafficPlots } from "./traffic-plots.tsx";

/** Refresh intervals in milliseconds: the gateway counts every ten seconds, and a month changes slowly. */
const everyMs: Readonly<Record<string, number>> = { "1h": 10_000, "24h": 30_000, "30d": 60_000 };
const SHORTEST = "1h";

type Stats = Schemas["Stats"] & Partial<Schemas["NodesStats"]>;

export default function DashboardPage() {
  const [asked, setRange] = useUrlState("range", SHORTEST);
  const range = Object.hasOwn(everyMs, asked) ? asked : SHORTEST;
  const nodes = useNodeQuery();
  const stats = useRead<Stats>("stats", {
    query: { range, ...nodes },
    everyMs: everyMs[range] ?? 10_000,
    keepsPrevious: true,
  });
  const value = stats.data?.value;
  const isQuiet = value !== undefined && !hasTraffic(value);
  // An hour without traffic does not mean a new gateway.
  const month = useRead<Stats>("stats", {
    query: { range: "30d", top: 1, ...nodes },
    enabled: isQuiet,
  });
  const isUnused = isQuiet && month.data !== undefined && !hasTraffic(month.data.value);
  const isKnown = value !== undefined && (!isQuiet || !month.isPending);
  const attention = useAttention();
  return (
    <>
      <PageHead
        title="Dashboard"
        text="Traffic, health and recent changes."
        actions={
          <Group gap="xs">
            <NodeChoice />
            {!isUnused && <RangeChoice value={range} onChange={setRange} />}
          </Group>
        }
      />
      <MissingNodes missing={value?.missing ?? []} stored={value?.stored ?? []} />
      {stats.isError && value === undefined ? (
        <ErrorPanel
          error={stats.error}
          title="Statistics cannot be loaded"
          onRetry={() => stats.refetch()}
        />
      ) : isKnown && attention !== undefined ? (
        <Body stats={value} isUnused={isUnused} attention={attention} />
      ) : (
        <BodySkeleton />
      )}
    </>
  );
}

interface BodyProps {
  readonly stats: Stats;
  /** No request in the last month. */
  readonly isUnused: boolean;
  readonly attention: readonly AttentionGroup[];
}

function Body({ stats, isUnused, attention }: BodyProps) {
  const { history } = stats;
  return (
    <>
      <Attention groups={attention} />
      {(isUnused || history.by_route.every(({ id }) => id.startsWith("_"))) && (
        <FirstSteps isUnused={isUnused} />
      )}
      {!isUnused && <KeyFigures now={stats.now} />}
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 8 }}>
          {isUnused ? <RecentChanges /> : <TrafficPlots stats={stats} />}
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 4 }}>
          {!isUnused && (
            <>
              <NodeTraffic nodes={stats.nodes ?? []} />
              <TopList history={history} />
              <RecentChanges />
            </>
          )}
          <GatewayFacts />
        </Grid.Col>
      </Grid>
    </>
  );
}

interface RangeChoiceProps {
  readonly value: string;
  readonly onChange: (range: string) => void;
}

function RangeChoice({ value, onChange }: RangeChoiceProps) {
  return (
    <SegmentedControl
      aria-label="Time"
      data={[
        { value: "1h", label: "Hour" },
        { value: "24h", label: "Day" },
        { value: "30d", label: "30 days" },
      ]}
      value={value}
      onChange={onChange}
    />
  );
}

const hasTraffic = ({ now, history }: Stats): boolean => now.requests + history.total.requests > 0;

/** One skeleton for all parts: parts that load one by one would shift the layout. */
function BodySkeleton() {
  return (
    <Stack role="status" aria-busy="true" aria-label="Loading">
      <Skeleton h={110} />
      <Skeleton h={276} />
      <Skeleton h={276} />
    </Stack>
  );
}
