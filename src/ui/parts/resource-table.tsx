// The list of a resource: search, tags, states, switches, bulk actions, clones; draws thousands of rows without a pause.
import { Button, Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";
import { Link, useLocation } from "wouter";
import { useResourceList } from "../api/queries.ts";
import type { SendOptions } from "../api/connection.ts";
import { type Read, type ResourceKey, resources } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";
import { ConfirmDelete, type Doomed } from "./confirm-delete.tsx";
import { EmptyState } from "./empty-state.tsx";
import { ErrorPanel } from "./error-panel.tsx";
import { Can, PageHead } from "./page-layout.tsx";
import { ListToolbar, useListFilter } from "./list-toolbar.tsx";
import { ResourceRow, RowHead } from "./resource-row.tsx";
import { useShortcut } from "./shortcut.ts";
import { RowsSkeleton } from "./skeletons.tsx";
import { VirtualRows } from "./virtual-rows.tsx";

export interface Column<T> {
  readonly title: string;
  readonly render: (row: T) => ReactNode;
  /** Width as CSS grid takes it; default `minmax(0, 1fr)`. */
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
  /** Path of the page: rows lead to `/ui/PAGE/ID`, the button to `/ui/PAGE/new`. */
  readonly page: string;
  readonly title: string;
  /** One sentence that says what these things are for. */
  readonly text: string;
  /** Behind the name, which is always there. */
  readonly columns: readonly Column<Read<K>>[];
  /** What to do while there is none: `{ title, text }`. */
  readonly empty: { readonly title: string; readonly text: string };
  /** What stands below the name; default: the description. */
  readonly subtitle?: (row: Read<K>) => ReactNode;
  readonly states?: readonly StateFilter<Read<K>>[];
  /** More words to search by. */
  readonly searchText?: (row: Read<K>) => string;
  /** Query parameters of the list. */
  readonly filters?: SendOptions["query"];
  /** Items of the menu of a row, before clone and delete: `<Menu.Item>…`. */
  readonly menu?: (row: Read<K>) => ReactNode;
  /** More buttons beside New. */
  readonly actions?: ReactNode;
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
              <Can role={writes}>
                <NewButton page={page} word={word} />
              </Can>
            )}
          </>
        }
      />
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
  const { resource, filters, empty, columns, page, canCreate = true } = props;
  const list = useResourceList(resource, filters);
  const filter = useListFilter(list.data ?? [], props);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [doomed, setDoomed] = useState<readonly Doomed[] | null>(null);
  if (list.isPending) return <RowsSkeleton />;
  if (list.data === undefined)
    return <ErrorPanel error={list.error} onRetry={() => list.refetch()} />;
  const { word, writes } = resources[resource];
  if (list.data.length === 0)
    return (
      <EmptyState {...empty}>
        {canCreate && (
          <Can role={writes}>
            <Button component={Link} href={pagePath(page, "new")}>
              Create the first {word}
            </Button>
          </Can>
        )}
      </EmptyState>
    );
  const toggle = (id: string, isOn: boolean) => {
    const next = new Set(selected);
    if (isOn) next.add(id);
    else next.delete(id);
    setSelected(next);
  };
  const ids = filter.rows.map(({ id }) => id);
  const isAll = ids.length > 0 && ids.every((id) => selected.has(id));
  const template = columns.map(({ width = "minmax(0, 1fr)" }) => width).join(" ");
  return (
    <Stack gap="sm">
      <ListToolbar
        resource={resource}
        filter={filter}
        total={list.data.length}
        selected={list.data.filter(({ id }) => selected.has(id))}
        onClear={() => setSelected(new Set())}
        onDelete={setDoomed}
      />
      {filter.rows.length === 0 ? (
        <EmptyState title="Nothing fits" text="No object fits the search and the filters.">
          <Button variant="default" onClick={filter.clear}>
            Show all
          </Button>
        </EmptyState>
      ) : (
        <div
          className="list"
          role="table"
          aria-label={props.title}
          aria-rowcount={filter.rows.length + 1}
          style={{ "--list-columns": `auto minmax(0, 1.6fr) ${template} auto` } as object}
        >
          <RowHead
            titles={columns.map((column) => column.title)}
            isAll={isAll}
            isSome={!isAll && ids.some((id) => selected.has(id))}
            onAll={(isOn) => setSelected(new Set(isOn ? ids : []))}
            writes={writes}
          />
          <VirtualRows rows={filter.rows} keyOf={({ id }) => id} estimate={58}>
            {(row, index) => (
              <ResourceRow
                table={props}
                row={row}
                index={index}
                isSelected={selected.has(row.id)}
                onSelect={(isOn) => toggle(row.id, isOn)}
                onDelete={(object) => setDoomed([object])}
              />
            )}
          </VirtualRows>
        </div>
      )}
      <ConfirmDelete
        resource={resource}
        objects={doomed}
        onClose={() => setDoomed(null)}
        onDeleted={() => setSelected(new Set())}
      />
    </Stack>
  );
}
