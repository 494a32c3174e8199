// The live connections of a stream route, with a button to close each; knows no form.
import { Button, Group, ScrollArea, Table, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { useState } from "react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { useRead, useResourceList } from "../../api/queries.ts";
import type { Read, Schemas } from "../../api/resources.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Can, Section } from "../../parts/page-layout.tsx";
import { RowsSkeleton } from "../../parts/skeletons.tsx";
import { addressOf } from "../services/target-weight.ts";
import { ageOf, inBytes } from "./stream-numbers.ts";

type Connection = Schemas["Connection"];

/** Bytes and ages change without an event. */
const EVERY_MS = 2000;
/** More rows make the page slow; the oldest are shown. */
const MAX_ROWS = 200;

export function LiveConnections({ route }: { readonly route: Read<"stream-routes"> }) {
  const path = `stream-routes/${route.id}/connections`;
  const [isPaused, setPaused] = useState(false);
  const list = useRead<readonly Connection[]>(path, isPaused ? {} : { everyMs: EVERY_MS });
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
        <Connections path={path} all={all} label={`Open ${word}`} />
      )}
    </Section>
  );
}

interface Props {
  readonly path: string;
  readonly all: readonly Connection[];
  readonly label: string;
}

function Connections({ path, all, label }: Props) {
  const targets = useResourceList("targets");
  const closeConnection = useCloseConnection(path);
  const targetAddress = (id: string | null) => {
    const target = targets.data?.find((other) => other.id === id);
    return target === undefined ? "none yet" : addressOf(target);
  };
  const now = Date.now();
  return (
    <ScrollArea.Autosize mah={360} type="auto" tabIndex={0} role="region" aria-label={label}>
      <Table highlightOnHover stickyHeader miw={560}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Client</Table.Th>
            <Table.Th>Target</Table.Th>
            <Table.Th>Received</Table.Th>
            <Table.Th>Sent</Table.Th>
            <Table.Th>Age</Table.Th>
            <Table.Th>
              <span className="visually-hidden">Actions</span>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {all.slice(0, MAX_ROWS).map((connection) => (
            <Table.Tr key={connection.id}>
              <Table.Td className="mono">{connection.client}</Table.Td>
              <Table.Td className="mono">{targetAddress(connection.target_id)}</Table.Td>
              <Table.Td>{inBytes(connection.bytes_in)}</Table.Td>
              <Table.Td>{inBytes(connection.bytes_out)}</Table.Td>
              <Table.Td title={connection.started_at}>{ageOf(connection.started_at, now)}</Table.Td>
              <Table.Td>
                <Can needs="editor" worksReadOnly>
                  <Group justify="flex-end">
                    <Button
                      size="compact-xs"
                      variant="light"
                      color="red"
                      aria-label={`Close the connection of ${connection.client}`}
                      onClick={() => askBefore(connection, () => closeConnection(connection))}
                    >
                      Close
                    </Button>
                  </Group>
                </Can>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {all.length > MAX_ROWS && (
        <Text size="sm" c="dimmed" p="xs">
          and {all.length - MAX_ROWS} newer ones
        </Text>
      )}
    </ScrollArea.Autosize>
  );
}

function askBefore({ client }: Connection, run: () => void): void {
  modals.openConfirmModal({
    title: `Close the connection of ${client}?`,
    children: (
      <Text size="sm">
        Data in transit is lost. The client can reconnect; to deny it, add its network to the denied
        networks below.
      </Text>
    ),
    labels: { confirm: "Close connection", cancel: "Cancel" },
    confirmProps: { color: "red" },
    onConfirm: run,
  });
}

function useCloseConnection(path: string): (connection: Connection) => void {
  const connection = useConnection();
  const { mutate } = useChange<Schemas["Deleted"], Connection>({
    send: ({ id }) =>
      connection.send(`/connections/${encodeURIComponent(id)}`, { method: "DELETE" }),
    touches: [path],
    done: (_, { client }) => `Connection of ${client} closed`,
  });
  return mutate;
}
