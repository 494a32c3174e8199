// The list of a resource: search, sorting, tags, states, switches, bulk actions, clones; virtualized for thousands of rows.
import { Button, Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { type ReactNode, useMemo, useState } from "react";
import { Link, useLocation } from "wouter";
import { useSwitch } from "../api/bulk.ts";
import { useMayChange, useResourceList } from "../api/queries.ts";
import type { SendOptions } from "../api/connection.ts";
import { nameOf, type Read, type ResourceKey, resources } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";
import { ConfirmDelete, type PendingDelete } from "./confirm-delete.tsx";
import { EmptyState } from "./empty-state.tsx";
import { ErrorPanel } from "./error-panel.tsx";
import { Can, PageHead } from "./page-layout.tsx";
import { type SortColumn, sortRows } from "./list-sort.ts";
import { ListToolbar, useListFilter } from "./list-toolbar.tsx";
import { ResourceRow, RowHead } from "./resource-row.tsx";
import { useShortcut } from "./shortcut.ts";
import { RowsSkeleton } from "./skeletons.tsx";
import { useUrlState } from "./url-state.ts";
import { VirtualRows } from "./virtual-rows.tsx";

export interface Column<T> extends SortColumn<T> {
  readonly render: (row: T) => ReactNode;
  /** CSS grid width; default `minmax(0, 1fr)`. */
  readonly width?: string;
}

/** A choice in the list of states: `{ value: "unhealthy", label: "Unhealthy", fits: (service) => … }`. */
export interface StateFilter<T> {
  readonly value: string;
  readonly label: string;
  readonly fits: (row: T) => boolean;
}

export interface ResourceTableProps<K extends ResourceKey> {
  readonly resource: K;
  /** Path of the page: rows link to `/ui/PAGE/ID`, the button to `/ui/PAGE/new`. */
  readonly page: string;
  readonly title: string;
  /** One sentence about the purpose. */
  readonly text: ReactNode;
  /** Columns after the name. */
  readonly columns: readonly Column<Read<K>>[];
  /** The empty state: `{ title, text }`. */
  readonly empty: { readonly title: string; readonly text: string };
  /** The text below the name; default: the description. */
  readonly subtitle?: (row: Read<K>) => ReactNode;
  readonly states?: readonly StateFilter<Read<K>>[];
  /** Additional searchable text. */
  readonly searchText?: (row: Read<K>) => string;
  /** Query parameters of the list. */
  readonly filters?: SendOptions["query"];
  /** Items of the menu of a row, before clone and delete: `<Menu.Item>…`. */
  readonly menu?: (row: Read<K>) => ReactNode;
  /** Additional buttons beside New. */
  readonly actions?: ReactNode;
  /** Content between the head and the list. */
  readonly notice?: ReactNode;
  readonly canCreate?: boolean;
  readonly canClone?: boolean;
}

/** A whole page with its head. `n` creates, `/` searches; filters are in the address. */
export function ResourceTable<K extends ResourceKey>(props: ResourceTableProps<K>) {
  const { resource, page, title, text, canCreate = true, actions } = props;
  const { word, writes } = resources[resource];
  return (
    <>
      <PageHead
        title={title}
        text={text}
        actions={
          <>
            {actions}
            {canCreate && (
              <Can needs={writes}>
                <NewButton page={page} word={word} />
              </Can>
            )}
          </>
        }
      />
      {props.notice}
      <List {...props} />
    </>
  );
}

function NewButton({ page, word }: { readonly page: string; readonly word: string }) {
  const [, navigate] = useLocation();
  const href = pagePath(page, "new");
  useShortcut("n", () => navigate(href));
  return (
    <Button component={Link} href={href} leftSection={<IconPlus size={16} />}>
      New {word}
    </Button>
  );
}

function List<K extends ResourceKey>(props: ResourceTableProps<K>) {
  const { resource, filters } = props;
  const list = useResourceList(resource, filters);
  if (list.isPending) return <RowsSkeleton />;
  if (list.data === undefined)
    return <ErrorPanel error={list.error} onRetry={() => list.refetch()} />;
  // A list searched by the gateway keeps its search field, even when empty.
  if (list.data.length === 0 && !filters?.["q"]) return <NoneYet {...props} />;
  return <Loaded table={props} all={list.data} />;
}

function NoneYet<K extends ResourceKey>(props: ResourceTableProps<K>) {
  const { resource, page, empty, canCreate = true } = props;
  const { word, writes } = resources[resource];
  return (
    <EmptyState {...empty}>
      {canCreate && (
        <Can needs={writes}>
          <Button component={Link} href={pagePath(page, "new")}>
            Create the first {word}
          </Button>
        </Can>
      )}
    </EmptyState>
  );
}

interface LoadedProps<K extends ResourceKey> {
  readonly table: ResourceTableProps<K>;
  readonly all: readonly Read<K>[];
}

function Loaded<K extends ResourceKey>({ table, all }: LoadedProps<K>) {
  const [sort, setSort] = useUrlState("sort");
  const sorted = useMemo(
    () => sortRows(all, sort, [nameColumn, ...table.columns]),
    [all, sort, table.columns],
  );
  const filter = useListFilter(sorted, table);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [pendingDelete, setPendingDelete] = useState<readonly PendingDelete[] | null>(null);
  return (
    <Stack gap="sm">
      <ListToolbar
        resource={table.resource}
        filter={filter}
        total={all.length}
        selected={all.filter(({ id }) => selected.has(id))}
        onClear={() => setSelected(new Set())}
        onDelete={setPendingDelete}
      />
      {filter.rows.length === 0 ? (
        <EmptyState title="No matches" text="No object matches the search and the filters.">
          <Button variant="default" onClick={filter.clear}>
            Show all
          </Button>
        </EmptyState>
      ) : (
        <Rows
          table={table}
          rows={filter.rows}
          sort={sort}
          onSort={setSort}
          selected={selected}
          onSelect={setSelected}
          onDelete={(object) => setPendingDelete([object])}
        />
      )}
      <ConfirmDelete
        resource={table.resource}
        objects={pendingDelete}
        onClose={() => setPendingDelete(null)}
        onDeleted={() => setSelected(new Set())}
      />
    </Stack>
  );
}

const nameColumn = { title: "Name", sortBy: nameOf };

interface RowsProps<K extends ResourceKey> {
  readonly table: ResourceTableProps<K>;
  readonly rows: readonly Read<K>[];
  readonly sort: string;
  readonly onSort: (sort: string) => void;
  readonly selected: ReadonlySet<string>;
  readonly onSelect: (selected: ReadonlySet<string>) => void;
  readonly onDelete: (object: PendingDelete) => void;
}

function Rows<K extends ResourceKey>(props: RowsProps<K>) {
  const { table, rows, selected, onSelect, onDelete } = props;
  const ids = rows.map(({ id }) => id);
  const isAll = ids.every((id) => selected.has(id));
  const template = table.columns.map(({ width = "minmax(0, 1fr)" }) => width).join(" ");
  const mayWrite = useMayChange(resources[table.resource].writes);
  const toggle = useSwitch(table.resource);
  const select = (id: string, isOn: boolean) =>
    onSelect(new Set(isOn ? [...selected, id] : [...selected].filter((other) => other !== id)));
  return (
    <table
      className="list"
      aria-label={table.title}
      aria-rowcount={rows.length + 1}
      style={{ "--list-columns": `1.1rem minmax(0, 1.6fr) ${template} 5.2rem` } as object}
    >
      <RowHead
        titles={[nameColumn, ...table.columns].map(({ title }) => title)}
        sort={props.sort}
        onSort={props.onSort}
        isAll={isAll}
        isSome={!isAll && ids.some((id) => selected.has(id))}
        onAll={(isOn) => onSelect(new Set(isOn ? ids : []))}
        mayWrite={mayWrite}
        hasSwitch={rows.some((row) => "enabled" in row && typeof row.enabled === "boolean")}
      />
      <VirtualRows rows={rows} keyOf={({ id }) => id} estimate={58}>
        {(row, index, position) => (
          <ResourceRow
            key={row.id}
            table={table}
            row={row}
            index={index}
            position={position}
            mayWrite={mayWrite}
            onSwitch={toggle}
            isSelected={selected.has(row.id)}
            onSelect={(isOn) => select(row.id, isOn)}
            onDelete={onDelete}
          />
        )}
      </VirtualRows>
    </table>
  );
}
