// Drains a node or ends it, with a notification; renders nothing.
import { notifications } from "@mantine/notifications";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import type { Schemas } from "../../api/resources.ts";

interface Draining {
  readonly node: Schemas["Node"];
  readonly drained: boolean;
}

export function useDrain() {
  const connection = useConnection();
  return useChange<Schemas["Node"], Draining>({
    send: ({ node, drained }) =>
      connection.send(`/nodes/${encodeURIComponent(node.id)}/drain`, {
        method: drained ? "POST" : "DELETE",
      }),
    touches: ["nodes"],
    done: (node, { drained }) => {
      notifications.show({ color: "teal", ...textOf(node, drained) });
      return null;
    },
  });
}

function textOf({ name, draining }: Schemas["Node"], drained: boolean) {
  if (draining !== drained)
    return { title: "Stored", message: `Node ${name} follows as soon as it is back.` };
  return drained
    ? { title: `Node ${name} is draining`, message: "Its /readyz returns 503 from now on." }
    : { title: `Node ${name} is no longer draining`, message: "Its /readyz returns 200 again." };
}
