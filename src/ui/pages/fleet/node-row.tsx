// One node of the fleet: its state, how far it is, and its actions.
import { ActionIcon, Anchor, Badge, Code, Group, Menu, Text } from "@mantine/core";
import {
  IconAlertTriangle,
  IconDots,
  IconPlayerPlay,
  IconPlugConnectedX,
  IconTrash,
} from "@tabler/icons-react";
import { useState } from "react";
import { capitalised } from "../../api/changes.tsx";
import type { Schemas } from "../../api/resources.ts";
import { DetailCell } from "../../parts/detail-cell.tsx";
import { Can } from "../../parts/page-layout.tsx";
import { StatusBadge, StatusMark, toneOf } from "../../parts/status.tsx";
import { ForgetDialog } from "./forget-dialog.tsx";
import { CLOCK_LIMIT_MS, clockText, lagText, seenText } from "./node-text.ts";
import { useDrain } from "./use-drain.ts";

type Node = Schemas["Node"];

interface RowProps {
  readonly node: Node;
  /** Position of the last change of the fleet. */
  readonly head: number;
  /** Whether this page comes from it. */
  readonly isOwn: boolean;
  /** Whether the database of the fleet does not answer, so that other nodes are unknown. */
  readonly isBlind: boolean;
}

export function NodeRow({ node, head, isOwn, isBlind }: RowProps) {
  const { name, version, error, plugins, warnings } = node;
  const hasPlugins = plugins !== null && plugins.length > 0;
  const state = isOwn || !isBlind ? node.state : "unknown";
  return (
    <tr className="list-row">
      <td className="list-cell">
        <StatusMark tone={toneOf(state)} />
      </td>
      <td className="list-cell is-name">
        <Group gap={6}>
          <NodeName name={name} url={isOwn ? null : node.url} />
          {isOwn && <Mark color="blue">this node</Mark>}
          {node.leader && !isBlind && <Mark color="gray">leader</Mark>}
        </Group>
        <Text size="xs" c="dimmed">
          {version}
        </Text>
      </td>
      <DetailCell title="State">
        <Group gap={4}>
          <StatusBadge state={state} />
          {node.draining && state !== "draining" && <StatusBadge state="draining" />}
        </Group>
      </DetailCell>
      {figuresOf(node, head).map(({ title, text, note = null, isNotable }) => (
        <DetailCell key={title} title={title}>
          <Text size="sm" span {...(isNotable && !isBlind ? { fw: 600 } : { c: "dimmed" })}>
            {isBlind ? "–" : text}
          </Text>
          {note !== null && !isBlind && (
            <Text size="xs" c="dimmed">
              {note}
            </Text>
          )}
        </DetailCell>
      ))}
      <td className="list-cell is-end">
        {!isBlind && (
          <Can needs="admin">
            <NodeMenu node={node} isOwn={isOwn} />
          </Can>
        )}
      </td>
      {!isBlind && (error !== "" || warnings.length > 0 || hasPlugins) && (
        <td className="list-cell" style={{ gridColumn: "2 / -1" }}>
          {error !== "" && (
            <Text size="sm" c="var(--mantine-color-error)">
              {capitalised(error)}
            </Text>
          )}
          {hasPlugins && <PluginHashes plugins={plugins} />}
          {warnings.map((warning) => (
            <Group key={warning} gap={6} wrap="nowrap">
              <IconAlertTriangle size={16} color="var(--mantine-color-yellow-6)" aria-hidden />
              <Text size="sm" style={{ overflowWrap: "anywhere" }}>
                {capitalised(warning)}
              </Text>
            </Group>
          ))}
        </td>
      )}
    </tr>
  );
}

/** What it serves from its directory; the whole hash in the title. */
function PluginHashes({ plugins }: { readonly plugins: NonNullable<Node["plugins"]> }) {
  return (
    <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
      {"Plugins: "}
      {plugins.map(({ name, hash }, index) => (
        <span key={name} title={`sha256 ${hash}`}>
          {index === 0 ? "" : ", "}
          {name} <Code fz="xs">{hash.slice(0, SHOWN_DIGITS)}</Code>
        </span>
      ))}
    </Text>
  );
}

/** Of a hash: enough to tell versions apart. */
const SHOWN_DIGITS = 12;

function Mark({ color, children }: { readonly color: string; readonly children: string }) {
  return (
    <Badge size="xs" variant="light" color={color} tt="none">
      {children}
    </Badge>
  );
}

/** Leads to the management page of the node, where it is known. */
function NodeName({ name, url }: { readonly name: string; readonly url: string | null }) {
  const style = { overflowWrap: "anywhere" } as const;
  if (url === null)
    return (
      <Text fw={600} size="sm" span style={style}>
        {name}
      </Text>
    );
  return (
    <Anchor href={url} target="_blank" rel="noopener noreferrer" fw={600} size="sm" style={style}>
      {name}
    </Anchor>
  );
}

interface Figure {
  readonly title: string;
  readonly text: string;
  readonly note?: string;
  readonly isNotable: boolean;
}

function figuresOf(
  { served, state, seen_ms_ago, clock_offset_ms }: Node,
  head: number,
): readonly Figure[] {
  return [
    {
      title: "Configuration",
      text: lagText(served, head),
      note: `entry ${served}`,
      isNotable: served < head,
    },
    { title: "Last heartbeat", text: seenText(seen_ms_ago), isNotable: state === "away" },
    {
      title: "Clock",
      text: clockText(clock_offset_ms),
      isNotable: Math.abs(clock_offset_ms) > CLOCK_LIMIT_MS,
    },
  ];
}

function NodeMenu({ node, isOwn }: { readonly node: Node; readonly isOwn: boolean }) {
  const [isForgetting, setForgetting] = useState(false);
  const drain = useDrain();
  const { name, draining, state } = node;
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon
            variant="subtle"
            color="gray"
            loading={drain.isPending}
            aria-label={`Actions of ${name}`}
          >
            <IconDots size={18} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={draining ? <IconPlayerPlay size={16} /> : <IconPlugConnectedX size={16} />}
            onClick={() => drain.mutate({ node, drained: !draining })}
          >
            {draining ? "End draining" : "Drain"}
          </Menu.Item>
          {state === "away" && !isOwn && (
            <>
              <Menu.Divider />
              <Menu.Item
                color="var(--mantine-color-error)"
                leftSection={<IconTrash size={16} />}
                onClick={() => setForgetting(true)}
              >
                Forget
              </Menu.Item>
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      <ForgetDialog node={isForgetting ? node : null} onClose={() => setForgetting(false)} />
    </>
  );
}
