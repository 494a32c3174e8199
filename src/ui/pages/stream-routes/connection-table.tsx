// A table of open connections, with a button to close each; knows no route.
import { Button, Group, ScrollArea, Table, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { useResourceList } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { Can } from "../../parts/page-layout.tsx";
import { addressOf } from "../services/target-weight.ts";
import { ageOf, inBytes } from "./stream-numbers.ts";

/** Of a stream route, or an upgraded one. */
type OpenConnection = Pick<
  Schemas["Connection"],
  "id" | "client" | "target_id" | "bytes_in" | "bytes_out" | "started_at"
> &
  Partial<Pick<Schemas["UpgradedConnection"], "protocol">>;

/** Bytes and ages change without an event. */
export const CONNECTIONS_EVERY_MS = 2000;
/** More rows make the page slow; the oldest are shown. */
const MAX_ROWS = 200;

interface Props {
  /** Of the list in the API, which is read again after a close. */
  readonly path: string;
  readonly all: readonly OpenConnection[];
  readonly label: string;
  /** What the client may do after a close. */
  readonly reconnects: string;
}

export function ConnectionTable({ path, all, label, reconnects }: Props) {
  const targets = useResourceList("targets");
  const closeConnection = useCloseConnection(path);
  const targetAddress = (id: string | null) => {
    const target = targets.data?.find((other) => other.id === id);
    return target === undefined ? "none yet" : addressOf(target);
  };
  const now = Date.now();
  const hasProtocols = all.some(({ protocol }) => protocol !== undefined);
  return (
    <ScrollArea.Autosize mah={360} type="auto" tabIndex={0} role="region" aria-label={label}>
      <Table highlightOnHover stickyHeader miw={560}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Client</Table.Th>
            {hasProtocols && <Table.Th>Protocol</Table.Th>}
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
              {hasProtocols && <Table.Td>{connection.protocol}</Table.Td>}
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
                      onClick={() =>
                        askBefore(connection, reconnects, () => closeConnection(connection))
                      }
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

function askBefore({ client }: OpenConnection, reconnects: string, run: () => void): void {
  modals.openConfirmModal({
    title: `Close the connection of ${client}?`,
    children: <Text size="sm">Data in transit is lost. {reconnects}</Text>,
    labels: { confirm: "Close connection", cancel: "Cancel" },
    confirmProps: { color: "red" },
    onConfirm: run,
  });
}

function useCloseConnection(path: string): (connection: OpenConnection) => void {
  const connection = useConnection();
  const { mutate } = useChange<Schemas["Deleted"], OpenConnection>({
    send: ({ id }) =>
      connection.send(`/connections/${encodeURIComponent(id)}`, { method: "DELETE" }),
    touches: [path],
    done: (_, { client }) => `Connection of ${client} closed`,
  });
  return mutate;
}
