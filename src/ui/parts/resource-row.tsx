// One row of a list: selection, name, cells, switch and menu; knows no resource by name.
import { Menu } from "@mantine/core";
import {
  IconChevronDown,
  IconChevronUp,
  IconCopy,
  IconPencil,
  IconTrash,
} from "@tabler/icons-react";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import type { BulkObject } from "../api/bulk.ts";
import { nameOf, type Read, type ResourceKey } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";
import { type PendingDelete, toPendingDelete } from "./confirm-delete.tsx";
import { DetailCell } from "./detail-cell.tsx";
import { tagsOf } from "./list-filter.ts";
import { directionOf, nextSort } from "./list-sort.ts";
import type { ResourceTableProps } from "./resource-table.tsx";
import { StatusDot } from "./status.tsx";
import type { RowPosition } from "./virtual-rows.tsx";

interface RowHeadProps {
  readonly titles: readonly string[];
  readonly sort: string;
  readonly onSort: (sort: string) => void;
  readonly isAll: boolean;
  readonly isSome: boolean;
  readonly onAll: (isOn: boolean) => void;
  readonly mayWrite: boolean;
  /** Whether the rows have a switch. */
  readonly hasSwitch: boolean;
}

export function RowHead(props: RowHeadProps) {
  const { titles, sort, onSort, isAll, isSome, onAll, mayWrite, hasSwitch } = props;
  return (
    <thead>
      <tr className="list-head">
        <th scope="col">
          {mayWrite && (
            <input
              type="checkbox"
              className="row-check"
              aria-label="Select all"
              checked={isAll}
              ref={(box) => {
                if (box !== null) box.indeterminate = isSome;
              }}
              onChange={(event) => onAll(event.currentTarget.checked)}
            />
          )}
          <span className="visually-hidden">Selected</span>
        </th>
        {titles.map((title) => {
          const direction = directionOf(sort, title);
          return (
            <th key={title} scope="col" aria-sort={direction}>
              <button
                type="button"
                className="sort-button"
                onClick={() => onSort(nextSort(sort, title))}
              >
                {title}
                {direction === "ascending" && <IconChevronUp size={13} aria-hidden="true" />}
                {direction === "descending" && <IconChevronDown size={13} aria-hidden="true" />}
              </button>
            </th>
          );
        })}
        <th scope="col" style={{ minWidth: 82 }}>
          {hasSwitch ? "Enabled" : ""}
          <span className="visually-hidden">{hasSwitch ? " and actions" : "Actions"}</span>
        </th>
      </tr>
    </thead>
  );
}

interface RowProps<K extends ResourceKey> {
  readonly table: ResourceTableProps<K>;
  readonly row: Read<K>;
  readonly index: number;
  readonly position: RowPosition;
  readonly mayWrite: boolean;
  readonly isSelected: boolean;
  readonly onSelect: (isOn: boolean) => void;
  readonly onSwitch: (object: BulkObject, isOn: boolean) => void;
  readonly onDelete: (object: PendingDelete) => void;
}

/** Plain elements: tens of rows are rendered at each step of scrolling. */
export function ResourceRow<K extends ResourceKey>(given: RowProps<K>) {
  // A source would undo changes of what it manages.
  const props = { ...given, mayWrite: given.mayWrite && given.row.managed_by === undefined };
  const { table, row, index, position, mayWrite, isSelected, onSelect } = props;
  const name = nameOf(row);
  return (
    <tr className="list-row" aria-rowindex={index + 2} {...position}>
      <td className="list-cell">
        {mayWrite && (
          <input
            type="checkbox"
            className="row-check"
            aria-label={`Select ${name}`}
            checked={isSelected}
            onChange={(event) => onSelect(event.currentTarget.checked)}
          />
        )}
      </td>
      <NameCell {...props} name={name} />
      {table.columns.map(({ title, render }) => (
        <DetailCell key={title} title={title}>
          {render(row)}
        </DetailCell>
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
      <div className="cell-line">
        <Link className="row-link is-title" href={pagePath(table.page, row.id)}>
          {name}
        </Link>
        {tags.slice(0, 4).map((tag) => (
          <span key={tag} className="tag">
            {tag}
          </span>
        ))}
        {row.managed_by !== undefined && (
          <span className="tag is-managed" title={`Managed by ${row.managed_by}`}>
            {row.managed_by}
          </span>
        )}
        {tags.length > 4 && <span className="is-minor">+{tags.length - 4}</span>}
      </div>
      {below !== "" && below !== null && <div className="is-minor is-single">{below}</div>}
    </td>
  );
}

const descriptionOf = (row: object): ReactNode =>
  "description" in row && typeof row.description === "string" ? row.description : "";

function Actions<K extends ResourceKey>(props: RowProps<K> & { name: string }) {
  const { row, name, mayWrite, onSwitch } = props;
  const enabled = "enabled" in row && typeof row.enabled === "boolean" ? row.enabled : null;
  return (
    <td className="list-cell is-end row-actions">
      {enabled !== null &&
        (mayWrite ? (
          <input
            type="checkbox"
            role="switch"
            className="switch"
            aria-label={`Enable ${name}`}
            checked={enabled}
            aria-checked={enabled}
            onChange={(event) => onSwitch({ id: row.id, name }, event.currentTarget.checked)}
          />
        ) : (
          <StatusDot state={enabled ? "on" : "off"} />
        ))}
      {mayWrite && <RowMenuButton {...props} />}
    </td>
  );
}

/** Renders only the button; the menu renders on first use. */
function RowMenuButton<K extends ResourceKey>(props: RowProps<K> & { name: string }) {
  const [isUsed, setUsed] = useState(false);
  if (isUsed) return <RowMenu {...props} />;
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={`Actions of ${props.name}`}
      aria-haspopup="menu"
      onClick={() => setUsed(true)}
    >
      ⋯
    </button>
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
        <button type="button" className="icon-button" aria-label={`Actions of ${name}`}>
          ⋯
        </button>
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
