// One row of a list: selection, name, cells, switch and menu; knows no resource by name.
import { ActionIcon, Anchor, Badge, Checkbox, Group, Menu, Switch, Text } from "@mantine/core";
import { IconCopy, IconDots, IconPencil, IconTrash } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { useSwitch } from "../api/bulk.ts";
import { nameOf, type Read, type ResourceKey, resources, type Role } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";
import { type PendingDelete, toPendingDelete } from "./confirm-delete.tsx";
import { tagsOf } from "./list-filter.ts";
import { Can } from "./page-layout.tsx";
import type { ResourceTableProps } from "./resource-table.tsx";
import { StatusDot } from "./status.tsx";
import type { RowPosition } from "./virtual-rows.tsx";

interface RowHeadProps {
  readonly titles: readonly string[];
  readonly isAll: boolean;
  readonly isSome: boolean;
  readonly onAll: (isOn: boolean) => void;
  readonly writes: Role;
}

export function RowHead({ titles, isAll, isSome, onAll, writes }: RowHeadProps) {
  return (
    <thead>
      <tr className="list-head">
        <th scope="col">
          <Can needs={writes} otherwise={<Blank />}>
            <Checkbox
              size="xs"
              aria-label="Select all"
              checked={isAll}
              indeterminate={isSome}
              onChange={(event) => onAll(event.currentTarget.checked)}
            />
          </Can>
          <span className="visually-hidden">Selected</span>
        </th>
        <th scope="col">Name</th>
        {titles.map((title) => (
          <th key={title} scope="col">
            {title}
          </th>
        ))}
        <th scope="col" style={{ minWidth: 82 }}>
          <span className="visually-hidden">Enabled and actions</span>
        </th>
      </tr>
    </thead>
  );
}

/** As wide as the checkbox of other roles. */
const Blank = () => <span style={{ display: "inline-block", width: 4 }} />;

interface RowProps<K extends ResourceKey> {
  readonly table: ResourceTableProps<K>;
  readonly row: Read<K>;
  readonly index: number;
  readonly position: RowPosition;
  readonly isSelected: boolean;
  readonly onSelect: (isOn: boolean) => void;
  readonly onDelete: (object: PendingDelete) => void;
}

export function ResourceRow<K extends ResourceKey>(props: RowProps<K>) {
  const { table, row, index, position, isSelected, onSelect } = props;
  const name = nameOf(row);
  return (
    <tr className="list-row" aria-rowindex={index + 2} {...position}>
      <td className="list-cell">
        <Can needs={resources[table.resource].writes} otherwise={<Blank />}>
          <Checkbox
            size="xs"
            aria-label={`Select ${name}`}
            checked={isSelected}
            onChange={(event) => onSelect(event.currentTarget.checked)}
          />
        </Can>
      </td>
      <NameCell {...props} name={name} />
      {table.columns.map(({ title, render }) => (
        <td key={title} className="list-cell is-detail">
          <span className="cell-label" aria-hidden="true">
            {title}
          </span>
          <div className="cell-value" style={{ minWidth: 0 }}>
            {render(row)}
          </div>
        </td>
      ))}
      <Actions {...props} name={name} />
    </tr>
  );
}

function NameCell<K extends ResourceKey>({ table, row, name }: RowProps<K> & { name: string }) {
  const { subtitle = descriptionOf } = table;
  const below = subtitle(row);
  const tags = tagsOf(row);
  return (
    <td className="list-cell is-name">
      <Group gap={6}>
        <Anchor component={Link} href={pagePath(table.page, row.id)} fw={600} size="sm">
          {name}
        </Anchor>
        {tags.slice(0, 4).map((tag) => (
          <Badge key={tag} size="xs" variant="outline" color="gray" tt="none">
            {tag}
          </Badge>
        ))}
        {tags.length > 4 && <Text size="xs">+{tags.length - 4}</Text>}
      </Group>
      {below !== "" && below !== null && (
        <Text size="xs" c="dimmed" component="div" lineClamp={1}>
          {below}
        </Text>
      )}
    </td>
  );
}

const descriptionOf = (row: object): ReactNode =>
  "description" in row && typeof row.description === "string" ? row.description : "";

function Actions<K extends ResourceKey>(props: RowProps<K> & { name: string }) {
  const { table, row, name } = props;
  const { resource } = table;
  const toggle = useSwitch(resource);
  const enabled = "enabled" in row && typeof row.enabled === "boolean" ? row.enabled : null;
  const { writes } = resources[resource];
  const state = enabled === null ? null : <StatusDot state={enabled ? "on" : "off"} />;
  return (
    <td className="list-cell is-end">
      <Group gap={6} wrap="nowrap" miw={82} justify="flex-end">
        <Can needs={writes} otherwise={state}>
          {enabled !== null && (
            <Switch
              size="sm"
              aria-label={`Enable ${name}`}
              checked={enabled}
              onChange={(event) => void toggle({ id: row.id, name }, event.currentTarget.checked)}
            />
          )}
        </Can>
        <Can needs={writes}>
          <RowMenuButton {...props} />
        </Can>
      </Group>
    </td>
  );
}

/** Renders only the button; the menu renders on first use. */
function RowMenuButton<K extends ResourceKey>(props: RowProps<K> & { name: string }) {
  const [isUsed, setUsed] = useState(false);
  if (isUsed) return <RowMenu {...props} />;
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      aria-label={`Actions of ${props.name}`}
      aria-haspopup="menu"
      onClick={() => setUsed(true)}
    >
      <IconDots size={18} />
    </ActionIcon>
  );
}

function RowMenu<K extends ResourceKey>({
  table,
  row,
  name,
  onDelete,
}: RowProps<K> & { name: string }) {
  const { page, menu, canClone = true } = table;
  return (
    <Menu position="bottom-end" withinPortal defaultOpened>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions of ${name}`}>
          <IconDots size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          component={Link}
          href={pagePath(page, row.id)}
          leftSection={<IconPencil size={16} />}
        >
          Edit
        </Menu.Item>
        {menu?.(row)}
        {canClone && (
          <Menu.Item
            component={Link}
            href={`${pagePath(page, "new")}?from=${row.id}`}
            leftSection={<IconCopy size={16} />}
          >
            Clone
          </Menu.Item>
        )}
        <Menu.Divider />
        <Menu.Item
          color="var(--mantine-color-error)"
          leftSection={<IconTrash size={16} />}
          onClick={() => onDelete(toPendingDelete(row))}
        >
          Delete
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
