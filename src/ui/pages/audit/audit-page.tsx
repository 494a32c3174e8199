// The audit log; filters are in the page URL, older entries load page by page.
import { Button, Group, Stack, Text } from "@mantine/core";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useConnection } from "../../api/connection-context.ts";
import { queryKeys, useStatus } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { EmptyState } from "../../parts/empty-state.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { PageHead } from "../../parts/page-layout.tsx";
import { RowsSkeleton } from "../../parts/skeletons.tsx";
import { AuditFilters, useAuditFilter } from "./audit-filters.tsx";
import { AuditDrawer } from "./audit-entry.tsx";
import { AuditRows } from "./audit-rows.tsx";

type Entry = Schemas["AuditEntry"];

const PAGE = 100;

export default function AuditPage() {
  const filter = useAuditFilter();
  const log = useAuditLog(filter.query);
  const [shown, setShown] = useState<Entry | null>(null);
  const entries = log.data?.pages.flatMap(({ value }) => value) ?? [];
  return (
    <>
      <PageHead
        title="Audit log"
        text="Changes, sign-ins and refused attempts, newest first. Entries cannot be changed."
      />
      <Stack gap="sm">
        <AuditFilters filter={filter} entries={entries} />
        {log.isPending ? (
          <RowsSkeleton />
        ) : log.data === undefined ? (
          <ErrorPanel error={log.error} onRetry={() => log.refetch()} />
        ) : entries.length === 0 ? (
          <None filter={filter} />
        ) : (
          <>
            <AuditRows entries={entries} onOpen={setShown} />
            <Group justify="center" gap="sm">
              <Text size="sm" c="dimmed" aria-live="polite">
                {entries.length} {entries.length === 1 ? "entry" : "entries"}
                {log.hasNextPage ? "" : ": there are no older ones"}
              </Text>
              {log.hasNextPage && (
                <Button
                  variant="default"
                  loading={log.isFetchingNextPage}
                  onClick={() => void log.fetchNextPage()}
                >
                  Show older entries
                </Button>
              )}
            </Group>
          </>
        )}
      </Stack>
      <AuditDrawer entry={shown} onClose={() => setShown(null)} />
    </>
  );
}

function useAuditLog(query: Readonly<Record<string, string>>) {
  const connection = useConnection();
  const { data: status } = useStatus();
  return useInfiniteQuery({
    // Every change adds an entry.
    queryKey: [...queryKeys.of("audit", query), status?.revision],
    placeholderData: keepPreviousData,
    staleTime: 5000,
    initialPageParam: "",
    queryFn: ({ pageParam: before, signal }) =>
      connection.send<readonly Entry[]>("/audit", {
        query: { ...query, newest: PAGE, before },
        signal,
      }),
    getNextPageParam: ({ next }) => next,
  });
}

function None({ filter }: { readonly filter: ReturnType<typeof useAuditFilter> }) {
  if (!filter.isSet)
    return <EmptyState title="Nothing yet" text="Sign-ins and changes appear here." />;
  return (
    <EmptyState title="No matches" text="No entry matches the search and the filters.">
      <Button variant="default" onClick={filter.clear}>
        Show all
      </Button>
    </EmptyState>
  );
}
