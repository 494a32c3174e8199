// A read-only table, such as of revisions; knows no resource.
import { ScrollArea, Table } from "@mantine/core";
import type { ReactNode } from "react";
import { useRead } from "../api/queries.ts";
import type { SendOptions } from "../api/connection.ts";
import { EmptyState } from "./empty-state.tsx";
import { ErrorPanel } from "./error-panel.tsx";
import { RowsSkeleton } from "./skeletons.tsx";

interface Props<T> {
  /** Below /api/v1: an endpoint that returns a list. */
  readonly path: string;
  readonly query?: SendOptions["query"];
  readonly label: string;
  readonly columns: readonly { readonly title: string; readonly render: (row: T) => ReactNode }[];
  readonly keyOf: (row: T, index: number) => string;
  readonly empty: { readonly title: string; readonly text: string };
  /** Reverses the order of the endpoint. */
  readonly isReversed?: boolean;
}

/** Maximum number of rows: more make the page slow. */
const MAX_ROWS = 300;

export function SimpleTable<T>(props: Props<T>) {
  const { path, query, label, columns, keyOf, empty, isReversed = false } = props;
  const list = useRead<readonly T[]>(path, query === undefined ? {} : { query });
  if (list.isPending) return <RowsSkeleton />;
  if (list.data === undefined)
    return <ErrorPanel error={list.error} onRetry={() => list.refetch()} />;
  const all = isReversed ? list.data.value.toReversed() : list.data.value;
  if (all.length === 0) return <EmptyState {...empty} />;
  return (
    <ScrollArea type="auto" className="list" tabIndex={0} role="region" aria-label={label}>
      <Table highlightOnHover miw={640}>
        <Table.Thead>
          <Table.Tr>
            {columns.map(({ title }) => (
              <Table.Th key={title}>{title}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {all.slice(0, MAX_ROWS).map((row, index) => (
            <Table.Tr key={keyOf(row, index)}>
              {columns.map(({ title, render }) => (
                <Table.Td key={title}>{render(row)}</Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollArea>
  );
}
