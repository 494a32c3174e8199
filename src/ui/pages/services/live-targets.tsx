// The live state of a service's targets: health, load, share; changes here take effect at once.
import { Badge, Button, Card, Group, Stack, Switch, Text } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { useEvents } from "../../api/live.tsx";
import { useRead, useResource, useStatus } from "../../api/queries.ts";
import type { Read, Schemas } from "../../api/resources.ts";
import { ConfirmDelete } from "../../parts/confirm-delete.tsx";
import { type Missing, MissingNodes } from "../../parts/node-choice.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { RelativeTime, StatusBadge, StatusDot } from "../../parts/status.tsx";
import { type TargetChange, useTargetChange } from "./target-change.ts";
import { type DrawerTarget, TargetDrawer } from "./target-drawer.tsx";
import { TargetMenu } from "./target-menu.tsx";
import { addressOf, shareOf, tiersOf } from "./target-weight.ts";
import { WeightSlider } from "./weight-slider.tsx";

export type Target = Schemas["Target"];
type Health = Schemas["ServiceHealth"]["targets"][number];

/** Requests in flight change without an event. */
const EVERY_MS = 5000;

export function LiveTargets({ service }: { readonly service: Read<"services"> }) {
  const live = useResource("services", service.id);
  const path = `services/${service.id}/health`;
  const { data: status } = useStatus();
  const own = status?.fleet?.node ?? null;
  const health = useRead<Schemas["ServiceHealth"] | Schemas["NodesHealth"]>(path, {
    everyMs: EVERY_MS,
    ...(own === null ? {} : { query: { node: "all" } }),
  });
  const { here, others, missing } = healthOf(health.data?.value, own);
  useEvents(["health", "config"], () => void health.refetch());
  const [edited, setEdited] = useState<DrawerTarget | null>(null);
  const [pendingDelete, setPendingDelete] = useState<Target | null>(null);
  const change = useTargetChange(service.id);
  const targets = (live.data?.value.targets ?? service.targets) as readonly Target[];
  const state = here?.state;
  return (
    <Section
      title="Targets"
      text="Servers that run it. Changes here take effect at once."
      actions={
        <Group gap="xs">
          {state !== undefined && state !== "unknown" && <StatusBadge state={state} />}
          <Can needs="editor">
            <Button
              size="xs"
              variant="default"
              leftSection={<IconPlus size={14} />}
              onClick={() => setEdited({ target: null })}
            >
              Add a target
            </Button>
          </Can>
        </Group>
      }
    >
      <MissingNodes missing={missing} />
      <Stack gap="xs">
        {targets.map((target) => (
          <TargetCard
            key={target.id}
            target={target}
            all={targets}
            health={targetIn(here, target)}
            others={others}
            change={change}
            onEdit={() => setEdited({ target })}
            onDelete={() => setPendingDelete(target)}
          />
        ))}
        {targets.length === 0 && (
          <Text size="sm" c="dimmed">
            No targets: every request gets an error response. Add the server that runs the
            application.
          </Text>
        )}
      </Stack>
      <TargetDrawer serviceId={service.id} edited={edited} onClose={() => setEdited(null)} />
      <ConfirmDelete
        resource="targets"
        objects={
          pendingDelete === null ? null : [{ id: pendingDelete.id, name: addressOf(pendingDelete) }]
        }
        onClose={() => setPendingDelete(null)}
      />
    </Section>
  );
}

interface HealthView {
  readonly here: Schemas["ServiceHealth"] | null;
  /** As other nodes of the fleet see it: each has its own checks and its own traffic. */
  readonly others: Schemas["NodesHealth"]["items"];
  readonly missing: Missing;
}

function healthOf(
  value: Schemas["ServiceHealth"] | Schemas["NodesHealth"] | undefined,
  own: string | null,
): HealthView {
  if (value === undefined || !("items" in value))
    return { here: value ?? null, others: [], missing: [] };
  const { items, missing } = value;
  const here = items.find(({ node }) => node === own) ?? null;
  return { here, others: items.filter(({ node }) => node !== own), missing };
}

const targetIn = (health: Schemas["ServiceHealth"] | null, { id }: Target): Health | null =>
  health?.targets.find((target) => target.id === id) ?? null;

interface CardProps {
  readonly target: Target;
  readonly all: readonly Target[];
  readonly health: Health | null;
  readonly others: HealthView["others"];
  readonly change: TargetChange;
  readonly onEdit: () => void;
  readonly onDelete: () => void;
}

function TargetCard(props: CardProps) {
  const { target, all, health, others, change } = props;
  const address = addressOf(target);
  const tiers = tiersOf(all);
  return (
    <Card withBorder p="sm" component="article" aria-label={`Target ${address}`}>
      <Group gap="sm" justify="space-between" wrap="nowrap" align="flex-start">
        <Stack gap={2} style={{ minWidth: 0, flex: 1 }}>
          <Group gap="xs">
            <Text className="mono" fw={600} style={{ overflowWrap: "anywhere" }}>
              {address}
            </Text>
            {tiers.length > 1 && (
              <Badge size="xs" variant="outline" color="gray" tt="none">
                {target.priority === tiers[0] ? "used first" : `tier ${target.priority}`}
              </Badge>
            )}
            {target.tags.map((tag) => (
              <Badge key={tag} size="xs" variant="outline" color="gray" tt="none">
                {tag}
              </Badge>
            ))}
          </Group>
          <HealthLine target={target} health={health} />
          <OtherNodes target={target} health={health} others={others} />
        </Stack>
        <Can needs="editor">
          <Group gap={6} wrap="nowrap">
            <Switch
              size="sm"
              aria-label={`Enable target ${address}`}
              checked={target.enabled}
              onChange={(event) => change.patch(target, { enabled: event.currentTarget.checked })}
            />
            <TargetMenu {...props} isOverridden={health?.by === "override"} />
          </Group>
        </Can>
      </Group>
      {target.enabled && all.length > 1 && (
        <WeightSlider
          target={target}
          share={shareOf(target, all)}
          onChange={(weight) => change.patch(target, { weight })}
        />
      )}
    </Card>
  );
}

const sources = {
  override: "set by a user",
  active: "active check",
  passive: "passive check",
} as const;

function HealthLine({ target, health }: Pick<CardProps, "target" | "health">) {
  const { state, since, last_error } = health ?? target.health;
  const by = health?.by ?? null;
  const requests = health?.active_requests ?? target.active_requests;
  return (
    <>
      <Group gap="xs" align="baseline">
        <StatusDot state={state} />
        <Text size="sm" c="dimmed" component="span">
          {state === "unknown" ? (
            "it gets traffic; no failures yet"
          ) : (
            <>
              since <RelativeTime at={since} />
              {by !== null && `, ${sources[by]}`}
              {by === "override" && `; checks and traffic: ${health?.observed_state}`}
              {state === "failing" && "; it still gets traffic"}
            </>
          )}
          {requests > 0 && `; ${requests} ${requests === 1 ? "request" : "requests"} in flight`}
        </Text>
      </Group>
      {last_error !== null && ["failing", "unhealthy", "unknown"].includes(state) && (
        <Text size="sm" c="red" style={{ overflowWrap: "anywhere" }}>
          Last error: {last_error}
        </Text>
      )}
    </>
  );
}

/** Other nodes that see the target differently. */
function OtherNodes({ target, health, others }: Pick<CardProps, "target" | "health" | "others">) {
  return others.map((other) => {
    const seen = targetIn(other, target);
    if (seen === null || seen.state === (health ?? target.health).state) return null;
    return (
      <Group key={other.node} gap="xs" align="baseline">
        <StatusDot state={seen.state} />
        <Text size="sm" c="dimmed" component="span" style={{ overflowWrap: "anywhere" }}>
          on node {other.node}, since <RelativeTime at={seen.since} />
          {seen.last_error !== null && `: ${seen.last_error}`}
        </Text>
      </Group>
    );
  });
}
