// All stored revisions, newest first: number, time, author and summary; restores nothing itself.
import { Anchor, Badge, Button, Group, Select, Stack, Text } from "@mantine/core";
import { useDeferredValue } from "react";
import { Link } from "wouter";
import { useRead, useStatus } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { EmptyState } from "../../parts/empty-state.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { hasWords } from "../../parts/list-filter.ts";
import { PageHead } from "../../parts/page-layout.tsx";
import { SearchField } from "../../parts/search-field.tsx";
import { RowsSkeleton } from "../../parts/skeletons.tsx";
import { RelativeTime } from "../../parts/status.tsx";
import { useUrlState } from "../../parts/url-state.ts";
import { type RowPosition, VirtualRows } from "../../parts/virtual-rows.tsx";

type Revision = Schemas["Revision"];

export function RevisionList() {
  const list = useRead<readonly Revision[]>("revisions");
  return (
    <>
      <PageHead
        title="Revisions"
        text="Versions of the configuration, newest first. Open one to see its changes or to restore it."
      />
      {list.isPending ? (
        <RowsSkeleton />
      ) : list.data === undefined ? (
        <ErrorPanel error={list.error} onRetry={() => list.refetch()} />
      ) : list.data.value.length === 0 ? (
        <EmptyState title="No changes yet" text="The first change appears here." />
      ) : (
        <Filtered all={list.data.value} />
      )}
    </>
  );
}

function Filtered({ all }: { readonly all: readonly Revision[] }) {
  const [query, setQuery] = useUrlState("q");
  const [actor, setActor] = useUrlState("actor");
  const asked = useDeferredValue(query);
  const actors = [...new Set(all.map((revision) => revision.actor))].toSorted();
  const rows = all
    .toReversed()
    .filter(
      (revision) =>
        (actor === "" || revision.actor === actor) &&
        hasWords(
          `${revision.number} ${revision.actor} ${revision.summary}`.toLowerCase(),
          asked.trim(),
        ),
    );
  return (
    <Stack gap="sm">
      <Group gap="xs">
        <SearchField label="Search revisions" value={query} onChange={setQuery} />
        {actors.length > 1 && (
          <Select
            aria-label="Author"
            placeholder="Author"
            data={actors}
            value={actor === "" ? null : actor}
            onChange={(value) => setActor(value ?? "")}
            clearable
            searchable
            w={{ base: 150, sm: 220 }}
          />
        )}
        <Text size="sm" c="dimmed" aria-live="polite">
          {rows.length === all.length ? all.length : `${rows.length} of ${all.length}`} revisions
        </Text>
      </Group>
      {rows.length === 0 ? (
        <EmptyState title="No matches" text="No revision matches the search and the filters.">
          <Button
            variant="default"
            onClick={() => {
              setQuery("");
              setActor("");
            }}
          >
            Show all
          </Button>
        </EmptyState>
      ) : (
        <Rows rows={rows} />
      )}
    </Stack>
  );
}

const columns = { "--list-columns": "7.5rem minmax(0, 2fr) minmax(0, 1fr) 9rem" } as object;

function Rows({ rows }: { readonly rows: readonly Revision[] }) {
  const { data: status } = useStatus();
  return (
    <table
      className="list is-plain"
      aria-label="Revisions"
      aria-rowcount={rows.length + 1}
      style={columns}
    >
      <thead>
        <tr className="list-head">
          {["Revision", "Summary", "Author", "Time"].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <VirtualRows rows={rows} keyOf={({ number }) => String(number)} estimate={44}>
        {(row, index, position) => (
          <Row
            key={row.number}
            row={row}
            index={index}
            position={position}
            isCurrent={row.number === status?.revision}
          />
        )}
      </VirtualRows>
    </table>
  );
}

interface RowProps {
  readonly row: Revision;
  readonly index: number;
  readonly position: RowPosition;
  readonly isCurrent: boolean;
}

function Row({ row, index, position, isCurrent }: RowProps) {
  const href = pagePath("revisions", String(row.number));
  return (
    <tr className="list-row" aria-rowindex={index + 2} {...position}>
      <td className="list-cell">
        <Group gap={6} wrap="nowrap">
          <Anchor component={Link} href={href} fw={600} size="sm">
            {row.number}
          </Anchor>
          {isCurrent && (
            <Badge size="xs" variant="light" color="teal" tt="none">
              now
            </Badge>
          )}
        </Group>
      </td>
      <td className="list-cell">{row.summary}</td>
      <td className="list-cell">{row.actor}</td>
      <td className="list-cell">
        <Text span size="sm" c="dimmed">
          <RelativeTime at={row.at} />
        </Text>
      </td>
    </tr>
  );
}
