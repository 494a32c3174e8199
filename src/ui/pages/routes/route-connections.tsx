// The open WebSockets and other upgraded connections of a route; nothing without any.
import { useRead } from "../../api/queries.ts";
import type { Read, Schemas } from "../../api/resources.ts";
import { Section } from "../../parts/page-layout.tsx";
import { CONNECTIONS_EVERY_MS, ConnectionTable } from "../stream-routes/connection-table.tsx";

export function RouteConnections({ route }: { readonly route: Pick<Read<"routes">, "id"> }) {
  const path = `routes/${route.id}/connections`;
  const list = useRead<readonly Schemas["UpgradedConnection"][]>(path, {
    everyMs: CONNECTIONS_EVERY_MS,
  });
  const all = list.data?.value ?? [];
  if (all.length === 0) return null;
  const isWebSocket = all.every(({ protocol }) => protocol === "websocket");
  const word = isWebSocket ? "WebSocket" : "upgraded connection";
  return (
    <Section
      title={isWebSocket ? "WebSockets now" : "Upgraded connections now"}
      text={`${all.length} ${all.length === 1 ? word : `${word}s`}, oldest first.`}
    >
      <ConnectionTable
        path={path}
        all={all}
        label={`Open ${word}s`}
        reconnects="The client can reconnect."
      />
    </Section>
  );
}
