// The confirmation before a node is forgotten.
import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import type { Schemas } from "../../api/resources.ts";
import { seenText } from "./node-text.ts";

interface Props {
  /** Null: the dialog is closed. */
  readonly node: Schemas["Node"] | null;
  readonly onClose: () => void;
}

export function ForgetDialog({ node, onClose }: Props) {
  const connection = useConnection();
  const forget = useChange<Schemas["Node"], string>({
    send: (id) => connection.send(`/nodes/${encodeURIComponent(id)}`, { method: "DELETE" }),
    touches: ["nodes"],
    done: ({ name }) => {
      const message = "The other nodes do not count it any more.";
      notifications.show({ color: "teal", title: `Node ${name} forgotten`, message });
      return null;
    },
  });
  return (
    <Modal opened={node !== null} onClose={onClose} title={`Forget node ${node?.name ?? ""}?`}>
      <Stack>
        <Text size="sm">
          Its last heartbeat was {seenText(node?.seen_ms_ago ?? 0)}. The other nodes do not count it
          any more. If it comes back, it is a node again.
        </Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          <Button
            color="red"
            loading={forget.isPending}
            onClick={() => node !== null && forget.mutate(node.id, { onSettled: onClose })}
          >
            Forget
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
