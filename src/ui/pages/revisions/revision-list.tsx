// All revisions that are kept, newest first: number, time, author and what was done; restores nothing itself.
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
import { type RowPlace, VirtualRows } from "../../parts/virtual-rows.tsx";

type Revision = Schemas["Revision"];

export function RevisionList() {
  const list = useRead<readonly Revision[]>("revisions");
  return (
    <>
      <PageHead
        title="Revisions"
        text="Every change of the configuration, newest first. Open one to see what it changed, or to go back to it."
      />
      {list.isPending ? (
        <RowsSkeleton />
      ) : list.data === undefined ? (
        <ErrorPanel error={list.error} onRetry={() => list.refetch()} />
      ) : list.data.value.length === 0 ? (
        <EmptyState title="No changes yet" text="The first change that you make appears here." />
      ) : (
        <Filtered all={list.data.value} />
      )}
    </>
  );
}

function Filtered({ all }: { readonly all: readonly Revision[] }) {
  const [question, setQuestion] = useUrlState("q");
  const [actor, setActor] = useUrlState("actor");
  const asked = useDeferredValue(question);
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
        <SearchField label="Search revisions" value={question} onChange={setQuestion} />
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
        <EmptyState title="Nothing fits" text="No revision fits the search and the filters.">
          <Button
            variant="default"
            onClick={() => {
              setQuestion("");
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
          {["Revision", "What", "Who", "When"].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <VirtualRows rows={rows} keyOf={({ number }) => String(number)} estimate={44}>
        {(row, index, place) => (
          <Row
            key={row.number}
            row={row}
            index={index}
            place={place}
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
  readonly place: RowPlace;
  readonly isCurrent: boolean;
}

function Row({ row, index, place, isCurrent }: RowProps) {
  const href = pagePath("revisions", String(row.number));
  return (
    <tr className="list-row" aria-rowindex={index + 2} {...place}>
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
