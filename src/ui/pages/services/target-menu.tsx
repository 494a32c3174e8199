// The actions of one target: drain, override its health, edit, remove; sends nothing by itself.
import { ActionIcon, Menu } from "@mantine/core";
import {
  IconDots,
  IconHeartbeat,
  IconHeartBroken,
  IconHeartQuestion,
  IconPencil,
  IconPlayerPlay,
  IconTrash,
  IconDropletDown,
} from "@tabler/icons-react";
import type { TargetChange } from "./target-change.ts";
import type { Target } from "./live-targets.tsx";
import { addressOf } from "./target-weight.ts";

interface Props {
  readonly target: Target;
  readonly change: TargetChange;
  readonly isOverridden: boolean;
  readonly onEdit: () => void;
  readonly onDelete: () => void;
}

/** The default; draining does not store the previous weight. */
const USUAL_WEIGHT = 100;
const HOUR = 3600;

export function TargetMenu({ target, change, isOverridden, onEdit, onDelete }: Props) {
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions of ${addressOf(target)}`}>
          <IconDots size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<IconPencil size={16} />} onClick={onEdit}>
          Edit
        </Menu.Item>
        {target.weight === 0 ? (
          <Menu.Item
            leftSection={<IconPlayerPlay size={16} />}
            onClick={() => change.patch(target, { weight: USUAL_WEIGHT })}
          >
            End draining
          </Menu.Item>
        ) : (
          <Menu.Item
            leftSection={<IconDropletDown size={16} />}
            onClick={() => change.patch(target, { weight: 0 })}
          >
            Drain: no new requests
          </Menu.Item>
        )}
        <Menu.Divider />
        <Menu.Label>Health override</Menu.Label>
        <Menu.Item
          leftSection={<IconHeartBroken size={16} />}
          onClick={() => change.override(target, { state: "unhealthy", ttl: HOUR })}
        >
          Unhealthy for an hour
        </Menu.Item>
        <Menu.Item
          leftSection={<IconHeartBroken size={16} />}
          onClick={() => change.override(target, { state: "unhealthy", ttl: null })}
        >
          Unhealthy until cleared
        </Menu.Item>
        <Menu.Item
          leftSection={<IconHeartbeat size={16} />}
          onClick={() => change.override(target, { state: "healthy", ttl: HOUR })}
        >
          Healthy for an hour
        </Menu.Item>
        {isOverridden && (
          <Menu.Item
            leftSection={<IconHeartQuestion size={16} />}
            onClick={() => change.override(target, { state: "auto", ttl: null })}
          >
            Clear the override
          </Menu.Item>
        )}
        <Menu.Divider />
        <Menu.Item
          color="var(--mantine-color-error)"
          leftSection={<IconTrash size={16} />}
          onClick={onDelete}
        >
          Remove
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
