// The live connections of a stream route; knows no form.
import { Button, Text } from "@mantine/core";
import { useState } from "react";
import { useRead } from "../../api/queries.ts";
import type { Read, Schemas } from "../../api/resources.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Section } from "../../parts/page-layout.tsx";
import { RowsSkeleton } from "../../parts/skeletons.tsx";
import { CONNECTIONS_EVERY_MS, ConnectionTable } from "./connection-table.tsx";

export function LiveConnections({ route }: { readonly route: Read<"stream-routes"> }) {
  const path = `stream-routes/${route.id}/connections`;
  const [isPaused, setPaused] = useState(false);
  const list = useRead<readonly Schemas["Connection"][]>(
    path,
    isPaused ? {} : { everyMs: CONNECTIONS_EVERY_MS },
  );
  const all = list.data?.value ?? [];
  const word = route.protocol === "udp" ? "sessions" : "connections";
  return (
    <Section
      title={route.protocol === "udp" ? "Sessions now" : "Connections now"}
      text={`${all.length} ${all.length === 1 ? word.slice(0, -1) : word}, oldest first${isPaused ? "; paused" : ""}.`}
      actions={
        all.length > 0 && (
          <Button size="xs" variant="default" onClick={() => setPaused(!isPaused)}>
            {isPaused ? "Resume" : "Pause"}
          </Button>
        )
      }
    >
      {list.isPending ? (
        <RowsSkeleton />
      ) : list.data === undefined ? (
        <ErrorPanel error={list.error} onRetry={() => list.refetch()} />
      ) : all.length === 0 ? (
        <Text size="sm" c="dimmed">
          No connections. Clients connect to port {route.listen_port ?? route.port_range}.
        </Text>
      ) : (
        <ConnectionTable
          path={path}
          all={all}
          label={`Open ${word}`}
          reconnects="The client can reconnect; to deny it, add its network to the denied networks below."
        />
      )}
    </Section>
  );
}
