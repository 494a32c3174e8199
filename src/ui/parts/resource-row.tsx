// One row of a list: selection, name, cells, switch and menu; knows no resource by name.
import { ActionIcon, Anchor, Badge, Checkbox, Group, Menu, Switch, Text } from "@mantine/core";
import { IconCopy, IconDots, IconPencil, IconTrash } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useSwitch } from "../api/bulk.ts";
import { nameOf, type Read, type ResourceKey, resources, type Role } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";
import { type Doomed, toDoomed } from "./confirm-delete.tsx";
import { tagsOf } from "./list-filter.ts";
import { Can } from "./page-layout.tsx";
import type { ResourceTableProps } from "./resource-table.tsx";
import { StatusDot } from "./status.tsx";

interface RowHeadProps {
  readonly titles: readonly string[];
  readonly isAll: boolean;
  readonly isSome: boolean;
  readonly onAll: (isOn: boolean) => void;
  readonly writes: Role;
}

export function RowHead({ titles, isAll, isSome, onAll, writes }: RowHeadProps) {
  return (
    <div role="rowgroup">
      <div className="list-head" role="row">
        <div role="columnheader">
          <Can role={writes} otherwise={<Blank />}>
            <Checkbox
              size="xs"
              aria-label="Select all"
              checked={isAll}
              indeterminate={isSome}
              onChange={(event) => onAll(event.currentTarget.checked)}
            />
          </Can>
        </div>
        <div role="columnheader">Name</div>
        {titles.map((title) => (
          <div key={title} role="columnheader">
            {title}
          </div>
        ))}
        <div role="columnheader" style={{ minWidth: 82 }}>
          <span className="visually-hidden">Enabled and actions</span>
        </div>
      </div>
    </div>
  );
}

/** As wide as the box that others see. */
const Blank = () => <span style={{ display: "inline-block", width: 4 }} />;

interface RowProps<K extends ResourceKey> {
  readonly table: ResourceTableProps<K>;
  readonly row: Read<K>;
  readonly index: number;
  readonly isSelected: boolean;
  readonly onSelect: (isOn: boolean) => void;
  readonly onDelete: (object: Doomed) => void;
}

export function ResourceRow<K extends ResourceKey>(props: RowProps<K>) {
  const { table, row, index, isSelected, onSelect } = props;
  const name = nameOf(row);
  return (
    <div className="list-row" role="row" aria-rowindex={index + 2}>
      <div className="list-cell" role="cell">
        <Can role={resources[table.resource].writes} otherwise={<Blank />}>
          <Checkbox
            size="xs"
            aria-label={`Select ${name}`}
            checked={isSelected}
            onChange={(event) => onSelect(event.currentTarget.checked)}
          />
        </Can>
      </div>
      <NameCell {...props} name={name} />
      {table.columns.map(({ title, render }) => (
        <div key={title} className="list-cell is-detail" role="cell">
          <span className="cell-label" aria-hidden="true">
            {title}
          </span>
          <div className="cell-value" style={{ minWidth: 0 }}>
            {render(row)}
          </div>
        </div>
      ))}
      <Actions {...props} name={name} />
    </div>
  );
}

function NameCell<K extends ResourceKey>({ table, row, name }: RowProps<K> & { name: string }) {
  const { subtitle = descriptionOf } = table;
  const below = subtitle(row);
  const tags = tagsOf(row);
  return (
    <div className="list-cell" role="cell">
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
    </div>
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
    <div className="list-cell is-end" role="cell">
      <Group gap={6} wrap="nowrap" miw={82} justify="flex-end">
        <Can role={writes} otherwise={state}>
          {enabled !== null && (
            <Switch
              size="sm"
              aria-label={`Enable ${name}`}
              checked={enabled}
              onChange={(event) => void toggle({ id: row.id, name }, event.currentTarget.checked)}
            />
          )}
        </Can>
        <Can role={writes}>
          <RowMenu {...props} />
        </Can>
      </Group>
    </div>
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
    <Menu position="bottom-end" withinPortal>
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
          color="red"
          leftSection={<IconTrash size={16} />}
          onClick={() => onDelete(toDoomed(row))}
        >
          Delete
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
