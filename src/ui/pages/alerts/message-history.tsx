// The recent messages of an alert, and which incidents are still open; changes nothing.
import { Badge, Group, Stack, Text } from "@mantine/core";
import { useRead } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { Section } from "../../parts/page-layout.tsx";
import { RelativeTime, StatusDot } from "../../parts/status.tsx";
import { labelOf } from "./alert-events.ts";

type Message = Schemas["AlertMessage"];

const SHOWN = 10;
/** No event reports the delivery of a message. */
const LOOK_MS = 2000;

export function MessageHistory({ id }: { readonly id: string }) {
  const { data } = useRead<readonly Message[]>(`alerts/${id}/messages`, { everyMs: LOOK_MS });
  if (data === undefined) return null;
  const messages = data.value;
  return (
    <Section title="Messages" text="Since the gateway started, newest first.">
      {messages.length === 0 ? (
        <Text size="sm" c="dimmed">
          Nothing yet.
        </Text>
      ) : (
        <Stack gap="sm" component="ol" m={0} p={0} style={{ listStyle: "none" }}>
          {messages.slice(0, SHOWN).map((message) => (
            <MessageRow
              key={message.id}
              message={message}
              isOpen={isOpenIncident(message, messages)}
            />
          ))}
          {messages.length > SHOWN && (
            <Text size="sm" c="dimmed">
              and {messages.length - SHOWN} before
            </Text>
          )}
        </Stack>
      )}
    </Section>
  );
}

/** Whether the incident began and no later message of the same object resolves it. */
function isOpenIncident(message: Message, messages: readonly Message[]): boolean {
  const isSame = ({ object, since }: Message) =>
    object.kind === message.object.kind &&
    object.id === message.object.id &&
    object.name === message.object.name &&
    since === message.since;
  return message.status === "firing" && messages.find(isSame) === message;
}

const tones = { delivered: "good", waiting: "warn", lost: "bad" } as const;

function MessageRow({ message, isOpen }: { readonly message: Message; readonly isOpen: boolean }) {
  const { event, status, title, message: text, at, delivery, detail } = message;
  return (
    <li>
      <Group gap="xs" justify="space-between" align="flex-start" wrap="nowrap">
        <Stack gap={2} style={{ minWidth: 0 }}>
          <Group gap={6}>
            <Text size="sm" fw={600} style={{ overflowWrap: "anywhere" }}>
              {title}
            </Text>
            {isOpen && (
              <Badge size="sm" color="red" variant="light" tt="none">
                firing
              </Badge>
            )}
            {status === "resolved" && (
              <Badge size="sm" color="teal" variant="light" tt="none">
                resolved
              </Badge>
            )}
          </Group>
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            {text}
          </Text>
          <Text size="xs" c="dimmed">
            {labelOf(event)}, <RelativeTime at={at} />
          </Text>
        </Stack>
        <StatusDot state={delivery} tone={tones[delivery]} detail={detail} />
      </Group>
    </li>
  );
}
