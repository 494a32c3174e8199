// Sessions of one user, with a way to end them; knows no password.
import { Badge, Button, Group, Stack, Text } from "@mantine/core";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { useRead } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { RowsSkeleton } from "../../parts/skeletons.tsx";
import { RelativeTime } from "../../parts/status.tsx";
import { deviceOf } from "./device.ts";

type Session = Schemas["Session"];

const PATH = "auth/sessions";

interface Props {
  readonly userId: string;
  /** Whether they are the current user's sessions. */
  readonly isOwn: boolean;
}

export function SessionList({ userId, isOwn }: Props) {
  const list = useRead<readonly Session[]>(PATH, { query: { user_id: userId } });
  const end = useEnd();
  if (list.isPending) return <RowsSkeleton />;
  if (list.data === undefined)
    return <ErrorPanel error={list.error} onRetry={() => list.refetch()} />;
  const sessions = list.data.value.toSorted(
    (a, b) => Number(b.current) - Number(a.current) || b.created_at.localeCompare(a.created_at),
  );
  const others = sessions.filter(({ current }) => !current);
  if (sessions.length === 0)
    return (
      <Text size="sm" c="dimmed">
        No sessions.
      </Text>
    );
  return (
    <Stack gap={0}>
      {sessions.map((session) => (
        <Row
          key={session.id}
          session={session}
          isBusy={end.isPending}
          onEnd={() => end.mutate([session])}
        />
      ))}
      {others.length > 1 && (
        <Button
          variant="light"
          color="red"
          mt="md"
          style={{ alignSelf: "flex-start" }}
          loading={end.isPending}
          onClick={() => end.mutate(others)}
        >
          {isOwn ? `End the ${others.length} other sessions` : `End all ${others.length} sessions`}
        </Button>
      )}
    </Stack>
  );
}

function useEnd() {
  const connection = useConnection();
  return useChange<unknown, readonly Session[]>({
    send: async (sessions) => {
      const end = ({ id }: Session) =>
        connection.send(`/${PATH}/${encodeURIComponent(id)}`, { method: "DELETE" });
      const [first, ...others] = sessions;
      if (first === undefined) throw new Error("there is no session to end");
      await Promise.all(others.map(end));
      return await end(first);
    },
    touches: [PATH],
    done: (_, sessions) =>
      sessions.length === 1 ? "Session ended" : `${sessions.length} sessions ended`,
  });
}

interface RowProps {
  readonly session: Session;
  readonly isBusy: boolean;
  readonly onEnd: () => void;
}

function Row({ session, isBusy, onEnd }: RowProps) {
  const { user_agent, current, address, method, created_at, expires_at } = session;
  const device = deviceOf(user_agent);
  return (
    <Group justify="space-between" wrap="nowrap" py="sm" className="line">
      <Stack gap={2} style={{ minWidth: 0 }}>
        <Group gap="xs">
          <Text size="sm" fw={600} title={user_agent} style={{ overflowWrap: "anywhere" }}>
            {device}
          </Text>
          {current && (
            <Badge variant="light" color="teal" tt="none">
              this one
            </Badge>
          )}
        </Group>
        <Text size="xs" c="dimmed" component="div" style={{ overflowWrap: "anywhere" }}>
          {address} · {method === "sso" ? "single sign-on" : "password"} · since{" "}
          <RelativeTime at={created_at} /> · ends <RelativeTime at={expires_at} />
        </Text>
      </Stack>
      {!current && (
        <Button
          size="xs"
          variant="default"
          disabled={isBusy}
          onClick={onEnd}
          aria-label={`End the session in ${device} from ${address}`}
          style={{ flexShrink: 0 }}
        >
          End
        </Button>
      )}
    </Group>
  );
}
