// The execution order of plugins, with the enabled instances; changes nothing.
import { Drawer, Group, List, Stack, Text, Title } from "@mantine/core";
import { useResourceList } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { HelpText } from "../../parts/page-layout.tsx";
import { Scope } from "./plugin-scope.tsx";
import { useSchemasByName } from "./plugin-schemas.ts";
import { priorityOf, type PluginSchema, rankOf } from "./plugin-values.ts";

/** The phases of a request, in execution order. */
const phases: readonly {
  readonly phase: string;
  readonly title: string;
  readonly text: string;
}[] = [
  {
    phase: "connect",
    title: "Connection",
    text: "Stream routes, before the gateway connects to a target.",
  },
  { phase: "pre_auth", title: "Request", text: "Before authentication." },
  {
    phase: "auth",
    title: "Authentication",
    text: "The first plugin that authenticates the client decides.",
  },
  { phase: "access", title: "Access", text: "Authorization and limits." },
  {
    phase: "request",
    title: "Upstream request",
    text: "Changes of the request before it is sent to the target.",
  },
  { phase: "response", title: "Response", text: "In reverse order." },
  { phase: "log", title: "Log", text: "After the response." },
];

interface Props {
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

export function OrderDrawer({ isOpen, onClose }: Props) {
  return (
    <Drawer opened={isOpen} onClose={onClose} title="Execution order" position="right" size="lg">
      <Stack>
        <List size="sm" spacing={6}>
          <List.Item>
            In each phase, plugins run by descending priority. Every plugin has a default priority,
            which an instance can override.
          </List.Item>
          <List.Item>
            Of several instances of one plugin, only the one with the most specific scope runs:
            consumer and route, consumer and service, consumer, route, service, global.
          </List.Item>
          <List.Item>
            Responses pass the plugins in reverse order. A response of a plugin passes only the
            plugins before it.
          </List.Item>
        </List>
        {isOpen && <Phases />}
      </Stack>
    </Drawer>
  );
}

function Phases() {
  const { data = [] } = useResourceList("plugins");
  const schemas = useSchemasByName();
  const running = data.filter(({ enabled }) => enabled);
  const ofPhase = (phase: string) => running.filter(({ name }) => has(schemas.get(name), phase));
  // By descending priority in each phase.
  const order = (one: Read<"plugins">, other: Read<"plugins">) =>
    priorityOf(other, schemas.get(other.name)) - priorityOf(one, schemas.get(one.name)) ||
    one.name.localeCompare(other.name) ||
    rankOf(one) - rankOf(other);
  const shown = phases.filter(({ phase }) => ofPhase(phase).length > 0);
  if (shown.length === 0) return <HelpText>No plugin is enabled yet.</HelpText>;
  return shown.map(({ phase, title, text }) => {
    const sorted = ofPhase(phase).toSorted(order);
    return (
      <section key={phase} aria-label={title}>
        <Title order={3} size="h5">
          {title}
        </Title>
        <HelpText>{text}</HelpText>
        <List type="ordered" size="sm" mt={4} spacing={4}>
          {(phase === "response" ? sorted.toReversed() : sorted).map((plugin) => (
            <List.Item key={plugin.id}>
              <Group gap={6}>
                <Text size="sm" fw={600}>
                  {plugin.label ?? plugin.name}
                </Text>
                <Scope plugin={plugin} />
              </Group>
            </List.Item>
          ))}
        </List>
      </section>
    );
  });
}

const has = (schema: PluginSchema | undefined, phase: string): boolean =>
  schema?.phases.includes(phase) ?? false;
